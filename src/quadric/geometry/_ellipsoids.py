"""Ellipsoids around points: the smallest one, and whether two of them meet."""

from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, as_numbers
from quadric.geometry._quadric import FLOAT, Quadric

MAX_ITERATIONS = 100_000
WORST_ROUNDING = 0.01  # of the distance from the centre to the surface, in its own units
FLAT = 1e-6  # of the largest spread: a thinner ellipsoid could hardly be told from a plane


def ellipsoid(center: Any, shape: Any) -> Quadric:
    """The ellipsoid (x - center)' inv(shape) (x - center) = 1.

    `shape` is symmetric and positive definite; its eigenvalues are the squared half-lengths.
    F is negative inside.
    """
    center, shape = as_numbers("center", center, FLOAT), as_numbers("shape", shape, FLOAT)
    if center.ndim != 1 or shape.shape != (len(center), len(center)):
        raise ValueError(
            "center must have shape (n,) and shape (n, n). "
            f"Got {center.shape} and {shape.shape} instead."
        )
    if np.abs(shape - shape.T).max() > 1e-8 * np.abs(shape).max():
        raise ValueError("shape must be symmetric, and it is not.")
    try:
        np.linalg.cholesky(shape)
    except np.linalg.LinAlgError:
        raise ValueError("shape must be positive definite, and it is not.") from None
    inverse = np.linalg.inv(shape)
    inverse = (inverse + inverse.T) / 2
    return Quadric(inverse, np.zeros(len(center)), -1.0).transform(1.0, center)


def smallest_ellipsoid(X: Any, *, tolerance: float = 1e-7, thickness: float = 1e-3) -> Quadric:
    """The ellipsoid of least volume that encloses all rows of X, by Khachiyan's algorithm.

    Parameters
    ----------
    X : array of shape (points, n)
    tolerance : float
        The half-lengths are at most a factor of sqrt(1 + tolerance) too large; all points are
        inside in any case.
    thickness : float
        Points in a plane (or a line, or one point) have no ellipsoid with a volume: along the
        missing directions this half-length is given to it, relative to the longest one (to 1 for
        a single point).

    Notes
    -----
    Khachiyan's coordinate ascent on the dual problem ``max log det sum_i u_i q_i q_i'``,
    q = (x, 1), with the steps away from points of too much weight that M. Todd and A. Yildirim
    added (2007), which make it converge linearly.

    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> smallest_ellipsoid(square).axes.half_lengths.round(6).tolist()
    [1.414214, 1.414214]
    """
    X = as_numbers("X", X, FLOAT)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"X must have shape (points, n), neither zero. Got {X.shape} instead.")
    tolerance = checks.check_number("tolerance", tolerance, above=0, below=1)
    thickness = checks.check_number("thickness", thickness, above=0)
    X = np.unique(X, axis=0)
    middle = (X.max(axis=0) + X.min(axis=0)) / 2
    scale = (X.max(axis=0) - X.min(axis=0)) / 2
    scale[scale == 0] = 1.0  # a feature that is constant here keeps its unit
    Z = (X - middle) / scale
    # the directions in which the points spread at all
    mean = Z.mean(axis=0)
    _, sigma, directions = np.linalg.svd(np.linalg.qr(Z - mean, mode="r"))
    sigma = np.pad(sigma, (0, Z.shape[1] - len(sigma)))
    spread = sigma > FLAT * max(float(sigma.max()), 1e-300)
    rank = int(spread.sum()) if sigma.max() > 0 else 0
    P = directions[:rank]
    center, shape = np.zeros(rank), np.zeros((rank, rank))
    if rank:
        center, shape = _khachiyan((Z - mean) @ P.T, tolerance)
    longest = float(np.sqrt(np.linalg.eigvalsh(shape).max())) if rank else 1.0
    full = P.T @ shape @ P
    for direction in directions[rank:]:
        full += (thickness * longest) ** 2 * np.outer(direction, direction)
    factor = 1 + 1e-12
    for _ in range(60):
        shape = factor * (full + full.T) / 2
        found = ellipsoid(mean + center @ P, shape).transform(scale, middle)
        # rounding differs from call to call, as BLAS takes rows in other orders
        rounding = _rounding(found, X)
        if rounding.max() > WORST_ROUNDING:
            break
        short = float((found.value(X) + rounding).max())
        if short <= 0:
            return found
        factor *= 1 + 2 * short + 1e-12  # what rounding has put outside is taken in again
    raise ValueError(
        "no ellipsoid around these points can be told from rounding errors. Got points that are "
        "much farther from the origin than from each other; subtract their mean first."
    )


