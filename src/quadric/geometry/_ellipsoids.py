"""Ellipsoids: the smallest one around points, and a test of whether two of them intersect."""

from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import FLOAT64, Array, as_numbers
from quadric.geometry._quadric import Quadric

MAX_ITERATIONS = 100_000
MAX_ROUNDING = 0.01  # relative to |F| at the center
# half-length along directions in which the points do not spread (points in a plane, on a line, or a
# single point), relative to the longest half-length (to 1 for a single point)
THICKNESS = 1e-3
MIN_SPREAD = 1e-6  # relative to the largest spread; thinner ellipsoids are numerically flat


def cholesky(name: str, matrix: Array) -> Array:
    """The Cholesky factor, or ValueError if the matrix is not symmetric positive definite."""
    if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
        raise ValueError(f"{name} must be symmetric. Got a matrix that is not.")
    try:
        return np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} must be positive definite. Got a matrix that is not; add a small multiple of "
            "the identity to it."
        ) from None


def ellipsoid(center: Any, shape: Any) -> Quadric:
    """The ellipsoid (x - center)' inv(shape) (x - center) = 1; F is negative inside.

    `shape` is symmetric and positive definite; its eigenvalues are the squared half-lengths.
    """
    center, shape = as_numbers("center", center, FLOAT64), as_numbers("shape", shape, FLOAT64)
    if center.ndim != 1 or shape.shape != (len(center), len(center)):
        raise ValueError(
            "center must have shape (n,) and shape (n, n). "
            f"Got {center.shape} and {shape.shape} instead."
        )
    cholesky("shape", shape)
    return Quadric(np.linalg.inv(shape), np.zeros(len(center)), -1.0).transform(1.0, center)


def smallest_ellipsoid(X: Any, *, tolerance: float = 1e-7) -> Quadric:
    """The ellipsoid of smallest volume around all rows of X, by Khachiyan's algorithm.

    Parameters
    ----------
    X : array of shape (n_points, n)
        Points, one per row.
    tolerance : float
        The volume is too large by a factor of at most (1 + 2 tolerance)^(n/2), unless the algorithm
        stops after 100,000 iterations. The relative error of a single half-length can be larger.
        All points are enclosed in any case.

    Notes
    -----
    This is Khachiyan's coordinate ascent on the dual problem ``max log det sum_i u_i q_i q_i'``,
    q = (x, 1), with the away steps of M. Todd and A. Yildirim (2007), which make it converge
    linearly. It stops when ``q_i' H q_i <= (1 + tolerance)(n + 1)`` for all i, where H is the
    inverse of the sum. By duality, the squared volume is then too large by a factor of at most
    ``(1 + tolerance (n + 1) / n)^n``.

    Examples
    --------
    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> smallest_ellipsoid(square).axes.half_lengths.round(6).tolist()
    [1.414214, 1.414214]
    """
    X = as_numbers("X", X, FLOAT64)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"X must be a non-empty array of shape (n_points, n). Got {X.shape}.")
    tolerance = checks.check_number("tolerance", tolerance, above=0, below=1)
    X = np.unique(X, axis=0)
    middle = (X.max(axis=0) + X.min(axis=0)) / 2
    scale = (X.max(axis=0) - X.min(axis=0)) / 2
    scale[scale == 0] = 1.0  # a constant feature keeps its unit
    Z = (X - middle) / scale
    # the directions in which the points spread
    mean = Z.mean(axis=0)
    _, sigma, directions = np.linalg.svd(np.linalg.qr(Z - mean, mode="r"))
    sigma = np.pad(sigma, (0, Z.shape[1] - len(sigma)))
    rank = int((sigma > MIN_SPREAD * sigma.max()).sum())
    P = directions[:rank]
    center, shape = np.zeros(rank), np.zeros((rank, rank))
    if rank:
        center, shape = _khachiyan((Z - mean) @ P.T, tolerance)
    longest = float(np.sqrt(np.linalg.eigvalsh(shape).max())) if rank else 1.0
    flat = directions[rank:]
    full = P.T @ shape @ P + (THICKNESS * longest) ** 2 * flat.T @ flat
    factor = 1 + 1e-12
    for _ in range(60):
        shape = factor * (full + full.T) / 2
        candidate = ellipsoid(mean + center @ P, shape).transform(scale, middle)
        # BLAS may round the same row differently in another call, so a bound is needed
        rounding = _rounding(candidate, X)
        if rounding.max() > MAX_ROUNDING:
            break
        short = float((candidate.value(X) + rounding).max())
        if short <= 0:
            return candidate
        factor *= 1 + 2 * short + 1e-12  # enclose points that rounding has left outside
    raise ValueError(
        "rounding errors are too large for an ellipsoid around these points. Got points that are "
        "much farther from the origin than from each other; subtract their mean first."
    )


