"""Symmetric matrices as their upper triangles, row by row: q_11, q_12, ..., q_1n, q_22, ...

This is the layout of Q everywhere outside memory: files, fixtures, torch's state_dict.
"""

from __future__ import annotations

import numpy as np

from quadric.arrays import Array

__all__ = ["pack", "unpack"]


def pack(Q: Array) -> Array:
    """The triangles, shape (m, n(n+1)/2), of symmetric matrices of shape (m, n, n).

    >>> pack(np.array([[[1.0, 2.0], [2.0, 3.0]]]))
    array([[1., 2., 3.]])
    """
    rows, columns = np.triu_indices(Q.shape[-1])
    return Q[:, rows, columns]


def unpack(packed: Array, n: int) -> Array:
    """The symmetric matrices, shape (m, n, n), that have the given triangles."""
    rows, columns = np.triu_indices(n)
    Q = np.empty((len(packed), n, n), dtype=packed.dtype)
    Q[:, rows, columns] = packed
    Q[:, columns, rows] = packed
    return Q
