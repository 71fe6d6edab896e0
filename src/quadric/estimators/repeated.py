"""Repeated samples as weights, in one order: full-batch training then cannot tell them apart.

A sum over samples depends, in its last digits, on their order and on whether a sample is repeated
or weighted; a long L-BFGS run on a problem that is not convex turns last digits into other
solutions. Merged and sorted, equal data are equal to the last bit.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from quadric.arrays import Array, Matrix

__all__ = ["merge_repeated"]


def merge_repeated(
    X: Matrix, Y: Array, weights: Array | None
) -> tuple[Matrix, Array, Array | None]:
    """Distinct (x, y), sorted, with the sums of their weights (None where all are 1)."""
    if weights is not None:
        kept = np.flatnonzero(weights)
        X, Y, weights = X[kept], Y[kept], weights[kept]
    Y = Y + 0.0  # -0.0 becomes 0.0: the same number, the same bytes
    if sparse.issparse(X):
        keys = _sparse_keys(X, Y)
    else:
        X = X + 0.0
        rows = np.ascontiguousarray(np.hstack([X, Y]))
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if weights is not None or len(first) < len(Y):
        each = np.ones(len(Y)) if weights is None else weights.astype(np.float64)
        # summed from the smallest, so that the order of the samples does not matter
        order = np.lexsort((each, group))
        sums = np.bincount(group[order], weights=each[order]).astype(Y.dtype)
        weights = None if (sums == 1).all() else sums
    return X[first], Y[first], weights


def _sparse_keys(X: Matrix, Y: Array) -> Array:
    keys = np.empty(len(Y), dtype=object)
    for i in range(len(Y)):
        row = slice(X.indptr[i], X.indptr[i + 1])
        stored = X.data[row] + 0.0
        present = stored != 0
        keys[i] = (
            X.indices[row][present].astype(np.int64).tobytes()
            + b"|" + stored[present].tobytes() + b"|" + Y[i].tobytes()
        )  # fmt: skip
    return keys
