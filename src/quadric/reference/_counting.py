"""Count multiplications by running the algorithms on numbers that count their own.

Only multiplications count, including those by 2. Products with a structural zero of the block
matrix A are counted separately. g, g' and the loss are excluded by running with g(z) = z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.reference import _algorithm1, _algorithm2
from quadric.reference._pieces import Array


@dataclass
class Counter:
    """The number of multiplications, and of those by a structural zero."""

    multiplications: int = 0
    by_structural_zero: int = 0

    def wrap(self, array: Any) -> Array:
        """Return the same values as an object array of counting numbers."""
        number = np.frompyfunc(lambda value: Number(float(value), self), 1, 1)
        return np.asarray(number(array))


class Number:
    """A float with a counter. The plain integer 0 is a structural zero."""

    __slots__ = ("counter", "value")

    def __init__(self, value: float, counter: Counter) -> None:
        self.value, self.counter = value, counter

    def _combine(self, value: float) -> Number:
        return Number(value, self.counter)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array multiplies entry by entry
        if isinstance(other, int) and other == 0:
            self.counter.by_structural_zero += 1
            return 0
        self.counter.multiplications += 1
        return self._combine(self.value * float(other))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self._combine(self.value + float(other))

    __rmul__, __radd__ = __mul__, __add__

    def __neg__(self) -> Number:
        return self._combine(-self.value)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Number:
        return self._combine(self.value / float(other))

    def __rtruediv__(self, other: Any) -> Number:
        return self._combine(float(other) / self.value)

    def exp(self) -> Number:
        return self._combine(math.exp(self.value))

    def __float__(self) -> float:
        return self.value


def count_layer(kind: str, m: int, n: int) -> dict[str, int]:
    """Count the multiplications of m neurons with n inputs: forward, backward, update.

    'forward, by structural zeros' counts the products with A's zeros in the dense block product
    A Q; 'forward' does not include them.
    """
    rng = np.random.default_rng(3)
    counter = Counter()
    shapes: dict[str, tuple[int, ...]] = {"W": (m, n), "b": (m,)}
    if kind == "qnn":
        shapes["Q"] = (m, n, n)
    elif kind == "rpqnn":
        shapes |= {"U": (m, n), "c": (m,)}
    # a layer below receives the delta; g(z) = z takes no multiplication
    below = {"W": counter.wrap(np.eye(n)), "b": counter.wrap(np.zeros(n))}
    layer = {name: counter.wrap(rng.normal(size=shape)) for name, shape in shapes.items()}
    if kind == "qnn":
        layer["Q"] = (layer["Q"] + layer["Q"].transpose(0, 2, 1)) / 2
    layers, activations = [below, layer], ["identity", "identity"]
    x, y, eta = counter.wrap(rng.normal(size=n)), counter.wrap(np.zeros(m)), 0.1
    algorithm: Any = _algorithm2 if kind == "rpqnn" else _algorithm1
    cache = algorithm.forward(layers, activations, x)
    forward, zeros = counter.multiplications, counter.by_structural_zero
    deltas = algorithm.backward(layers, activations, cache, y, "binary_cross_entropy")
    both = counter.multiplications
    caches = (cache.v1[1], cache.v2[1]) if kind == "rpqnn" else ()
    algorithm.update(layer, deltas[1], *caches, cache.a[1], eta)
    return {
        "forward": forward - n * n,  # without the layer below
        "forward, by structural zeros": zeros,
        "backward": both - forward,
        "update": counter.multiplications - both,
    }
