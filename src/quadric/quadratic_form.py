"""z_k = x'Q_k x for a batch, and its gradients, from the packed triangles of Q."""

from __future__ import annotations

import numpy as np

from quadric import triangle
from quadric.arrays import Array

__all__ = ["input_gradient", "packed_gradient", "values"]


def values(X: Array, packed: Array) -> Array:
    """z, shape (B, m), for X of shape (B, n) and packed of shape (n(n+1)/2, m)."""
    Q = triangle.unpack(packed)
    return np.einsum("bi,kij,bj->bk", X, Q, X, optimize=True)


def input_gradient(X: Array, packed: Array, dz: Array) -> Array:
    """dL/dX, shape (B, n), from dL/dz, shape (B, m)."""
    Q = triangle.unpack(packed)
    return 2 * np.einsum("bk,kij,bj->bi", dz, Q, X, optimize=True)


def packed_gradient(X: Array, dz: Array) -> Array:
    """dL/dpacked, shape (n(n+1)/2, m): the sum over the batch of dz_k M(x)."""
    M = 2 * np.einsum("bk,bi,bj->kij", dz, X, X, optimize=True)
    np.einsum("kii->ki", M)[...] *= 0.5
    return triangle.pack(M)
