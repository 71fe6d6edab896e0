"""A number that counts the multiplications it takes part in.

The rules: only multiplications count, a factor 2 among them; a product with one of the structural
zeros of the block matrix A is not needed and is kept apart; g, g' and the loss are left out, by
running the algorithms with g(z) = z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.reference._pieces import Array


@dataclass
class Counter:
    """How many multiplications happened, and how many more by a structural zero."""

    multiplications: int = 0
    by_structural_zero: int = 0

    def wrap(self, array: Any) -> Array:
        """The same numbers as an object array of counting ones."""
        numbers = np.empty(np.shape(array), dtype=object)
        for index, value in np.ndenumerate(np.asarray(array, dtype=float)):
            numbers[index] = Number(float(value), self)
        return numbers


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
