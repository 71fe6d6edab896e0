"""The nearest point on a quadric, found with the secular equation.

At the point x nearest to p, ``x - p`` is parallel to the gradient of F. Along the axes of Q the
step d = x - p is ``d_i = -(nu/2) g_i / (1 + nu lambda_i)``, where g is the gradient at p. The
nearest such x is the one for which ``I + nu Q`` has no negative eigenvalue (J. Moré,
Generalizations of the trust region problem, 1993). In the range of nu where this holds,
``F(p + d)`` decreases strictly with nu, so its zero can be bracketed. If it has no zero (the "hard
case": p is a center or lies on an axis), nu is at the end of the range, and the rest of the step is
taken along the axis whose eigenvalue defines that end.

The range of nu is parametrized by r from 0 to infinity, such that
``d_i = -(r/2) (g_i/L) / (1 + r kappa_i)`` is accurate at both ends. If Q has a negative eigenvalue,
L is the magnitude of the lowest one, ``nu = r/(1+r)/L`` and ``kappa_i = 1 + lambda_i/L``.
Otherwise, L is the largest eigenvalue, ``nu = r/L`` and ``kappa_i = lambda_i/L``.
"""

import numpy as np

from quadric.checks import Array

ITERATIONS = 200
CACHED = 2**14  # numbers in an array that stays in the processor's cache
EPS = float(np.finfo(np.float64).eps)
MAX_R = 1e100  # at larger r, a component of the gradient is practically zero


def steps_to_surface(eigenvalues: Array, value: Array, gradient: Array, *, touches: bool) -> Array:
    """The shortest d with F(p + d) = 0, one row per point p; NaN if there is none.

    Parameters
    ----------
    eigenvalues : array of shape (n,)
        Eigenvalues of Q, exactly zero where Q is singular. The coordinates are those of its
        eigenvectors.
    value, gradient : arrays of shape (N,) and (N, n)
        F and its gradient at the points p.
    touches : bool
        Whether F has zeros but never changes sign, as for a point or a double plane. The nearest
        zero is then the nearest extremum of F.
    """
    d = np.zeros_like(gradient)
    if touches:
        curved = eigenvalues != 0
        d[:, curved] = -gradient[:, curved] / (2 * eigenvalues[curved])
        return d
    for sign in (1.0, -1.0):
        above = np.flatnonzero(sign * value > 0)
        count = max(1, CACHED // len(eigenvalues))
        for start in range(0, len(above), count):
            rows = above[start : start + count]
            d[rows] = _steps_down(sign * eigenvalues, sign * value[rows], sign * gradient[rows])
    return d


def _steps_down(lam: Array, F: Array, g: Array) -> Array:
    """Steps for points with F > 0; the module's docstring explains r, L and kappa."""
    lowest = float(lam.min())
    L = abs(lowest) if lowest < 0 else float(np.abs(lam).max()) or 1.0
    lam, F, g = lam / L, F / L, g / L
    kappa = lam - min(lowest / L, 0.0)
    if lowest < 0:
        kappa[kappa <= 4 * EPS] = 0.0  # equal to the lowest eigenvalue, up to rounding

    r = _solve_secular(lam, kappa, F, g)
    hard = np.isnan(r)
    d = np.empty_like(g)
    d[~hard] = _step(r[~hard, None], kappa, g[~hard])
    d[hard] = _hard_steps(lam, kappa, F[hard], g[hard]) if lowest < 0 else np.nan
    return d


def _step(r: Array, kappa: Array, g: Array) -> Array:
    return -r / 2 * g / (1 + r * kappa)


def _solve_secular(lam: Array, kappa: Array, F: Array, g: Array) -> Array:
    """The r with F(p + d(r)) = 0, by Newton's method within a bracket; NaN in the hard case."""

    def excess(rows: Array, r: Array) -> tuple[Array, Array]:
        """F(p + d(r)) and its derivative with respect to r."""
        r = r[:, None]
        d = _step(r, kappa, g[rows])
        slope = -g[rows] / 2 / (1 + r * kappa) ** 2
        return (
            F[rows] + ((g[rows] + lam * d) * d).sum(axis=1),
            (slope * (g[rows] + 2 * lam * d)).sum(axis=1),
        )

    low, high = np.full(len(F), 1 / MAX_R), np.full(len(F), MAX_R)
    r = np.ones(len(F))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        hard = ~(excess(np.arange(len(F)), high)[0] < 0)
        active = np.flatnonzero(~hard)
        for _ in range(ITERATIONS):
            if not len(active):
                break
            now = r[active]
            f, slope = excess(active, now)
            low[active] = lower = np.where(f > 0, now, low[active])
            high[active] = upper = np.where(f > 0, high[active], now)
            # r may have any magnitude: first bisect its exponent, then take Newton steps
            wide = upper > 4 * lower
            middle = np.where(wide, np.sqrt(lower) * np.sqrt(upper), (lower + upper) / 2)
            newton = now - f / slope
            usable = ~wide & (newton > lower) & (newton < upper)
            following = np.where(usable, newton, middle)
            r[active] = following
            done = (np.abs(following - now) <= EPS * now) | (upper - lower <= 2 * EPS * lower)
            active = active[~done]
    r[hard] = np.nan
    return r


def _hard_steps(lam: Array, kappa: Array, F: Array, g: Array) -> Array:
    """Steps for r = infinity: the gradient has no component along axes with kappa = 0."""
    free = kappa == 0
    d = np.zeros_like(g)
    d[:, ~free] = -g[:, ~free] / (2 * kappa[~free])
    rest = F + ((g + lam * d) * d).sum(axis=1)
    d[:, np.flatnonzero(free)[0]] = np.sqrt(np.maximum(rest, 0.0))
    return d
