"""Data sets of the paper."""

from __future__ import annotations

import numpy as np

from quadric.arrays import Array

__all__ = ["xor"]


def xor() -> tuple[Array, Array]:
    """The four points of XOR, coded -1 and 1, and their labels, 0 and 1.

    The paper prints the labels as -1 and 1, too; its loss needs 0 and 1.

    >>> X, y = xor()
    >>> X.tolist(), y.tolist()
    ([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    X = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    return X, np.array([0, 1, 1, 0])
