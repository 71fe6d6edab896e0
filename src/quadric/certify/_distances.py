"""Distances to the zeros of quadratic functions, with a proven lower bound for each.

A function is given about many points p by its value F > 0 and its gradient g there, and by one
matrix A: ``F(p + d) = F + g'd + d'Ad``. The distance is the length of the shortest d with
F(p + d) = 0, which `steps_to_surface` computes in the coordinates of the eigenvectors of A.

The computed distance has rounding errors. The bound has none, because it does not trust the
solution: for every nu >= 0 for which I + nu A has no negative eigenvalue, each d with
F(p + d) <= 0 satisfies

    |d|^2 >= |d|^2 + nu F(p + d) >= min over d of the same = nu F - nu^2/4 g'(I + nu A)^-1 g

(weak duality), and for one nu, that of the solution, both sides are equal. The errors of the
eigenvalues, the eigenvectors, F and g are bounded by norms and subtracted from F, with d limited to
a reach: the computed distance or, where the errors at this distance exceed F, a shorter one. The
errors of evaluating the right-hand side are bounded as usual (N. Higham, Accuracy and Stability of
Numerical Algorithms, section 3.1).

Lengths and values are measured in powers of two of their usual size, so that no square underflows
or overflows.
"""

from dataclasses import dataclass, replace

import numpy as np

from quadric.certify._model_and_rounding import EPS, SAFETY, TINY, gamma, norm, power_of_two
from quadric.checks import Array
from quadric.geometry import CACHED, steps_to_surface

FARTHEST = 1e100  # in units of the usual length, so that squares are finite
TOUCHES = 1e-12  # share of F; a smaller minimum counts as zero
SHARES = (0.9, 0.5, 0.1)  # of F that the errors may use up within a reach
GOOD = 0.99  # share of the distance that needs no second attempt
ARTIFACT = 1e-3  # share of a step along axes on which F is constant up to errors


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix A, with bounds on their errors.

    ``|A - V diag(lam) V'| <= error`` and ``|V'V - I| <= skew`` in the spectral norm. An eigenvalue
    of at most `doubt` may be a rounding error of zero.
    """

    lam: Array
    V: Array
    error: float
    doubt: float
    skew: float

    @classmethod
    def of(cls, A: Array, error: float, doubt: float) -> "Spectrum":
        """Decompose A, whose entries have a total error (a norm) of at most `error`.

        `doubt` is the part of this error that A is likely to have.
        """
        n, largest = len(A), np.abs(A).max(initial=0.0)
        if not np.isfinite(largest):
            raise ValueError(
                "the preprocessing scales features by such extreme factors that distances "
                "overflow. Rescale the data before fitting."
            )
        unit = float(power_of_two(largest))
        lam, V = np.linalg.eigh(A / unit)
        rest = float(norm(A / unit - (V * lam) @ V.T))
        widest = float(np.abs(lam).max())
        loose = rest + gamma(n) * (float(norm(A / unit)) + n * widest)
        skew = float(norm(V.T @ V - np.eye(n))) + gamma(n) * n
        likely = rest + SAFETY * n * EPS * widest
        return cls(lam * unit, V, error + loose * unit + TINY, doubt + likely * unit, skew)

    def scaled(self, exponent: int) -> "Spectrum":
        """The spectrum of A times this power of two."""
        error, doubt = (float(np.ldexp(part, exponent)) for part in (self.error, self.doubt))
        return replace(self, lam=np.ldexp(self.lam, exponent), error=error + TINY, doubt=doubt)

    @property
    def lowest(self) -> float:
        """A lower bound on d'Ad / |d|^2, at most zero."""
        # |V'd|^2 <= (1 + skew) |d|^2
        return float(self.lam.min(initial=0.0)) * (1 + self.skew) - self.error


@dataclass(frozen=True)
class Problems:
    """F and its gradient g at many points, with bounds on the error of F and the length of g's."""

    F: Array
    g: Array
    F_error: Array
    g_error: Array

    def scaled(self, value: int, length: int) -> "Problems":
        """The same problems, with values and lengths in units of these powers of two."""
        slope = length - value
        return Problems(
            np.ldexp(self.F, -value),
            np.ldexp(self.g, slope),
            np.ldexp(self.F_error, -value) + TINY,
            np.ldexp(self.g_error, slope) + TINY,
        )