def _rounding(quadric: Quadric, X: Array) -> Array:
    """A bound on the rounding errors of `quadric.value(X)`."""
    size = np.abs(X)
    terms = ((size @ np.abs(quadric.Q)) * size).sum(axis=1) + size @ np.abs(quadric.w)
    return 2 * X.shape[1] * np.finfo(FLOAT).eps * (terms + abs(quadric.b))


def _khachiyan(X: Array, tolerance: float) -> tuple[Array, Array]:
    """Centre and shape for points that span the space."""
    N, n = X.shape
    d = n + 1
    q = np.column_stack([X, np.ones(N)])
    u = _first_weights(X)
    H = np.linalg.inv((q * u[:, None]).T @ q)
    M = np.einsum("ij,jk,ik->i", q, H, q)
    for iteration in range(MAX_ITERATIONS):
        top = int(np.argmax(M))
        held = np.flatnonzero(u > 0)
        bottom = int(held[np.argmin(M[held])])
        over, under = M[top] / d - 1, 1 - M[bottom] / d
        if over <= tolerance:
            break
        i = top if over >= under else bottom
        step = (M[i] - d) / (d * (M[i] - 1))
        if i == bottom:  # away from it, at most until it has no weight
            step = max(step, -u[i] / (1 - u[i]))
        u *= 1 - step
        u[i] = max(u[i] + step, 0.0)
        if i == bottom and u[i] < 1e-300:
            u[i] = 0.0
        if iteration % 100 == 99:  # rounding errors of the updates are thrown away
            H = np.linalg.inv((q * u[:, None]).T @ q)
            M = np.einsum("ij,jk,ik->i", q, H, q)
            continue
        Hq = H @ q[i]
        product = q @ Hq
        factor = step / (1 - step + step * M[i])
        M = (M - factor * product**2) / (1 - step)
        H = (H - factor * np.outer(Hq, Hq)) / (1 - step)
    center = u @ X
    spread = (X * u[:, None]).T @ X - np.outer(center, center)
    # as large as the farthest point needs
    solved = np.linalg.solve(spread, (X - center).T)
    farthest = float((solved * (X - center).T).sum(axis=0).max())
    return center, spread * farthest


def _first_weights(X: Array) -> Array:
    """Equal weights on the extreme points of n directions, each across the ones before."""
    N, n = X.shape
    chosen: list[int] = []
    basis = np.zeros((0, n))
    for _ in range(n):
        # the widest direction left, of the points projected across those already chosen
        rest = X - (X @ basis.T) @ basis
        direction = np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)[2][0]
        along = rest @ direction
        low, high = int(np.argmin(along)), int(np.argmax(along))
        chosen += [low, high]
        new = rest[high] - rest[low]
        basis = np.vstack([basis, new / np.linalg.norm(new)])
    u = np.zeros(N)
    u[chosen] = 1.0
    return u / u.sum()


def disjoint(first: Quadric, second: Quadric) -> bool:
    """Whether two ellipsoids, insides included, have no point in common.

    In coordinates in which the first is the unit ball, the second must be farther than 1 from the
    centre, and must not enclose it.
    """
    for quadric in (first, second):
        if not quadric.is_ellipsoid:
            raise ValueError(f"both must be ellipsoids. Got {quadric.kind} instead.")
    axes, center = first.axes, first.center
    assert center is not None
    A = axes.directions.T * axes.half_lengths  # x = A z + center
    seen = second.preimage(A, center)
    if second.encloses(center):
        return False
    return seen.distance(np.zeros(first.n_dims)) > 1.0
