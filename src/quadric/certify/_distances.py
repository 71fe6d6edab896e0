"""Distances to the zeros of quadratic functions, with a proven lower bound for each.

A function is given about many points p by its value F > 0 and its gradient g there, and by one
matrix A: ``F(p + d) = F + g'd + d'Ad``. The distance is the length of the shortest d with
F(p + d) = 0, which `geometry._nearest` computes in the coordinates of the eigenvectors of A.

The computed distance has rounding errors. The bound has none, because it does not trust the
solution: for every nu >= 0 for which I + nu A has no negative eigenvalue, each d with
F(p + d) <= 0 satisfies

    |d|^2 >= |d|^2 + nu F(p + d) >= min over d of the same = nu F - nu^2/4 g'(I + nu A)^-1 g

(weak duality), and for one nu, that of the solution, both sides are equal. The errors of the
eigenvalues, the eigenvectors, F and g are bounded by norms and subtracted from F, with d limited to
the computed distance; the errors of evaluating the right-hand side are bounded as usual (N. Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1).
"""

from dataclasses import dataclass

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry._nearest import CACHED, steps_to_surface

EPS = float(np.finfo(np.float64).eps)
FARTHEST = 1e100  # so that squares are finite
TOUCHES = 1e-12  # share of F; a smaller minimum counts as zero
SAFETY = 4.0  # factor for the products of bounds, which are themselves rounded


def gamma(n: int) -> float:
    """Bound on the relative error of a sum of n products."""
    return SAFETY * (n + 4) * EPS


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix A, with bounds on their errors.

    ``|A - V diag(lam) V'| <= error`` and ``|V'V - I| <= skew`` in the spectral norm.
    """

    lam: Array
    V: Array
    error: float
    skew: float

    @classmethod
    def of(cls, A: Array, error: float) -> "Spectrum":
        """Decompose A, whose own entries have a total error of at most `error` (a norm)."""
        n, size = len(A), float(np.linalg.norm(A))
        if size == 0.0:
            return cls(np.zeros(n), np.eye(n), error, 0.0)
        lam, V = np.linalg.eigh(A)
        rest = float(np.linalg.norm(A - (V * lam) @ V.T))
        largest = float(np.abs(lam).max())
        error += rest + gamma(n) * (size + n * largest)
        skew = float(np.linalg.norm(V.T @ V - np.eye(n))) + gamma(n) * n
        return cls(lam, V, error, skew)

    def negated(self) -> "Spectrum":
        """The spectrum of -A."""
        return Spectrum(-self.lam, self.V, self.error, self.skew)


def lower_bounds(lowest: float, F: Array, slope: Array) -> Array:
    """A quick lower bound on the distance, from the gradient's length and the lowest eigenvalue.

    ``F - slope r - L r^2`` is positive for all smaller r.
    """
    L = max(0.0, -lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = 2 * F / (slope + np.sqrt(slope**2 + 4 * L * F))
    return np.where((F > 0) & ~np.isnan(bound), bound, 0.0)


@dataclass(frozen=True)
class Distances:
    """The shortest steps to F = 0, one per row, along the eigenvectors V.

    A length is infinite, and its step NaN, if F has no zero. `radii` are proven lower bounds on the
    lengths.
    """

    steps: Array
    V: Array
    lengths: Array
    radii: Array


def distances(spectrum: Spectrum, F: Array, g: Array, F_error: Array, g_error: Array) -> Distances:
    """The distances to F = 0 from points where F is not negative.

    `F_error` and `g_error` bound the error of F and the length of the error of g.
    """
    n, G = len(spectrum.lam), g @ spectrum.V
    steps = steps_to_surface(spectrum.lam, F, G, touches=False)
    _touch(spectrum.lam, F, G, steps)
    lengths = np.linalg.norm(steps, axis=1)
    lengths[np.isnan(lengths)] = np.inf
    # g = V G + rest, and the rest is as small as V is orthogonal
    rest = (spectrum.skew + gamma(n) * np.sqrt(n)) * np.linalg.norm(g, axis=1) * SAFETY
    slope_error, radii = rest + g_error, np.empty(len(F))
    count = max(1, CACHED // n)
    for start in range(0, len(F), count):
        rows = slice(start, start + count)
        given = (F[rows] - F_error[rows], G[rows], steps[rows], lengths[rows], slope_error[rows])
        radii[rows] = _proven(spectrum, *given)
    return Distances(steps, spectrum.V, lengths, radii)


def _touch(lam: Array, F: Array, G: Array, steps: Array) -> None:
    """Fill in the steps to the minimum of F where it is zero, up to rounding errors."""
    rows, curved = np.flatnonzero(np.isnan(steps).any(axis=1)), lam > 0
    down = np.zeros((len(rows), len(lam)))
    down[:, curved] = -G[rows][:, curved] / (2 * lam[curved])
    touches = F[rows] + (G[rows] * down).sum(axis=1) / 2 <= TOUCHES * F[rows]
    steps[rows[touches]] = down[touches]


def _proven(
    spectrum: Spectrum, F: Array, G: Array, steps: Array, lengths: Array, slope_error: Array
) -> Array:
    """Lower bounds on the lengths; F is already reduced by its error."""
    lam, curve_error = spectrum.lam, spectrum.error
    endless = np.isinf(lengths)
    with np.errstate(all="ignore"):
        # where F has no zero, go until the errors have used up half of its minimum
        curved = lam > 0
        minimum = F - (G[:, curved] ** 2 / (4 * lam[curved])).sum(axis=1)
        far = np.minimum(lower_bounds(-curve_error, minimum / 2, slope_error), FARTHEST)
        reach = np.where(endless, far, lengths)
        F = F - slope_error * reach - curve_error * reach**2
        lowest = float(lam.min())
        end = np.inf if lowest >= 0 else (1 - 8 * EPS) / -lowest
        down = G / 2 + lam * steps
        found = -(steps * down).sum(axis=1) / (down * down).sum(axis=1)
        nu = np.where(endless, 4 * reach**2 / minimum, found)
        best = np.zeros(len(F))
        for shrink in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
            candidate = np.minimum(nu, end) * (1 - shrink)
            best = np.fmax(best, _dual(lam, F, G, candidate))
        touching = ~endless & ~np.isfinite(nu)  # at a minimum of F, nu would be infinite
        for power in range(1, 12) if touching.any() else ():
            candidate = np.where(touching, 10.0**power / lam.max(), 0.0)
            best = np.fmax(best, _dual(lam, F, G, candidate))
        bound = np.sqrt(best / (1 + spectrum.skew)) * (1 - SAFETY * EPS)
    bound = np.where(np.isfinite(bound) & (F > 0), bound, 0.0)
    return np.minimum(bound, reach)


def _dual(lam: Array, F: Array, G: Array, nu: Array) -> Array:
    """nu F - nu^2/4 g'(I + nu A)^-1 g, less the bound on its rounding error; NaN if not valid."""
    nu = nu[:, None]
    down = (1 + nu * lam) * (1 - 2 * EPS) - 2 * EPS * np.abs(nu * lam)
    terms = np.where(G == 0, 0.0, (nu * G) ** 2 / (4 * down)).sum(axis=1)
    gain = nu[:, 0] * F
    value = gain - terms - gamma(len(lam)) * (np.abs(gain) + np.abs(terms))
    return np.where((down > 0).all(axis=1) & (nu[:, 0] >= 0), value, np.nan)