@dataclass(frozen=True)
class Distances:
    """The shortest steps S to F = 0, one per row, along the eigenvectors V.

    A length is infinite, and its step NaN, if F has no zero. `radii` are proven lower bounds on the
    lengths.
    """

    S: Array
    V: Array
    lengths: Array
    radii: Array


def lower_bounds(lowest: float, F: Array, slope: Array) -> Array:
    """A quick lower bound on the distance, from the gradient's length and the lowest eigenvalue.

    ``F - slope r - L r^2`` is positive for all smaller r.
    """
    L = max(0.0, -lowest)
    with np.errstate(all="ignore"):
        root = np.hypot(slope, 2 * np.sqrt(L) * np.sqrt(F))  # the product could underflow
        bound = 2 * F / (slope + root) * (1 - 16 * EPS)
    return np.where((F > 0) & (bound > TINY), bound, 0.0)


def quick_bounds(spectrum: Spectrum, problems: Problems) -> Array:
    """Lower bounds on the distances that take little time, with all errors."""
    slope = norm(problems.g, axis=1) * (1 + gamma(problems.g.shape[1])) + problems.g_error
    return lower_bounds(spectrum.lowest, problems.F - problems.F_error, slope)


def distances(spectrum: Spectrum, problems: Problems) -> Distances:
    """The distances to F = 0 from points where F is not negative."""
    quick = quick_bounds(spectrum, problems)
    value, length = _exponents(spectrum, problems)
    solved = _solve(spectrum.scaled(2 * length - value), problems.scaled(value, length))
    with np.errstate(over="ignore"):
        steps, lengths = np.ldexp(solved.S, length), np.ldexp(solved.lengths, length)
        radii = np.ldexp(solved.radii, length)
    radii = np.where(radii > TINY, radii, 0.0)  # a subnormal number may have been rounded up
    return Distances(steps, solved.V, lengths, np.minimum(np.maximum(radii, quick), lengths))


def _exponents(spectrum: Spectrum, problems: Problems) -> tuple[int, int]:
    """Powers of two of the usual F and of the usual distance."""
    F, found = problems.F, []
    near = lower_bounds(float(spectrum.lam.min()), F, norm(problems.g, axis=1))
    for sizes in (F, near):
        usual = sizes[(sizes > 0) & np.isfinite(sizes)]
        found.append(int(np.frexp(np.median(usual))[1]) if len(usual) else 0)
    return found[0], found[1]


def _solve(spectrum: Spectrum, problems: Problems) -> Distances:
    """Steps, lengths and radii in units in which squares neither underflow nor overflow."""
    n, F, G = len(spectrum.lam), problems.F, problems.g @ spectrum.V
    # g = V G + rest, and the rest is as small as V is orthogonal
    rest = (spectrum.skew + gamma(n) * np.sqrt(n)) * norm(problems.g, axis=1) * SAFETY
    slope_error, F_low = rest + problems.g_error, F - problems.F_error
    steps, lengths = _steps(spectrum.lam, F, G)
    radii = _radii(spectrum, F_low, G, steps, lengths, slope_error)
    # along these axes, F changes by less than its errors, so a zero may be an artifact of them
    flat = np.abs(spectrum.lam) <= spectrum.doubt
    axes = flat & (np.abs(G) <= slope_error[:, None])
    taken = norm(np.where(axes, steps, 0.0), axis=1)
    rows = np.flatnonzero(np.isfinite(lengths) & (taken > ARTIFACT * lengths))
    if len(rows):
        level = np.where(axes[rows], 0.0, G[rows])
        noise = slope_error[rows] + norm(G[rows] - level, axis=1) * (1 + gamma(n))
        without = replace(
            spectrum, lam=np.where(flat, 0.0, spectrum.lam), error=spectrum.error + spectrum.doubt
        )
        steps[rows], lengths[rows] = _steps(without.lam, F[rows], level)
        proven = _radii(without, F_low[rows], level, steps[rows], lengths[rows], noise)
        radii[rows] = np.minimum(np.maximum(radii[rows], proven), lengths[rows])
    return Distances(steps, spectrum.V, lengths, radii)


