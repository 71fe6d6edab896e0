"""Euclidean lengths of vectors whose squares may underflow or overflow."""

from typing import Any

import numpy as np

from quadric.checks import Array

TINY = float(np.finfo(np.float64).tiny)  # the largest error of a product that underflows
SAFE = 1e-140, 1e140  # lengths in this range are accurate if they are computed from squares


def norm(array: Array, axis: Any = None) -> Any:
    """The square root of the sum of squares, over all entries or along one or more axes."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.linalg.norm(array.ravel() if axis is None else array, axis=axis)
        if np.all((found > SAFE[0]) & (found < SAFE[1])):
            return found
        unit = power_of_two(np.abs(array).max(axis=axis, keepdims=True, initial=0.0))
        scaled = array / unit
        found = np.linalg.norm(scaled.ravel() if axis is None else scaled, axis=axis)
        return found * unit.reshape(np.shape(found))


def power_of_two(size: Any) -> Any:
    """The largest power of two that is not larger than the size; 1 for a size of zero."""
    return np.where(np.asarray(size) == 0, 1.0, np.ldexp(1.0, np.frexp(size)[1] - 1))
