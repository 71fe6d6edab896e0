"""Ellipsoids: the smallest one around points, and a test of whether two of them intersect."""

from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array, check_number
from quadric.geometry._function_and_nearest import EPS, AffineMap
from quadric.geometry._quadric import Quadric

MAX_ITERATIONS = 100_000
MAX_ROUNDING = 0.01  # relative to |F| at the center
# half-length along directions in which the points do not spread (points in a plane, on a line, or a
# single point), relative to the longest half-length (to 1 for a single point)
THICKNESS = 1e-3
MIN_SPREAD = 1e-12  # relative to the coordinates; thinner sets are flat up to rounding errors
THINNEST = 3e-7  # half-length, relative to the longest one, that a neuron in float64 can represent
SPLIT = 2.0**27 + 1  # splits a float64 number into two halves


def smallest_ellipsoid(X: Any, *, tolerance: float = 1e-7, thinnest: float = 0.0) -> Quadric:
    """The ellipsoid of smallest volume around all rows of X, by Khachiyan's algorithm.

    Parameters
    ----------
    X : array of shape (n_points, n)
        Points, one per row.
    tolerance : float
        The volume is too large by a factor of at most (1 + 2 tolerance)^(n/2), unless the algorithm
        stops after 100,000 iterations. The relative error of a single half-length can be larger.
        All points are enclosed in any case.
    thinnest : float
        The smallest half-length relative to the largest one. Thinner ellipsoids are enlarged.

    Notes
    -----
    This is Khachiyan's coordinate ascent on the dual problem ``max log det sum_i u_i q_i q_i'``,
    q = (x, 1), with the away steps of M. Todd and A. Yildirim (2007), which make it converge
    linearly. It stops when ``q_i' H q_i <= (1 + tolerance)(n + 1)`` for all i, where H is the
    inverse of the sum. By duality, the squared volume is then too large by a factor of at most
    ``(1 + tolerance (n + 1) / n)^n``.

    The problem does not depend on the coordinates, so it is solved in coordinates in which the
    points spread equally in all directions. They are computed with twice the precision of float64.
    The result is the preimage of the unit ball under an affine map. Its volume also grows with the
    rounding errors of F on the points. They are about 1e-15 times the ratio of the largest
    coordinate to the smallest half-length, so they matter if this ratio exceeds 1e8. Points whose
    spread in some direction is below 1e-12 of their coordinates count as flat. Flat directions have
    a half-length of 1e-3 of the longest one.

    Examples
    --------
    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> smallest_ellipsoid(square).axes.half_lengths.round(6).tolist()
    [1.414214, 1.414214]
    """
    tolerance = check_number("tolerance", tolerance, above=0, below=1)
    X = np.unique(np.asarray(X, dtype=FLOAT64), axis=0)
    half = X.max(axis=0) / 2 - X.min(axis=0) / 2
    # powers of two, because they do not round; a constant feature keeps its unit
    scale = np.where(half > 0, 2.0 ** np.ceil(np.log2(np.where(half > 0, half, 1.0))), 1.0)
    A, t = _to_unit_ball(X / scale, tolerance, thinnest)
    ball = Quadric(np.eye(X.shape[1]), np.zeros(X.shape[1]), -1.0)
    for _ in range(60):
        candidate = ball._preimage(AffineMap(A / scale, t))
        # BLAS may round the same row differently in another call, so a bound is needed
        rounding = candidate._rounding(X)
        if rounding.max() > MAX_ROUNDING:
            break
        short = float((candidate.value(X) + rounding).max())
        if short <= 0:
            return candidate
        factor = 1 / np.sqrt(1 + short + 4 * EPS)  # enclose points that are left outside
        A, t = A * factor, t * factor
    raise ValueError(
        "rounding errors are too large for an ellipsoid around these points. Got points that are "
        "much farther from the origin than from each other; subtract their mean first."
    )


def _to_unit_ball(Z: Array, tolerance: float, thinnest: float) -> tuple[Array, Array]:
    """The map A z + t from the smallest ellipsoid around points to the unit ball.

    Widest directions come first. Each row of A is a combination of the first directions, up to its
    own, so that a row of a wide direction contains nothing of the large coefficients of a thin one.
    """
    mean = Z.mean(axis=0)
    _, _, directions = np.linalg.svd(np.linalg.qr(Z - mean, mode="r"))
    A, t = directions, -directions @ mean
    rank = len(A)
    for _ in range(3):  # the first map depends on rounding errors, the last does not
        Y = apply_accurately(A, t, Z)
        middle = Y.mean(axis=0)
        R = np.linalg.qr(Y - middle, mode="r") / np.sqrt(len(Y))
        if A is directions:  # the diagonal of R holds the spreads
            spreads = np.zeros(rank)
            spreads[: len(R)] = np.abs(np.diag(R))
            flat = spreads <= MIN_SPREAD * np.abs(Z).max()
            rank = int(np.argmax(flat)) if flat.any() else rank
        if rank == 0:
            break
        inverse = np.linalg.inv(R[:rank, :rank]).T
        A, t = inverse @ A[:rank], inverse @ (t - middle)[:rank]
    longest = 1.0
    if rank:
        center, shape = _khachiyan(apply_accurately(A, t, Z), tolerance)
        inverse = np.linalg.inv(np.linalg.cholesky(shape))
        A, t = inverse @ A, inverse @ (t - center)
        A, t, longest = _thickened(A, t, thinnest)
    rows = directions[rank:] / (THICKNESS * longest)
    return np.vstack([A[:rank], rows]), np.concatenate([t[:rank], -rows @ mean])


