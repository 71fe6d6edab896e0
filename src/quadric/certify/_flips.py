"""The probability that normal noise changes the predicted class, with a proven error.

`flip_probability` and `largest_noise` are the public functions. For noise L e, where e is standard
normal, the difference between the scores of the predicted class and of another class is

    Y = F + g'e + e'A e = F + (V'g)'x + sum_i lam_i x_i^2,   A = V diag(lam) V',

where x = V'e is standard normal, too. `quadric.kernels` computes the distribution function of Y at
zero and bounds the error. The rounding errors of the model, of the fold, and of F, g, lam and V
change Y by at most `shift` if e is not longer than a radius that it exceeds with the probability
FAR. So the probability that the model's own scores have the other order lies between those of
Y < -shift and Y < shift, up to FAR.

With several rivals, the probability of a change is at least the largest of the probabilities that a
rival wins against the predicted class, and at most their sum.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import chi2

from quadric import kernels
from quadric.certify._model_and_rounding import (
    EPS,
    SLACK,
    CertifiedModel,
    certified_model,
    class_scores,
    factor_of,
    gamma,
    norm,
    precision_of,
    unit_roundoff,
    view_of_classifier,
)
from quadric.certify._radius import BLOCK, Problems, Search, Spectrum, quick_bounds, run_in_threads
from quadric.checks import Array, check_choice, check_number

FAR = 1e-13  # probability of noise beyond the radius
ROUGH = 16 * EPS  # relative error of the numbers that are passed to the kernel
MOST_ROWS = 512  # in a block, so that threads share the work
DOUBLINGS = 60  # of the noise level
HALVINGS = 26  # of the interval of a noise level


@dataclass(frozen=True)
class FlipProbabilities:
    """The result of `flip_probability`, one entry per row.

    Parameters
    ----------
    probability : array of shape (n_samples,)
        The probability that the noise changes the predicted class. With more than two classes, the
        middle of the two bounds.
    error : array of shape (n_samples,)
        A proven bound on the error of `probability`, with all rounding errors.
    predicted : array of shape (n_samples,)
        The class of each row without noise.
    likely : array of shape (n_samples,)
        The class that is most likely to win against the predicted class.
    """

    probability: Array
    error: Array
    predicted: Array
    likely: Array

    @property
    def lower(self) -> Array:
        """Proven lower bounds on the probabilities."""
        return np.maximum(self.probability - self.error, 0.0)

    @property
    def upper(self) -> Array:
        """Proven upper bounds on the probabilities."""
        return np.minimum(self.probability + self.error, 1.0)


def flip_probability(
    model: Any,
    X: Any,
    noise: Any,
    *,
    units: str = "inputs",
    fixed: Iterable[Any] = (),
    progress: Callable[[float, float, str], object] | None = None,
) -> FlipProbabilities:
    """Compute the probability that normal noise on the inputs changes the predicted class.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    X : array or table of shape (n_samples, n_features)
        The inputs.
    noise : float, dict, array of shape (n_coordinates,) or (n_coordinates, n_coordinates)
        The standard deviation of the noise: one for all inputs, by the names of inputs, or one per
        input. A matrix is the covariance of the noise.
    units : {'inputs', 'scaled'}
        Whether standard deviations are in the units of the inputs or relative to those that the
        scaler of a pipeline has learned.
    fixed : sequence of str or int
        Names or indices of inputs without noise. Encoded categories have none.
    progress : callable(done, total, text), optional
        Called after each block of rows.

    Returns
    -------
    FlipProbabilities
        The probabilities, and a proven bound on the error of each.

    Notes
    -----
    The difference of two scores has the distribution of a generalized chi-square variable. It is
    integrated numerically, and the bound includes the errors of integration, of truncation, and of
    rounding, those of the model's own predictions among them. With two classes, the bound is
    usually below 1e-9. With more classes, the error is half of the distance between a lower and an
    upper bound, which are close for small noise. For a covariance, the noise is the one that
    belongs to its computed factor.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric import Network
    >>> from quadric.core import Quadratic
    >>> circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    >>> found = flip_probability(circle, [[0.0, 0.0]], 1.0)  # exp(-2)
    >>> found.probability.round(6).tolist(), bool(found.error[0] < 1e-8)
    ([0.135335], True)
    """
    noisy = _Noisy.of(model, X, noise, units, fixed)
    count = len(noisy.points)
    bounds = np.empty((3, count)), np.zeros(count, dtype=int)
    calls = [
        partial(noisy.fill, rows, np.ones(rows.stop - rows.start), bounds[0], bounds[1])
        for rows in _blocks(count, noisy.points.shape[1])
    ]
    run_in_threads({"block of rows": calls}, progress)
    lower, middle, upper = bounds[0]
    labels = noisy.certified.view.labels
    error = np.maximum(upper - middle, middle - lower) * (1 + 4 * EPS)
    return FlipProbabilities(middle, error, labels[noisy.predicted], labels[bounds[1]])


def largest_noise(
    model: Any,
    X: Any,
    p: float,
    noise: Any = 1.0,
    *,
    units: str = "inputs",
    fixed: Iterable[Any] = (),
    progress: Callable[[float, float, str], object] | None = None,
) -> Array:
    """Find the largest noise level at which each row keeps its class with probability 1 - p.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        As in `flip_probability`.
    X : array or table of shape (n_samples, n_features)
        The inputs.
    p : float
        The probability of another class that is accepted, between 0 and 1.
    noise : float, dict or array
        The noise at level 1, as in `flip_probability`. A level multiplies the standard deviations.
    units, fixed, progress : str, sequence and callable
        As in `flip_probability`.

    Returns
    -------
    array of shape (n_samples,)
        The levels; 0 for a row too close to a tie, and infinite if no level reaches p.

    Notes
    -----
    At the returned level, the probability is proven to be at most p. It exceeds p (or its upper
    bound does) at a level that is larger by one part in a million. It usually increases with the
    level, but need not: then the result is the end of the first interval that the search leaves,
    in steps of a factor of two.
    """
    p = check_number("p", p)
    if not 1e-9 <= p < 1:
        raise ValueError(f"p must be at least 1e-9 and below 1. Got {p}.")
    noisy = _Noisy.of(model, X, noise, units, fixed)
    levels = np.zeros(len(noisy.points))
    blocks = _blocks(len(levels), noisy.points.shape[1])
    calls = [partial(_fill_levels, noisy, rows, p, levels) for rows in blocks]
    run_in_threads({"block of rows": calls}, progress)
    return levels


def _fill_levels(noisy: "_Noisy", rows: slice, p: float, levels: Array) -> None:
    """Find the levels of some rows, starting from one at which the noise is within the radius."""
    count = rows.stop - rows.start
    bounds, likely = np.empty((3, count)), np.zeros(count, dtype=int)
    own = noisy.part(rows)

    def holds(level: Array) -> Array:
        own.fill(slice(0, count), level, bounds, likely)
        return np.asarray(bounds[2] <= p)

    low = own.safe_levels(p)
    high, waiting = np.full(count, np.inf), low > 0
    level = low.copy()
    for _ in range(DOUBLINGS):
        if not waiting.any():
            break
        level = np.where(waiting, 2 * level, level)
        good = holds(np.where(waiting, level, low))
        low = np.where(waiting & good, level, low)
        high = np.where(waiting & ~good, level, high)
        waiting &= good
    found = np.isfinite(high)
    for _ in range(HALVINGS if found.any() else 0):
        middle = np.where(found, (low + np.where(found, high, 0.0)) / 2, low)
        good = holds(middle)
        low, high = np.where(found & good, middle, low), np.where(found & ~good, middle, high)
    levels[rows] = np.where(waiting, np.inf, low)


def _blocks(count: int, n: int) -> Iterator[slice]:
    size = max(1, min(MOST_ROWS, BLOCK // n))
    return (slice(start, min(count, start + size)) for start in range(0, count, size))


@dataclass(frozen=True)
class _Noisy:
    """A model, rows with their classes, and the search for ties in units of the noise."""

    certified: CertifiedModel
    search: Search
    points: Array
    predicted: Array
    reach: float  # the length of the noise that is exceeded with the probability FAR

    @classmethod
    def of(cls, model: Any, X: Any, noise: Any, units: str, fixed: Iterable[Any]) -> "_Noisy":
        check_choice("units", units, ("inputs", "scaled"))
        given = view_of_classifier(model)
        view, X = given.after_reading, given.read(X)
        X = X.toarray() if hasattr(X, "toarray") else X
        certified = certified_model(view, X)
        # an input with noise is rounded to the dtype of X
        more = certified.share + 2 * unit_roundoff(precision_of(X))
        certified = replace(certified, share=more)
        points = view.coordinates.reach(X)
        if not np.isfinite(points).all():
            raise ValueError("X must be finite. Got a missing or infinite value; impute it first.")
        free, sizes = _noise_of(certified, noise, units, fixed)
        search = Search(class_scores(certified), free, sizes)
        dimensions = sizes.shape[-1] if sizes.ndim == 2 else len(free)
        for spectrum in search.prepare():
            spectrum()
        reach = float(np.sqrt(chi2.isf(FAR / 2, dimensions))) * SLACK
        return cls(certified, search, points, certified.predict(X), reach)

    def part(self, rows: slice) -> "_Noisy":
        """The same for some of the rows."""
        return replace(self, points=self.points[rows], predicted=self.predicted[rows])

    def fill(self, rows: slice, levels: Array, bounds: Array, likely: Array) -> None:
        """Compute lower bounds, probabilities and upper bounds, and the most likely rivals."""
        block, predicted = self.search.block(self.points[rows]), self.predicted[rows]
        K = len(self.search.scores.b)
        for c in np.unique(predicted).tolist():
            some = np.flatnonzero(predicted == c)
            rivals = [k for k in range(K) if k != c]
            found = np.stack(
                [self._against(c, k, block.tie(c, k, some), levels[some]) for k in rivals]
            )
            lower = found[:, :, 0].max(axis=0)
            upper = np.minimum(found[:, :, 2].sum(axis=0) * (1 + K * EPS), 1.0)
            middle = found[0, :, 1] if K == 2 else (lower + upper) / 2
            places = rows.start + some
            bounds[:, places] = lower, np.clip(middle, lower, upper), upper
            likely[places] = np.array(rivals)[found[:, :, 1].argmax(axis=0)]

    def _against(self, c: int, k: int, problems: Problems, levels: Array) -> Array:
        """Lower bound, probability and upper bound that class k wins against class c."""
        spectrum = self.search.spectrum(c, k)
        G = np.ascontiguousarray(problems.g @ spectrum.V)
        shifts, found = self._shifts(spectrum, problems, levels), np.empty((len(levels), 4))
        with np.errstate(all="ignore"):
            kernels.chi_square_below(problems.F, G, spectrum.lam, levels, shifts, found)
        middle, down, up, error = found.T
        error = error + FAR
        proven = np.isfinite(found).all(axis=1)
        lower = np.where(proven, np.clip(down - error, 0.0, 1.0), 0.0)
        upper = np.where(proven, np.clip(up + error, 0.0, 1.0), 1.0)
        return np.stack(
            [lower, np.clip(np.where(proven, middle, 0.5), lower, upper), upper], axis=1
        )

    def _shifts(self, spectrum: Spectrum, problems: Problems, levels: Array) -> Array:
        """How much all errors can change Y, for noise up to the reach."""
        n, largest = len(spectrum.lam), float(np.abs(spectrum.lam).max(initial=0.0))
        slope, r = norm(problems.g, axis=1), levels * self.reach
        loose = spectrum.skew + gamma(n) * np.sqrt(n) + ROUGH
        first = problems.g_error + loose * slope
        second = spectrum.error + (3 * spectrum.skew + ROUGH) * largest
        shift = problems.F_error + ROUGH * problems.F + (first + second * r) * r
        return np.asarray(shift * SLACK)

    def safe_levels(self, p: float) -> Array:
        """Levels at which the noise is so short that no class can change, up to p / 2."""
        block, found = self.search.block(self.points), np.full(len(self.points), np.inf)
        K = len(self.search.scores.b)
        for c in np.unique(self.predicted).tolist():
            some = np.flatnonzero(self.predicted == c)
            for k in (k for k in range(K) if k != c):
                near = quick_bounds(self.search.spectrum(c, k), block.tie(c, k, some))
                found[some] = np.minimum(found[some], near)
        dimensions = len(self.search.spectrum(0, 1).lam)
        return np.minimum(found, 1e100) / float(np.sqrt(chi2.isf(p / 2, dimensions)))


def _noise_of(
    model: CertifiedModel, noise: Any, units: str, fixed: Iterable[Any]
) -> tuple[Array, Array]:
    """The coordinates with noise, and the standard deviations or a factor of the covariance."""
    n, held = len(model.names), model.held_inputs(fixed)
    if isinstance(noise, Mapping):
        given = np.zeros(n)
        for name, value in noise.items():
            given[model.index("noise", name)] = value
    else:
        given = np.asarray(noise, dtype=float)
        given = np.full(n, float(given)) if given.ndim == 0 else given
    unit = model.sizes(units)
    if given.ndim == 2 and list(given.shape) == [n, n]:
        free = np.flatnonzero(~held & (np.diag(given) > 0))
        return free, factor_of(
            "noise", given[np.ix_(free, free)] * np.outer(unit[free], unit[free])
        )
    if given.shape != (n,) or not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(
            f"noise must be a standard deviation, {n} of them, or a covariance of shape "
            f"({n}, {n}), finite and not negative. Got {noise!r}."
        )
    sizes = np.where(held, 0.0, given * unit)
    free = np.flatnonzero(sizes > 0)
    if not len(free):
        raise ValueError("noise must be positive for an input that is not fixed. Got none.")
    return free, sizes
