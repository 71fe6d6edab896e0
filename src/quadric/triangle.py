"""Symmetric matrices as their upper triangles, row by row: q_11, q_12, ..., q_1n, q_22, ...

This is the layout of Q everywhere outside memory: files, fixtures, torch's state_dict.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from quadric.arrays import Array

__all__ = ["pack", "unpack"]


def pack(Q: Array) -> Array:
    """The triangles, shape (m, n(n+1)/2), of symmetric matrices of shape (m, n, n).

    >>> pack(np.array([[[1.0, 2.0], [2.0, 3.0]]]))
    array([[1., 2., 3.]])
    """
    return Q.reshape(len(Q), -1)[:, _places(Q.shape[-1])[0]]


def unpack(packed: Array, n: int) -> Array:
    """The symmetric matrices, shape (m, n, n), that have the given triangles."""
    return packed[:, _places(n)[1]].reshape(len(packed), n, n)


@lru_cache(maxsize=8)
def _places(n: int) -> tuple[Array, Array]:
    """Where the triangle's entries stand in a matrix, and a matrix's entries in the triangle."""
    rows, columns = np.triu_indices(n)
    of_matrix = np.empty((n, n), dtype=np.intp)
    of_matrix[rows, columns] = of_matrix[columns, rows] = np.arange(len(rows))
    return rows * n + columns, of_matrix.ravel()
