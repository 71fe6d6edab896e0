"""Comparison of gradients with central differences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Stack
from quadric.training import Samples

CURVED = 1e-8  # above this error, a second, finer difference is computed


@dataclass(frozen=True)
class WorstEntry:
    """The entry of one parameter where the gradient and the central difference differ most.

    `error` is |gradient - difference| / max(1, |gradient|, |difference|).
    """

    parameter: str
    index: tuple[int, ...]
    gradient: float
    difference: float
    error: float


@dataclass(frozen=True)
class GradientCheck:
    """The worst entry of every parameter; names such as 'layers.0.W' are as in model files."""

    entries: tuple[WorstEntry, ...]

    @property
    def worst(self) -> float:
        """The largest error of all entries."""
        return max(entry.error for entry in self.entries)

    def __str__(self) -> str:
        lines = [f"{'parameter':<14}{'entry':<14}{'gradient':>14}{'difference':>14}{'error':>10}"]
        lines += [
            f"{e.parameter:<14}{list(e.index)!s:<14}"
            f"{e.gradient:>14.6g}{e.difference:>14.6g}{e.error:>10.1e}"
            for e in self.entries
        ]
        return "\n".join(lines)


def check_gradients(stack: Stack, samples: Samples, *, l2: float, step: float) -> GradientCheck:
    """Compare the gradients of mean loss + penalty with central differences."""
    X, Y = samples.X, samples.Y

    def value() -> float:
        return stack.mean_loss(stack.logits(X), Y) + stack.penalty(l2)

    _, grads = stack.gradients(X, Y)
    stack.add_l2(grads, l2)
    entries = []
    for l, (layer, grad) in enumerate(zip(stack.layers, grads, strict=True)):
        for name, array in layer.arrays().items():
            compared = (
                _compare(value, array, index, gradient, step)
                for index, gradient in np.ndenumerate(grad.arrays()[name])
            )
            index, gradient, difference, error = max(compared, key=lambda entry: entry[-1])
            if name == "packed":  # shown as (neuron, i, j) in Q
                pair, neuron = index
                i, j = np.transpose(np.triu_indices(layer.n_inputs))[pair].tolist()
                name, index = "Q", (neuron, i, j)
            entries.append(WorstEntry(f"layers.{l}.{name}", index, gradient, difference, error))
    return GradientCheck(tuple(entries))


def _compare(
    objective: Callable[[], float], array: Array, index: Any, gradient: Any, step: float
) -> tuple[Any, float, float, float]:
    """Return index, gradient, central difference and error of one entry."""
    gradient, difference = float(gradient), _difference(objective, array, index, step)
    if _error(gradient, difference) > CURVED:
        # the function is strongly curved: remove the second-order error
        half = _difference(objective, array, index, step / 2)
        difference = (4 * half - difference) / 3
    return index, gradient, difference, _error(gradient, difference)


def _difference(objective: Callable[[], float], array: Array, index: Any, step: float) -> float:
    """Return (f(x + step) - f(x - step)) / (2 step), where x is the entry, and restore x."""
    value = array[index]
    array[index] = value + step
    above = objective()
    array[index] = value - step
    below = objective()
    array[index] = value
    return (above - below) / (2 * step)


def _error(gradient: float, difference: float) -> float:
    """The relative error, or infinity (not NaN) if one of the numbers is not finite."""
    error = abs(gradient - difference) / max(1.0, abs(gradient), abs(difference))
    return error if np.isfinite(error) else np.inf
