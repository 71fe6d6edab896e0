"""Affine changes of coordinates x -> A x + t, including those for slices and outlines."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from quadric.checks import Array, check_integer


class AffineMap(NamedTuple):
    """The map x -> A x + t.

    If A is a vector, it represents a diagonal matrix. A vector is faster than a matrix, and exact
    for features whose units differ by many orders of magnitude.
    """

    A: Array
    t: Array

    @classmethod
    def simplest(cls, A: Array, t: Array) -> Self:
        """The map, with A stored as a vector if it is diagonal and invertible, else as a matrix."""
        diagonal = A if A.ndim == 1 else np.diag(A)
        if A.ndim == 1 or (A.shape[0] == A.shape[1] and not (A - np.diag(diagonal)).any()):
            return cls(diagonal.copy() if diagonal.all() else np.diag(diagonal), t)
        return cls(A, t)

    @property
    def matrix(self) -> Array:
        """A as a matrix."""
        return np.diag(self.A) if self.A.ndim == 1 else self.A

    @property
    def is_onto(self) -> bool:
        """Whether the rows of A are linearly independent, up to rounding errors."""
        if self.A.ndim == 1:
            return True
        A = self.A / self._units
        lengths = np.linalg.norm(A, axis=1, keepdims=True)
        if A.shape[0] > A.shape[1] or not lengths.all():
            return False
        return bool(np.linalg.svd(A / lengths, compute_uv=False)[-1] > 1e-10)

    @property
    def _units(self) -> Array:
        """The sizes of the columns of a square matrix, so that units do not matter; else 1."""
        n, k = self.A.shape
        lengths = np.linalg.norm(self.A, axis=0) if n == k else np.ones(k)
        return np.where(lengths > 0, lengths, 1.0)

    def apply(self, X: Array) -> Array:
        """A x + t for each row of X."""
        return (X * self.A if self.A.ndim == 1 else X @ self.A.T) + self.t

    def pull_back(self, G: Array) -> Array:
        """A'g for each row of G."""
        return G * self.A if self.A.ndim == 1 else G @ self.A

    def solve(self, y: Array) -> Array:
        """The x nearest to the origin with A x + t = y."""
        if self.A.ndim == 1:
            return (y - self.t) / self.A
        units = self._units
        if self.A.shape[0] == self.A.shape[1] and self.is_onto:
            # thin ellipsoids have rows of very different sizes
            sizes = np.linalg.norm(self.A / units, axis=1)
            return np.linalg.solve(self.A / units / sizes[:, None], (y - self.t) / sizes) / units
        return np.linalg.lstsq(self.A, y - self.t, rcond=None)[0]

    def after(self, first: Self) -> Self:
        """The map that applies `first` and then this map."""
        if first.A.ndim == 1:
            A = self.A * first.A
        else:
            A = self.A[:, None] * first.A if self.A.ndim == 1 else self.A @ first.A
        return self.simplest(A, self.apply(first.t))

    def split(self) -> tuple[Self, Self]:
        """The map as (second, first), where `first` is diagonal and `second` is well scaled.

        The columns of `second.A` have length 1, and `second.t` is the point of the image that is
        nearest to the origin.
        """
        lengths = np.linalg.norm(self.A, axis=0)
        lengths[lengths == 0] = 1.0
        A = self.A / lengths
        u = np.linalg.lstsq(A, -self.t, rcond=None)[0]
        return type(self)(A, A @ u + self.t), type(self)(lengths, -u)


def split_dims(dims: Sequence[int], n: int) -> tuple[list[int], list[int]]:
    """The coordinates in `dims`, checked, and the rest of the n coordinates."""
    listed = [dims] if isinstance(dims, (int, np.integer)) else list(dims)
    kept = [check_integer("dims", dim, at_least=0) for dim in listed]
    if not kept or len(set(kept)) < len(kept) or max(kept) >= n:
        raise ValueError(
            f"dims must contain one or more distinct integers below {n}. Got {listed} instead."
        )
    return kept, [dim for dim in range(n) if dim not in kept]


def slice_map(kept: list[int], at: Array) -> AffineMap:
    """The map that inserts the kept coordinates into the point `at`."""
    base = at.copy()
    base[kept] = 0.0
    return AffineMap(np.eye(len(at))[:, kept], base)


def outline_map(
    Q: Array, gradient: Array, center: Array, kept: list[int], rest: list[int]
) -> AffineMap:
    """The map from the kept coordinates, relative to `center`, to points where F is stationary.

    With x the kept coordinates and y the rest, both measured from `center`, this is
    ``y = -inv(Q_yy) (Q_yx x + g_y / 2)``, where g is the gradient at `center`.
    """
    hidden = Q[np.ix_(rest, rest)]
    if sum(signature(hidden)) < len(rest):
        raise ValueError(
            "the surface has no outline in these coordinates, because it is straight along a "
            f"direction that is projected away. Got dims {kept}; use slice instead."
        )
    A, t = np.eye(len(Q))[:, kept], center.copy()
    A[rest] = -np.linalg.solve(hidden, Q[np.ix_(rest, kept)])
    t[rest] -= np.linalg.solve(hidden, gradient[rest]) / 2
    return AffineMap(A, t)


def signature(hidden: Array) -> tuple[int, int]:
    """The numbers of positive and of negative eigenvalues of a matrix, in any units."""
    sizes = np.sqrt(np.abs(np.diag(hidden))) + (np.diag(hidden) == 0)
    eigenvalues = np.linalg.eigvalsh(hidden / np.outer(sizes, sizes))
    return int((eigenvalues > 1e-12).sum()), int((eigenvalues < -1e-12).sum())