def _steps(lam: Array, F: Array, G: Array) -> tuple[Array, Array]:
    """The steps to F = 0 and their lengths; NaN and infinite where there is none."""
    steps = steps_to_surface(lam, F, G, touches=False)
    # where F has a minimum that is zero, up to rounding errors, the steps lead to it
    rows, curved = np.flatnonzero(np.isnan(steps).any(axis=1)), lam > 0
    down = np.zeros((len(rows), len(lam)))
    down[:, curved] = -G[rows][:, curved] / (2 * lam[curved])
    touches = F[rows] + (G[rows] * down).sum(axis=1) / 2 <= TOUCHES * F[rows]
    steps[rows[touches]] = down[touches]
    lengths = np.linalg.norm(steps, axis=1)
    lengths[np.isnan(lengths)] = np.inf
    return steps, lengths


def _radii(
    spectrum: Spectrum, F: Array, G: Array, steps: Array, lengths: Array, slope_error: Array
) -> Array:
    """Lower bounds on the lengths; F is already reduced by its error."""
    radii, count = np.empty(len(F)), max(1, CACHED // len(spectrum.lam))
    for start in range(0, len(F), count):
        rows = slice(start, start + count)
        given = G[rows], steps[rows], lengths[rows], slope_error[rows]
        with np.errstate(all="ignore"):
            radii[rows] = _proven(spectrum, F[rows], *given)
    return radii


def _proven(
    spectrum: Spectrum, F: Array, G: Array, steps: Array, lengths: Array, slope_error: Array
) -> Array:
    """The radii of a block of rows: the best bound within several reaches."""
    endless, best = np.isinf(lengths), np.empty(len(F))
    best[endless] = _without_zero(spectrum, F[endless], G[endless], slope_error[endless])
    near = np.flatnonzero(~endless)
    given = F[near], G[near], steps[near], lengths[near], slope_error[near]
    best[near] = _within(spectrum, *given)
    poor = near[(best[near] < GOOD * lengths[near]) & (F[near] > 0)]
    for share in SHARES if len(poor) else ():
        reach = lower_bounds(-spectrum.error, share * F[poor], slope_error[poor])
        reach = np.minimum(reach, lengths[poor])
        left = F[poor] - (slope_error[poor] + spectrum.error * reach) * reach
        nearer, _ = _steps(spectrum.lam, np.maximum(left, 0.0), G[poor])
        found = _within(spectrum, F[poor], G[poor], nearer, reach, slope_error[poor])
        best[poor] = np.maximum(best[poor], found)
    return best


def _without_zero(spectrum: Spectrum, F: Array, G: Array, slope_error: Array) -> Array:
    """The radius within which the errors stay below the minimum of F, which is positive."""
    curved = spectrum.lam > 0
    drop = (G[:, curved] ** 2 / (4 * spectrum.lam[curved])).sum(axis=1)
    minimum = F - drop - gamma(len(spectrum.lam)) * (np.abs(F) + drop)
    slope = slope_error + norm(G[:, ~curved], axis=1) * (1 + gamma(len(spectrum.lam)))
    return np.minimum(lower_bounds(spectrum.lowest, minimum, slope), FARTHEST)


def _within(
    spectrum: Spectrum, F: Array, G: Array, steps: Array, reach: Array, slope_error: Array
) -> Array:
    """The dual bound for zeros within a reach, less the errors there."""
    lam = spectrum.lam
    F = F - slope_error * reach - spectrum.error * reach**2
    lowest = float(lam.min())
    end = np.inf if lowest >= 0 else (1 - 8 * EPS) / -lowest
    down = G / 2 + lam * steps
    nu = -(steps * down).sum(axis=1) / (down * down).sum(axis=1)
    best = np.zeros(len(F))
    for shrink in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        candidate = np.minimum(nu, end) * (1 - shrink)
        best = np.fmax(best, _dual(lam, F, G, candidate))
    touching = ~np.isfinite(nu)  # at a minimum of F, nu would be infinite
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
