"""The changes of coordinates behind slices and outlines of a quadric."""

from collections.abc import Sequence

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array
from quadric.geometry._affine_map import AffineMap


def split_dims(dims: Sequence[int], n: int) -> tuple[list[int], list[int]]:
    """The checked coordinates in `dims`, and the remaining ones of n."""
    listed = [dims] if isinstance(dims, (int, np.integer)) else list(dims)
    kept = [checks.check_integer("dims", dim, at_least=0) for dim in listed]
    if not kept or len(set(kept)) < len(kept) or max(kept) >= n:
        raise ValueError(
            f"dims must hold different whole numbers below {n}, at least one. Got {listed} instead."
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
    """The map that inserts, for kept coordinates about `center`, the rest where F is stationary.

    With x the kept coordinates and y the rest, both measured from `center`, this is
    ``y = -inv(Q_yy) (Q_yx x + g_y / 2)``, where g is the gradient at `center`.
    """
    hidden = Q[np.ix_(rest, rest)]
    sizes = np.sqrt(np.abs(np.diag(hidden))) + (np.diag(hidden) == 0)
    if np.linalg.matrix_rank(hidden / np.outer(sizes, sizes), tol=1e-12) < len(rest):
        raise ValueError(
            "the surface has no outline in these coordinates, because it is straight along a "
            f"direction that is projected away. Got dims {kept}; use slice instead."
        )
    A, t = np.eye(len(Q))[:, kept], center.copy()
    A[rest] = -np.linalg.solve(hidden, Q[np.ix_(rest, kept)])
    t[rest] -= np.linalg.solve(hidden, gradient[rest]) / 2
    return AffineMap(A, t)
