"""The largest and smallest score in a region, with proven bounds, and monotonicity.

In a ball, F + g'y + y'Ay has the minimum y = -(A + mu I)^-1 g / 2 for the mu >= 0 for which
A + mu I has no negative eigenvalue and |y| = 1, or mu = 0 (J. Moré and D. Sorensen, 1983). If g has
no component along the lowest eigenvectors, |y| may be smaller than 1 for every such mu (the "hard
case"); the rest of the step is then taken along one of them. The bound does not trust the solution:
for every mu >= 0 for which A + mu I is positive definite,

    F + g'y + y'Ay >= F - mu - g'(A + mu I)^-1 g / 4      for all |y| <= 1.

In a box, branch and bound finds the minimum and a bound (`quadric.kernels`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric import kernels
from quadric.certify._model_and_rounding import EPS, SLACK, gamma, norm
from quadric.certify._radius import Spectrum
from quadric.certify._regions import (
    Local,
    LocalScores,
    Place,
    input_places,
    model_scores,
    place,
    weights_of,
)
from quadric.checks import Array, check_choice
from quadric.utils import rounded

GAP = 1e-6  # of the search in a box
MOST_NODES = 40_000
STARTS = 64
HALVINGS = 120
LEEWAY = 10.0 ** np.arange(-16, -5)  # relative increases of mu that are tried


@dataclass(frozen=True)
class Extremum:
    """The result of `extremum`.

    Parameters
    ----------
    point : array of shape (n_coordinates,)
        The best input that was found, in the coordinates `names`.
    value : float
        The score that the model computes there.
    bound : float
        A proven bound: no input of the region has a larger score (a smaller one for a minimum),
        as the model itself computes it, with all rounding errors.
    names : list of str
        The names of the coordinates.
    score : str
        The name of the score.
    sense : {'maximum', 'minimum'}
        The kind of the extremum.
    """

    point: Array
    value: float
    bound: float
    names: list[str]
    score: str
    sense: str

    @property
    def gap(self) -> float:
        """The distance between bound and value, relative to the value if it is larger than 1."""
        return abs(self.bound - self.value) / max(1.0, abs(self.value))

    def text(self) -> str:
        """Describe the extremum.

        Returns
        -------
        str
            The value, the gap and the point.
        """
        where = ", ".join(
            f"{name} = {rounded(value)}" for name, value in zip(self.names, self.point, strict=True)
        )
        value = f"{rounded(self.value, 6)} (gap {self.gap:.0e})"
        return f"{self.sense} of {self.score}: {value} at {where}"

    __str__ = text


@dataclass(frozen=True)
class ScoreRange:
    """The result of `score_range`: two extrema, and the interval that contains every score.

    Parameters
    ----------
    minimum, maximum : Extremum
        The smallest and the largest score.
    """

    minimum: Extremum
    maximum: Extremum

    @property
    def low(self) -> float:
        """A proven lower bound on the score."""
        return self.minimum.bound

    @property
    def high(self) -> float:
        """A proven upper bound on the score."""
        return self.maximum.bound


@dataclass(frozen=True)
class Monotone:
    """The result of `monotone`: the range of the derivative of a score by an input.

    Parameters
    ----------
    direction : {'increasing', 'decreasing', 'constant', 'neither', 'undecided'}
        How the score changes with the input everywhere in the region. It is undecided if the
        derivative is zero up to rounding errors at an end of its range.
    low, high : float
        The smallest and the largest derivative in the region.
    points : array of shape (2, n_coordinates)
        Where the derivative is smallest and largest. If the direction is 'neither', the score falls
        with the input at the first point, and rises at the second one.
    """

    direction: str
    low: float
    high: float
    points: Array

    def __bool__(self) -> bool:
        return self.direction in ("increasing", "decreasing", "constant")


def extremum(
    model: Any, region: Any, *, of: Any = None, sense: str = "maximum", gap: float = GAP
) -> Extremum:
    """Find the largest or smallest score in a region, with a proven bound.

    Parameters
    ----------
    model : Network, fitted estimator, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    region : Box, Ball or Ellipsoid
        The inputs that are allowed.
    of : label, pair of labels or int, optional
        The score: the log-odds of one of two classes, the score of one of several classes minus the
        mean of all, the margin between two classes, or the number of an output. By default, the
        log-odds of the second class, or the number that a regressor predicts.
    sense : {'maximum', 'minimum'}
        What to find.
    gap : float
        The gap at which the search in a box stops.

    Returns
    -------
    Extremum
        The best point, its score, and a proven bound.

    Notes
    -----
    In balls and ellipsoids, the solution is exact up to rounding errors. In boxes, the search stops
    after 40 000 nodes if it has not reached the gap; the bound holds then, too. A regressor for
    counts has the logarithm of its prediction as its score.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric import Network
    >>> from quadric.certify import Box
    >>> from quadric.core import Quadratic
    >>> saddle = Network([Quadratic([[0.0, 0.0]], [0.0], [np.diag([1.0, -1.0])])], ["logistic"])
    >>> found = extremum(saddle, Box([-1, -1], [2, 1]))
    >>> found.point.tolist(), found.value, found.gap < 1e-6
    ([2.0, 0.0], 4.0, True)
    """
    check_choice("sense", sense, ("maximum", "minimum"))
    return _extremum(LocalScores(place(model, region)), of, sense, gap)


def score_range(model: Any, region: Any, *, of: Any = None, gap: float = GAP) -> ScoreRange:
    """Bound the score of a model in a region from below and from above.

    Parameters
    ----------
    model, region, of, gap : object
        As in `extremum`.

    Returns
    -------
    ScoreRange
        The smallest and the largest score, with proven bounds.
    """
    scores = LocalScores(place(model, region))
    return ScoreRange(_extremum(scores, of, "minimum", gap), _extremum(scores, of, "maximum", gap))


def _extremum(scores: LocalScores, of: Any, sense: str, gap: float) -> Extremum:
    where = scores.where
    weights, name = weights_of(where, of)
    sign = 1.0 if sense == "minimum" else -1.0
    local = scores.of(sign * weights)
    step, bound = minimum(local, where, gap)
    points = where.points(step[None])
    value = float(model_scores(where, points, weights)[0])
    bound = sign * (bound - local.error)
    bound = min(bound, value) if sense == "minimum" else max(bound, value)
    return Extremum(points[0], value, float(bound), where.model.names, name, sense)


def minimum(
    local: Local, where: Place, gap: float = GAP, most: int = MOST_NODES
) -> tuple[Array, float]:
    """The step to the minimum, and a proven lower bound without the error of the function."""
    size = max(abs(local.F), float(np.abs(local.g).max()), float(np.abs(local.A).max()))
    if size == 0:
        return np.zeros(len(local.g)), 0.0
    # a power of two, so that dividing by it is exact
    unit = float(np.ldexp(1.0, int(np.frexp(size)[1])))
    F, g, A = local.F / unit, local.g / unit, np.ascontiguousarray(local.A / unit)
    if not where.is_box:
        step, bound = _in_ball(F, g, A)
        return step, bound * unit
    starts = np.random.default_rng(0).uniform(-1, 1, size=(STARTS, len(g)))
    step, found = np.zeros(len(g)), np.empty(3)
    kernels.minimize_over_box(F, g, A, starts, gap, 1 / unit, most, found, step)
    return step, float(found[1]) * unit


def _in_ball(F: float, g: Array, A: Array) -> tuple[Array, float]:
    """The minimum of F + g'y + y'Ay for |y| <= 1, and a proven lower bound."""
    spectrum = Spectrum.of(A, 0.0, 0.0)
    lam, G = spectrum.lam, g @ spectrum.V
    least = max(0.0, -float(lam[0]))
    kappa = np.maximum(lam + least, 0.0)

    def step(t: float) -> Array:
        return np.divide(-G, 2 * (kappa + t), out=np.zeros_like(G), where=kappa + t > 0)

    largest = float(np.abs(lam).max()) + float(np.abs(G).max())
    low, high = largest * 1e-17, float(norm(G)) / 2 + largest * 1e-17
    if norm(step(low)) > 1:
        for _ in range(HALVINGS):
            middle = np.sqrt(low) * np.sqrt(high)
            low, high = (middle, high) if norm(step(middle)) > 1 else (low, middle)
        t, y = high, step(high)
    else:  # the minimum is inside, or this is the hard case
        t, y = low, step(low)
        if least > 0:
            y[0] = np.copysign(np.sqrt(max(0.0, 1.0 - float(y[1:] @ y[1:]))), y[0])
    y = y / max(1.0, float(norm(y)))
    mus = least + np.concatenate([[t], t * (1 + LEEWAY), t + LEEWAY * largest])
    slack = (spectrum.skew + gamma(len(G)) * np.sqrt(len(G))) * float(norm(g)) + spectrum.error
    bound = max(_dual(F, G, lam, mu) for mu in mus.tolist())
    bound = max(bound, _dual(F, G, lam, 0.0)) if least == 0 else bound
    return y @ spectrum.V.T, bound - (slack + 3 * spectrum.skew * (abs(bound) + abs(F))) * SLACK


def _dual(F: float, G: Array, lam: Array, mu: float) -> float:
    """F - mu - sum G_i^2 / (4 (lam_i + mu)), reduced by its rounding errors; -inf if not valid."""
    down = (lam + mu) * (1 - 2 * EPS) - 2 * EPS * (np.abs(lam) + mu)
    if (down[G != 0] <= 0).any() or (down < 0).any():
        return -np.inf
    terms = float(np.divide(G * G, 4 * down, out=np.zeros_like(G), where=G != 0).sum())
    return F - mu - terms - gamma(len(G)) * (abs(F) + mu + terms)


# --------------------------------------------------------------------------- monotonicity


def monotone(model: Any, input: Any, region: Any, *, of: Any = None) -> Monotone:  # noqa: A002
    """Decide whether a score only rises, or only falls, with an input in a region.

    Parameters
    ----------
    model : Network, fitted estimator, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    input : str or int
        The name or index of the input.
    region : Box, Ball or Ellipsoid
        The region.
    of : label, pair of labels or int, optional
        The score, as in `extremum`.

    Returns
    -------
    Monotone
        The direction, which is also true or false, and the range of the derivative.

    Notes
    -----
    The derivative of a score of degree two is affine, so its range in a region is exact. The result
    is about the model's function without rounding; the scores that the model computes differ from
    it by rounding errors.
    """
    scores = LocalScores(place(model, region))
    where = scores.where
    i, _ = input_places(where, input)
    weights, _ = weights_of(where, of)
    change = scores.scores.change
    unit = np.zeros(len(where.center))
    unit[i] = 1.0
    direction = change.matrix @ unit  # of the inputs of the layer
    Q, w = np.tensordot(weights, scores.scores.Q, 1), weights @ scores.scores.W
    u = change.apply(where.center)
    middle = float(direction @ (2 * Q @ u + w))
    slope = 2 * scores.search.change.pull_back((direction @ Q)[None])[0]
    if where.is_box:
        steps, wide = np.sign(slope), float(np.abs(slope).sum())
    else:
        wide = float(norm(slope))
        steps = slope / wide if wide > 0 else slope
    # the rounding errors of the fold, by the polynomial of absolute values
    M = scores.scores.rounding.majorant
    moved = np.abs(scores.search.change.matrix) @ np.ones(where.dimensions)
    terms = np.abs(direction) @ (2 * M.Q @ (np.abs(u) + moved) + M.w)
    error = float((M.share + gamma(4 * len(u))) * terms * np.abs(weights).sum())
    low, high = middle - wide, middle + wide
    points = where.points(np.stack([-steps, steps]))
    return Monotone(_direction(low, high, error), low, high, points)


def _direction(low: float, high: float, error: float) -> str:
    if low == high == 0:
        return "constant"
    if low > error:
        return "increasing"
    if high < -error:
        return "decreasing"
    return "neither" if low < -error and high > error else "undecided"
