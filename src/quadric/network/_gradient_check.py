"""Gradients against central differences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._stack import Stack
from quadric.training._samples import Samples

CURVED = 1e-8  # an error from which on a second, finer difference is taken


@dataclass(frozen=True)
class WorstEntry:
    """The entry of one parameter where gradient and central difference disagree most.

    `error` is |gradient - difference| / max(1, |gradient|, |difference|).
    """

    parameter: str
    index: tuple[int, ...]
    gradient: float
    difference: float
    error: float


@dataclass(frozen=True)
class GradientCheck:
    """The worst entry of every parameter, named as in files: 'layers.0.W', ..."""

    entries: tuple[WorstEntry, ...]

    @property
    def worst(self) -> float:
        """The largest error of all."""
        return max(entry.error for entry in self.entries)

    def __str__(self) -> str:
        lines = [f"{'parameter':<14}{'entry':<14}{'gradient':>14}{'difference':>14}{'error':>10}"]
        for e in self.entries:
            index = ", ".join(map(str, e.index))
            lines.append(
                f"{e.parameter:<14}[{index}]".ljust(28)
                + f"{e.gradient:>14.6g}{e.difference:>14.6g}{e.error:>10.1e}"
            )
        return "\n".join(lines)


def check_gradients(stack: Stack, samples: Samples, *, l2: float, step: float) -> GradientCheck:
    """Central differences of mean loss + penalty by every independent parameter."""
    X, Y = samples.X, samples.Y

    def value() -> float:
        return stack.mean_loss(stack.logits(X), Y) + stack.penalty(l2)

    _, grads = stack.gradients(X, Y)
    stack.add_l2(grads, l2)
    entries = []
    for l, (layer, grad) in enumerate(zip(stack.layers, grads, strict=True)):
        gradients = grad.arrays()
        for name, array in layer.arrays().items():
            worst: WorstEntry | None = None
            for index in np.ndindex(array.shape):
                gradient = float(gradients[name][index])
                difference = _difference(value, array, index, step)
                error = _error(gradient, difference)
                if error > CURVED:
                    # a strongly curved function: take the error of second order away
                    half = _difference(value, array, index, step / 2)
                    difference = (4 * half - difference) / 3
                    error = _error(gradient, difference)
                if not np.isfinite(error):
                    error = np.inf  # a comparison with NaN would pass it over
                if worst is None or error > worst.error:
                    shown, place = _as_shown(name, index, layer.n_inputs)
                    worst = WorstEntry(f"layers.{l}.{shown}", place, gradient, difference, error)
            assert worst is not None  # no parameter is empty
            entries.append(worst)
    return GradientCheck(tuple(entries))


def _difference(objective: Callable[[], float], array: Array, index: Any, step: float) -> float:
    """(f(x + step) - f(x - step)) / (2 step), x being the entry; it is put back."""
    value = array[index]
    sides = []
    for moved in (value + step, value - step):
        array[index] = moved
        sides.append(objective())
    array[index] = value
    return (sides[0] - sides[1]) / (2 * step)


def _as_shown(name: str, index: tuple[int, ...], n: int) -> tuple[str, tuple[int, ...]]:
    """An entry of `packed` as the entry (neuron, i, j) of Q; any other as it is."""
    if name != "packed":
        return name, index
    rows, columns = np.triu_indices(n)
    pair, neuron = index
    return "Q", (neuron, int(rows[pair]), int(columns[pair]))


def _error(gradient: float, difference: float) -> float:
    return abs(gradient - difference) / max(1.0, abs(gradient), abs(difference))