def _thickened(A: Array, t: Array, thinnest: float) -> tuple[Array, Array, float]:
    """The map to the unit ball from an ellipsoid that is not too thin, and its longest half-length.

    The center stays where it is, and the new ellipsoid contains the old one.
    """
    _, sigma, V = np.linalg.svd(A, full_matrices=False)
    longest = float(1 / sigma[-1])
    if sigma[0] * thinnest * longest <= 1:
        return A, t, longest
    center = AffineMap(A, t).solve(np.zeros(len(A)))
    order = slice(None, None, -1)  # the widest direction first
    A = np.minimum(sigma, 1 / (thinnest * longest))[order, None] * V[order]
    return A, -A @ center, longest


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
    """Whether it is certain that two ellipsoids, including their interiors, have no common point.

    In coordinates in which the first ellipsoid is the unit ball, the second must be farther than 1
    from the center and must not enclose the center. Then a plane lies between the two ellipsoids.
    The answer is False if rounding errors could exceed the distance between them.
    """
    for quadric in (first, second):
        if not quadric.is_ellipsoid:
            raise ValueError(f"both surfaces must be ellipsoids. Got {quadric.kind} instead.")
    center = first.center
    assert center is not None
    ball = _map_to_ball(first)
    nearest = second.preimage(np.linalg.inv(ball.matrix), center).nearest(np.zeros(len(center)))
    distance = float(np.linalg.norm(nearest))
    if second.encloses(center) or distance <= 1.0:
        return False
    normal = ball.pull_back(nearest / distance)
    return _largest(first, normal) < -_largest(second, -normal)


def _map_to_ball(quadric: Quadric) -> AffineMap:
    """The map from an ellipsoid to the unit ball."""
    if quadric._origin is not None:
        source, change = quadric._origin
        is_ball = np.array_equal(source.Q, np.eye(len(source.w))) and not source.w.any()
        if is_ball and source.b == -1:
            return change
    A = quadric.axes.directions / quadric.axes.half_lengths[:, None]
    return AffineMap(A, -A @ np.asarray(quadric.center))


def _largest(quadric: Quadric, normal: Array) -> float:
    """An upper bound on normal'x for the points x of an ellipsoid.

    For y = A x + t and any v, it is v'(y - t) + (normal - A'v)'x, where y is in the unit ball. The
    best v makes the last term vanish, up to rounding errors.
    """
    change = _map_to_ball(quadric)
    A, t, n = change.matrix, change.t, len(normal)
    inverse = np.linalg.inv(A)
    v = inverse.T @ normal
    rest = apply_accurately(A.T, -normal, v[None])[0]
    reach = np.abs(inverse @ t) + np.linalg.norm(inverse, axis=1)
    size = float(np.linalg.norm(v))
    slack = 4 * (n + 8) * EPS * (size + np.abs(v) @ np.abs(t))
    return float(size - v @ t + 2 * np.abs(rest) @ reach + slack)


# ---- products with about twice the precision of float64 ----
# They use the error-free transformations of T. Ogita, S. Rump and S. Oishi, "Accurate sum and dot
# product", 2005.


def apply_accurately(A: Array, t: Array, X: Array) -> Array:
    """A x + t for each row of X, also where the terms cancel."""
    total = np.broadcast_to(t, (len(X), len(t)))
    error = np.zeros_like(total)
    for column, a in zip(X.T, A.T, strict=True):
        term, lost = _product(column[:, None], a)
        total, rounded = _sum(total, term)
        error = error + (lost + rounded)
    return total + error


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b, and its rounding error (D. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b, and its rounding error (T. Dekker)."""
    (a1, a2), (b1, b2), product = _halves(a), _halves(b), a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _halves(a: Array) -> tuple[Array, Array]:
    """The first and the last 26 digits of a."""
    scaled = SPLIT * a
    first = scaled - (scaled - a)
    return first, a - first
