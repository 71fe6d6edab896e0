"""How far an input can move before the predicted class can change.

`radius` is the public function. `Search` finds the nearest change of class: it computes the
distances to the ties with every rival class, with a proven lower bound for each (`distances`).

The difference of two scores is given about many points p by its value F > 0 and its gradient g
there, and by one matrix A: ``F(p + d) = F + g'd + d'Ad``. The distance is the length of the
shortest d with F(p + d) = 0, which `steps_to_surface` computes in the coordinates of the
eigenvectors of A.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from quadric.certify._lower_bounds import LowerBounds
from quadric.certify._model_and_rounding import (
    EPS,
    SAFETY,
    SLACK,
    TINY,
    Nearest,
    Scores,
    certified_model,
    class_scores,
    gamma,
    norm,
    power_of_two,
    steps_of,
    underflows,
    view_of_classifier,
)
from quadric.checks import Array, check_choice
from quadric.geometry import CACHED, steps_to_surface
from quadric.utils import blas_threads, check_limit, one_blas_thread

BLOCK = 2**19  # numbers in a block of rows
FARTHEST = 1e100  # in units of the usual length, so that squares are finite
TOUCHES = 1e-12  # share of F; a smaller minimum counts as zero
SHARES = (0.9, 0.5, 0.1)  # of F that the errors may use up within a reach
GOOD = 0.99  # share of the distance that needs no second attempt
ARTIFACT = 1e-3  # share of a step along axes on which F is constant up to errors


@dataclass(frozen=True)
class Radii:
    """Distances from inputs to the nearest input of another class, one entry per row.

    Parameters
    ----------
    distance : array of shape (n_samples,)
        The computed distance; infinite if no input has another class.
    radius : array of shape (n_samples,)
        The certified radius: the predicted class is the same for every input that is closer than
        this. It is the distance, reduced by a proven bound on the rounding errors in computing it.
    nearest : array of shape (n_samples, n_coordinates)
        The nearest input where the class changes; NaN if there is none.
    predicted, becomes : arrays of shape (n_samples,)
        The class of each row, and the class on the other side of `nearest`. The two are the same
        if no input has another class.
    names : list of str
        The names of the coordinates of `nearest`.
    exact : bool
        Whether distances were computed. For a network that does not fold to one layer, `radius` is
        a lower bound; `distance` and `nearest` are NaN, and `becomes` is `predicted`. If all inputs
        are held fixed, `distance` is infinite for every network.
    """

    distance: Array
    radius: Array
    nearest: Array
    predicted: Array
    becomes: Array
    names: list[str]
    exact: bool = True

    def certified_accuracy(self, y: Any, at: Any = 0.0) -> Array:
        """Compute the share of rows whose class is right and certified up to a given radius.

        Parameters
        ----------
        y : array of shape (n_samples,) or None
            The true classes. If None, every prediction counts as right.
        at : float or array
            The radii.

        Returns
        -------
        array
            One share for each radius. At 0, it is the accuracy of the model.
        """
        right = np.ones(len(self.radius), dtype=bool) if y is None else self.predicted == y
        sorted_radii = np.sort(self.radius[right])
        lower = np.searchsorted(sorted_radii, np.asarray(at, dtype=float), side="left")
        return np.asarray((len(sorted_radii) - lower) / len(self.radius))


def radius(
    model: Any,
    X: Any,
    *,
    units: str = "inputs",
    fixed: Iterable[Any] = (),
    progress: Callable[[float, float, str], object] | None = None,
) -> Radii:
    """Compute how far each input can move in any direction before its predicted class can change.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model with softmax or logistic outputs. If it folds to one quadratic layer (see
        `quadric.convert.fold`), distances are exact. Otherwise, radii are lower bounds.
    X : array or table of shape (n_samples, n_features)
        The inputs.
    units : {'inputs', 'scaled'}
        Whether lengths are measured in the units of the inputs or in standard deviations, as
        learned by the scaler of a pipeline.
    fixed : sequence of str or int
        Names or indices of inputs that are held fixed. Encoded categories always are.
    progress : callable(done, total, text), optional
        Called after each block of rows.

    Returns
    -------
    Radii
        Distances, certified radii, and the nearest inputs of another class.

    Notes
    -----
    Lengths are Euclidean. Limits of the inputs, such as pixels between 0 and 1, are not considered.
    They could only enlarge the radius, because they exclude inputs. The certificate is for the
    labels that ``model.predict`` itself computes for inputs of the dtype of X, with all rounding
    errors: those of the steps of a pipeline, of the network, of folding, and of computing the
    distance. A row that is closer to the boundary than these errors has the radius 0.
    """
    check_choice("units", units, ("inputs", "scaled"))
    given = view_of_classifier(model)
    view, X = given.after_reading, given.read(X)
    X = X.toarray() if hasattr(X, "toarray") else X
    certified = certified_model(view, X)
    points = view.coordinates.reach(X)
    if not np.isfinite(points).all():
        raise ValueError("X must be finite. Got a missing or infinite value; impute it first.")
    sizes, names = certified.sizes(units), certified.names
    free, predicted = np.flatnonzero(~certified.held_inputs(fixed)), certified.predict(X)
    exact = len(view.folded.layers) == 1
    # without free inputs, the label of a row that is too close to a tie is still not certain
    all_held = not len(free)
    free = np.arange(len(names)) if all_held else free
    nearest = Nearest.unknown(predicted, len(free))
    search: Search | LowerBounds = (
        Search(class_scores(certified), free, sizes)
        if exact
        else LowerBounds(certified, free, sizes)
    )
    count = max(1, BLOCK // points.shape[1])
    blocks = [slice(start, start + count) for start in range(0, len(points), count)]
    pairs = search.prepare() if isinstance(search, Search) else []
    calls = [partial(search.run, points[rows], nearest.part(rows)) for rows in blocks]
    run_in_threads({"pair of classes": pairs, "block of rows": calls}, progress)
    if all_held:
        nearest.distance[:], nearest.becomes[:] = np.inf, predicted
        nearest.radius[:] = np.where(nearest.radius > 0, np.inf, 0.0)
    moved = np.where(np.isfinite(nearest.distance)[:, None], points, np.nan)
    moved[:, free] += nearest.step * sizes[free]
    return Radii(
        nearest.distance,
        nearest.radius,
        moved,
        view.labels[predicted],
        view.labels[nearest.becomes],
        names,
        exact,
    )


def run_in_threads(
    stages: Mapping[str, Sequence[Callable[[], Any]]],
    progress: Callable[[float, float, str], object] | None,
) -> None:
    """Run the calls of each stage in as many threads as matrix products would use."""
    parallel = Parallel(n_jobs=blas_threads(), prefer="threads", return_as="generator")
    with one_blas_thread():
        for name, calls in stages.items():
            for done, _ in enumerate(parallel(delayed(call)() for call in calls), 1):
                if progress is not None:
                    progress(done, len(calls), f"{name} {done} of {len(calls)}")


# ----------------------------------------------- distances to the zeros of one function


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
    """F and its gradient g at many points, with bounds on the error of F and the length of g's.

    F is one function, or there is a column of F and an array g for the score of each class.
    """

    F: Array
    g: Any
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

    def tie(self, c: int, k: int, rows: Array) -> "Problems":
        """The difference F of the scores of classes c and k, and its gradient.

        F is not negative, except by rounding errors, because the model predicts class c.
        """
        F = np.maximum(self.F[rows, c] - self.F[rows, k], 0.0)
        F_error = (self.F_error[rows, c] + self.F_error[rows, k] + EPS * np.abs(F)) * (1 + 8 * EPS)
        g_error = (self.g_error[rows, c] + self.g_error[rows, k]) * (1 + 8 * EPS)
        return Problems(F, self.g[c][rows] - self.g[k][rows], F_error, g_error)


@dataclass(frozen=True)
class Distances:
    """The shortest steps S to F = 0, one per row, along the eigenvectors of the spectrum.

    A length is infinite, and its step NaN, if F has no zero. `radii` are proven lower bounds on the
    lengths.
    """

    S: Array
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
    near = lower_bounds(float(spectrum.lam.min()), problems.F, norm(problems.g, axis=1))
    value, length = _exponent(problems.F), _exponent(near)
    solved = _solve(spectrum.scaled(2 * length - value), problems.scaled(value, length))
    with np.errstate(over="ignore"):
        steps, lengths = np.ldexp(solved.S, length), np.ldexp(solved.lengths, length)
        radii = np.ldexp(solved.radii, length)
    radii = np.where(radii > TINY, radii, 0.0)  # a subnormal number may have been rounded up
    return Distances(steps, lengths, np.minimum(np.maximum(radii, quick), lengths))


def _exponent(sizes: Array) -> int:
    """The power of two of the usual size."""
    usual = sizes[(sizes > 0) & np.isfinite(sizes)]
    return int(np.frexp(np.median(usual))[1]) if len(usual) else 0


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
    return Distances(steps, lengths, radii)


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
    shrinks = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
    candidates = [np.minimum(nu, end) * (1 - shrink) for shrink in shrinks]
    touching = ~np.isfinite(nu)  # at a minimum of F, nu would be infinite
    if touching.any():
        candidates += [np.where(touching, 10.0**p / lam.max(), 0.0) for p in range(1, 12)]
    best = np.zeros(len(F))
    for candidate in candidates:
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


# -------------------------------------------------------------------- ties of all classes


class Search:
    """The nearest changes of class in the free coordinates.

    Parameters
    ----------
    scores : Scores
        The scores of the classes.
    free : array of int
        The coordinates that may change.
    sizes : array
        The unit of length along each coordinate, or a matrix that maps steps to the free ones.
    """

    def __init__(self, scores: Scores, free: Array, sizes: Array) -> None:
        # from steps in the free coordinates, in their units, to steps of u
        self.change = steps_of(scores.change, free, sizes)
        self.scores, A = scores, self.change.A
        largest = np.abs(A).max() if A.ndim == 1 else np.linalg.norm(A, 2) if A.size else 0.0
        self.stretch = float(largest) * (1 + 1e-6)
        # rounding errors of products with A grow with |A|, whose norm can be larger than that of A
        self.size_A = self.stretch if A.ndim == 1 else float(norm(A)) * SLACK
        self.spread = float(norm(steps_of(scores.rounding.absolute, free, np.abs(sizes)).A)) * SLACK
        self.sizes_Q = norm(scores.Q, axis=(1, 2))
        self.sizes_W = norm(scores.W, axis=1)
        K = len(scores.b)
        check_limit(
            8 * len(free) ** 2 * (K * (K - 1) // 2 + 4),
            f"the eigenvectors for all pairs of {K} classes",
            "Use fewer inputs or hold some of them fixed.",
        )
        self._spectra: dict[tuple[int, int], Spectrum] = {}

    def prepare(self) -> list[Callable[[], object]]:
        """The calls that compute the spectra of all pairs of classes."""
        K = len(self.scores.b)
        return [partial(self.spectrum, c, k) for c in range(K) for k in range(c + 1, K)]

    def spectrum(self, c: int, k: int) -> Spectrum:
        """The spectrum of the second-order part of z_c - z_k, computed once per pair."""
        if c > k:
            opposite = self.spectrum(k, c)
            return replace(opposite, lam=-opposite.lam)
        if (c, k) not in self._spectra:
            D = self.scores.Q[c] - self.scores.Q[k]
            A = self.change.pull_back(self.change.pull_back(D).T)
            sizes = float((self.sizes_Q[c] + self.sizes_Q[k]) * self.stretch * self.size_A)
            model = 2 * self.scores.rounding.curve(self.stretch, self.spread)
            error = gamma(2 * len(D)) * sizes + model + underflows(len(D)) * (1 + self.size_A) ** 2
            likely = (len(D) * EPS + SAFETY * self.scores.stored) * sizes
            self._spectra[c, k] = Spectrum.of(A / 2 + A.T / 2, error, likely)
        return self._spectra[c, k]

    def run(self, X: Array, nearest: Nearest) -> None:
        """Find the nearest changes of class for a block of rows, whose class is known."""
        block = self.block(X)
        for c in np.unique(nearest.predicted).tolist():
            self._visit_rivals(c, np.flatnonzero(nearest.predicted == c), block, nearest)

    def tie(self, X: Array, c: int, k: int) -> Distances:
        """The distances to the tie of classes c and k; 0 where class k has the higher score."""
        return distances(self.spectrum(c, k), self.block(X).tie(c, k, np.arange(len(X))))

    def block(self, X: Array) -> Problems:
        """The scores of all classes at a block of rows, with bounds on all errors."""
        scores, Q, w = self.scores, self.sizes_Q, self.sizes_W
        u, size = scores.change.apply(X), scores.rounding.size(X)
        V = [u @ Q_k for Q_k in scores.Q]
        parts = list(zip(V, scores.W, scores.b, strict=True))
        z = np.stack([((v + w_k) * u).sum(axis=1) + b_k for v, w_k, b_k in parts], axis=1)
        slopes = [self.change.pull_back(2 * v + w_k) for v, w_k, _ in parts]
        moved = gamma(X.shape[1]) * size  # a bound on the length of the error of u
        constant, slope = scores.rounding.growth(u, size, moved, self.stretch, self.spread)
        length, moved, n = norm(u, axis=1)[:, None], moved[:, None], u.shape[1]
        # an error of u acts through the gradient, whose length is at most 2 |Q| |u| + |w|
        z_error = (
            gamma(2 * n) * ((Q * length + w) * length + np.abs(scores.b))
            + underflows(n) * (1 + length) * (1 + length)
            + moved * (2 * Q * (length + moved) + w)
        )
        slope_error = (
            gamma(3 * n) * (2 * Q * length + w) * self.size_A
            + 2 * Q * moved * self.stretch
            + underflows(n) * (1 + length) * (1 + self.size_A)
        )
        return Problems(z, slopes, z_error + constant[:, None], slope_error + slope[:, None])

    def _visit_rivals(self, c: int, rows: Array, block: Problems, nearest: Nearest) -> None:
        """Visit the rivals of class c at each row, the most promising first."""
        rivals = [k for k in range(len(self.scores.b)) if k != c]
        bounds = np.column_stack(
            [quick_bounds(self.spectrum(c, k), block.tie(c, k, rows)) for k in rivals]
        )
        for rival in np.argsort(bounds, axis=1).T:
            bound = np.take_along_axis(bounds, rival[:, None], axis=1)[:, 0]
            is_near = bound < nearest.distance[rows]
            far = rows[~is_near]  # cannot be nearer, but limits what is proven
            nearest.radius[far] = np.minimum(nearest.radius[far], bound[~is_near])
            for j in np.unique(rival[is_near]).tolist():
                self._solve(c, rivals[j], rows[is_near & (rival == j)], block, nearest)

    def _solve(self, c: int, k: int, rows: Array, block: Problems, nearest: Nearest) -> None:
        """Compute the distances to the tie of classes c and k."""
        found = distances(self.spectrum(c, k), block.tie(c, k, rows))
        nearest.radius[rows] = np.minimum(nearest.radius[rows], found.radii)
        nearer = found.lengths < nearest.distance[rows]
        better = rows[nearer]
        nearest.distance[better] = found.lengths[nearer]
        nearest.step[better] = found.S[nearer] @ self.spectrum(c, k).V.T
        nearest.becomes[better] = k
