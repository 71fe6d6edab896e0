"""Symmetric matrices as their upper triangles, row by row: q_11, q_12, ..., q_1n, q_22, ...

The triangles of m matrices are stored side by side in one array `packed` of shape
(n(n+1)/2, m): row p holds the entries q_ij of all m matrices for the p-th pair i <= j.

    p     0     1     2    ...   n-1    n    n+1   ...
    pair  (1,1) (1,2) (1,3) ... (1,n) (2,2) (2,3)  ...
"""

from functools import lru_cache

import numpy as np

from quadric._utils.arrays import Array


def n_inputs(pairs: int) -> int:
    """The number of inputs n for the given number of pairs i <= j.

    >>> n_inputs(6)
    3
    """
    n = int((2 * pairs) ** 0.5)
    if n * (n + 1) // 2 != pairs:
        raise ValueError(f"packed must have n(n+1)/2 rows for some n. Got {pairs} instead.")
    return n


def pack(Q: Array) -> Array:
    """The triangles, shape (n(n+1)/2, m), of symmetric matrices of shape (m, n, n).

    >>> pack(np.array([[[1.0, 2.0], [2.0, 3.0]]])).T
    array([[1., 2., 3.]])
    """
    return np.ascontiguousarray(Q.reshape(len(Q), -1)[:, _places(Q.shape[-1])[0]].T)


def unpack(packed: Array) -> Array:
    """The symmetric matrices, shape (m, n, n), that have the given triangles."""
    pairs, m = packed.shape
    n = n_inputs(pairs)
    return np.ascontiguousarray(packed.T)[:, _places(n)[1]].reshape(m, n, n)


@lru_cache(maxsize=8)
def _places(n: int) -> tuple[Array, Array]:
    """Positions of the triangle's entries in a matrix, and of the matrix's in the triangle."""
    rows, columns = np.triu_indices(n)
    of_matrix = np.empty((n, n), dtype=np.intp)
    of_matrix[rows, columns] = of_matrix[columns, rows] = np.arange(len(rows))
    return rows * n + columns, of_matrix.ravel()