def _rounding(quadric: Quadric, X: Array) -> Array:
    """A bound on the rounding errors of `quadric.value(X)`."""
    size = np.abs(X)
    terms = ((size @ np.abs(quadric.Q)) * size).sum(axis=1) + size @ np.abs(quadric.w)
    return 2 * X.shape[1] * np.finfo(FLOAT64).eps * (terms + abs(quadric.b))


def _khachiyan(X: Array, tolerance: float) -> tuple[Array, Array]:
    """Center and shape of the smallest ellipsoid around points that span the space."""
    N, n = X.shape
    d = n + 1
    q = np.column_stack([X, np.ones(N)])
    u = _first_weights(X)
    for iteration in range(MAX_ITERATIONS):
        if iteration % 100 == 0:  # also discards the rounding errors of the updates
            H = np.linalg.inv((q * u[:, None]).T @ q)
            M = np.einsum("ij,jk,ik->i", q, H, q)
        top = int(np.argmax(M))
        support = np.flatnonzero(u > 0)
        bottom = int(support[np.argmin(M[support])])
        over, under = M[top] / d - 1, 1 - M[bottom] / d
        if over <= tolerance:
            break
        i = top if over >= under else bottom
        step = (M[i] - d) / (d * (M[i] - 1))
        if i == bottom:  # an away step, at most until the weight is zero
            step = max(step, -u[i] / (1 - u[i]))
        u *= 1 - step
        u[i] = max(u[i] + step, 0.0)
        if i == bottom and u[i] < 1e-300:
            u[i] = 0.0
        Hq = H @ q[i]
        product = q @ Hq
        factor = step / (1 - step + step * M[i])
        M = (M - factor * product**2) / (1 - step)
        H = (H - factor * np.outer(Hq, Hq)) / (1 - step)
    center = u @ X
    spread = (X * u[:, None]).T @ X - np.outer(center, center)
    # scale the ellipsoid so that it reaches the farthest point
    solved = np.linalg.solve(spread, (X - center).T)
    farthest = float((solved * (X - center).T).sum(axis=0).max())
    return center, spread * farthest


def _first_weights(X: Array) -> Array:
    """Equal weights on the extreme points of n directions, each orthogonal to the previous ones."""
    N, n = X.shape
    chosen: list[int] = []
    basis = np.zeros((0, n))
    for _ in range(n):
        # the widest direction orthogonal to those already chosen
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
    """Whether two ellipsoids, including their interiors, have no point in common.

    In coordinates in which the first ellipsoid is the unit ball, the second must be farther than 1
    from the center and must not enclose the center.
    """
    for quadric in (first, second):
        if not quadric.is_ellipsoid:
            raise ValueError(f"both surfaces must be ellipsoids. Got {quadric.kind} instead.")
    axes, center = first.axes, first.center
    assert center is not None
    A = axes.directions.T * axes.half_lengths  # x = A z + center
    mapped = second.preimage(A, center)
    return not second.encloses(center) and mapped.distance(np.zeros(first.n_dims)) > 1.0
