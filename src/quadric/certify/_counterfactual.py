"""The smallest change of an input that changes the predicted class.

`counterfactual` is the public function. `Candidates` and `Scene` find the nearest points of another
class, or of a given class, within a box of bounds. Every point is verified with the model itself.
The scores of the classes and the spectra of their differences are kept for further calls with the
same model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from quadric.certify._box_faces import Tie, Walk, descend, visit
from quadric.certify._model_and_rounding import (
    CertifiedModel,
    Nearest,
    Scores,
    certified_model,
    class_scores,
    view_of_classifier,
)
from quadric.certify._radius import Search
from quadric.certify._row_and_changes import (
    Change,
    Row,
    changes_of,
    in_words,
    one_row,
    set_bounds,
    weights_of_inputs,
)
from quadric.checks import Array, check_choice, check_integer
from quadric.network import Network
from quadric.utils import one_blas_thread, rounded, rounded_down, visible

MOST_SEARCHES = 4  # for one model: one for each set of free inputs and units
MOST_BYTES = 2**28  # of the eigenvectors of a search that is kept
PAST = np.concatenate([[0.0], np.geomspace(1e-16, 1e-2, 43)])  # steps past the boundary
AT_ONCE = 8  # candidates that are verified in one call of the model
MOST_WORK = 1e8  # for visiting faces, in operations
MOST_STARTS = 8  # candidates from which the local minimizer starts
MOST_CHOICES = 64  # of integers
MOST_TRIED = 4096  # combinations of integers, if all of them are tried
MOST_SETS = 1000  # of inputs that change together
SAME = 1e-6  # relative difference up to which a distance equals its lower limit


@dataclass(frozen=True)
class Counterfactual:
    """The nearest input of another class.

    Parameters
    ----------
    point : array of shape (n_coordinates,)
        The input, in the coordinates `names`; NaN if none was found.
    predicted, becomes : object
        The class of the given row, and the class that the model predicts for `point`.
    distance : float
        The distance between the row and `point`; infinite if none was found.
    lower_bound : float
        A proven lower bound on the distance to any input of the wanted class.
    exact : bool
        Whether `point` is the nearest input that meets all conditions, up to a step past the
        boundary. Otherwise, it is the best that was found, and `distance` is an upper bound. If
        none was found, whether there is none, up to rounding errors.
    changes : list of Change
        The inputs that change, with values that are rounded as far as the class and the bounds
        allow. The model predicts `becomes` for these values, too.
    names : list of str
        The names of the coordinates of `point`.
    to : object
        The class that was wanted, or None for any other class.
    """

    point: Array
    predicted: Any
    becomes: Any
    distance: float
    lower_bound: float
    exact: bool
    changes: list[Change]
    names: list[str]
    to: Any = None

    def text(self) -> str:
        """Describe the change in words.

        Returns
        -------
        str
            For example ``approved with income 31 200 instead of 29 800``.
        """
        if not self.changes:
            sort = "another class" if self.to is None else f"class {visible(str(self.to))}"
            words = f"{visible(str(self.predicted))}: no input with {sort}"
            if np.isinf(self.lower_bound):
                return f"{words} exists"
            hope = "; up to rounding errors, there is none" if self.exact else ""
            return f"{words} was found{hope}"
        words = f"{visible(str(self.becomes))} with {in_words(self.changes)}"
        if self.exact:
            return words
        return (
            f"{words} (the smallest change found, of length {rounded(self.distance)}; every such "
            f"change is longer than {rounded_down(self.lower_bound)})"
        )

    __str__ = text


def counterfactual(
    model: Any,
    x: Any,
    *,
    to: Any = None,
    fixed: Iterable[Any] = (),
    weights: Any = None,
    bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
    integers: Iterable[Any] = (),
    max_changes: int | None = None,
    units: str = "inputs",
) -> Counterfactual:
    """Find the nearest input with another class, or with a given class.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    x : array of shape (n_features,) or (1, n_features), table with one row, or pandas Series
        The input.
    to : label, optional
        The wanted class; by default, any class other than the predicted one.
    fixed : sequence of str or int
        Names or indices of inputs that are held fixed. Encoded categories always are.
    weights : dict or array of shape (n_coordinates,), optional
        Positive factors that multiply the changes of the inputs before the length is computed, by
        name or index. A change of an input with a large weight is expensive.
    bounds : dict of (low, high), optional
        Limits of inputs, by name or index; None for no limit. They must contain the input: for
        example, ``{"age": (x["age"], None)}`` if the age can only grow.
    integers : sequence of str or int
        Inputs that can only take integer values.
    max_changes : int, optional
        The largest number of inputs that may change. All sets of so many inputs are tried if there
        are at most 1000. Otherwise, those of the most promising inputs are, and the result is
        labeled as the best that was found.
    units : {'inputs', 'scaled'}
        As in `radius`.

    Returns
    -------
    Counterfactual
        The input, its class and its distance, and a proven lower bound on the distance.

    Notes
    -----
    Without `to`, the point is the nearest one, with or without bounds. It is on the boundary of two
    classes and in the interior of one face of the box of bounds, and all local minima of the
    distance on all faces are compared. If many inputs are bounded, there are too many faces, and
    the point is the best that was found, by a local minimizer from many starts. This is also so
    with `integers`, and with `to` if several classes meet at the nearest point. The model's own
    prediction verifies every point. Matrices are decomposed in the first call with a model, and
    again after any of its numbers has changed.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric import Network
    >>> from quadric.core import Quadratic
    >>> circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    >>> print(counterfactual(circle, [1.0, 0.0]))
    0 with x1 2 instead of 1
    """
    check_choice("units", units, ("inputs", "scaled"))
    given = view_of_classifier(model)
    view, x = given.after_reading, given.read(one_row(x, named=given.input_names is not None))
    certified, labels = certified_model(view, x), view.labels
    scores, row = kept_scores(certified), Row(certified, x)
    sizes = certified.sizes(units) / weights_of_inputs(certified, weights)
    set_bounds(row, bounds)
    free = np.flatnonzero(~certified.held_inputs(fixed) & (row.low < row.high))
    whole = [i for i in certified.indices("integers", integers) if i in free]
    known = labels.tolist()
    if to is not None and to not in known:
        raise ValueError(f"to must be a class of the model: {known}. Got {to!r} instead.")
    wanted = None if to is None else known.index(to)
    candidates = Candidates(scores, row, sizes, wanted)
    if wanted == candidates.predicted:
        raise ValueError(f"to must differ from the class of x. The model predicts {to!r} already.")
    with one_blas_thread():
        found = (
            candidates.within(free, whole)
            if max_changes is None or max_changes >= len(free)
            else candidates.sparse(
                free, whole, check_integer("max_changes", max_changes, at_least=1)
            )
        )
    predicted, names, point = labels[candidates.predicted], certified.names, found.point
    if point is None:
        nowhere, none = np.full(len(names), np.nan), bool(np.isinf(found.floor))
        return Counterfactual(
            nowhere, predicted, predicted, np.inf, found.proven, none, [], names, to
        )
    becomes, distance = int(row.classes(point[None])[0]), candidates.length(point)
    return Counterfactual(
        point,
        predicted,
        labels[becomes],
        distance,
        min(found.proven, distance),
        distance <= found.floor * (1 + SAME),
        changes_of(row, point, becomes, sizes, whole),
        names,
        to,
    )


# ------------------------------------------------------------- kept for further calls


_known: WeakKeyDictionary[Network, tuple[list[Any], Scores]] = WeakKeyDictionary()


def kept_scores(model: CertifiedModel) -> Scores:
    """The scores and searches of earlier calls, unless any number of the model has changed."""
    network, state = model.view.network, _state(model)
    known = _known.get(network)
    if known is None or known[0] != state:
        known = _known[network] = state, class_scores(model)
    return known[1]


def _state(model: CertifiedModel) -> list[Any]:
    """Everything that scores and their rounding errors depend on, as values to compare."""
    network = model.view.network
    own = [array for layer in network.layers for array in layer.arrays().values()]
    arrays = [*own, *model.change, *model.absolute, model.held]
    return [
        *((array.dtype, array.shape, array.tobytes()) for array in arrays),
        *(type(layer) for layer in network.layers),
        network.activations,
        model.share,
        model.dtype,
    ]


def kept_search(scores: Scores, free: Array, sizes: Array) -> Search:
    """The search with these free coordinates and units, kept unless it is large."""
    key, K = free.tobytes() + sizes.tobytes(), len(scores.b)
    if (known := scores.searches.get(key)) is not None:
        return known
    made = Search(scores, free, sizes)
    if 8 * len(free) ** 2 * (K * (K - 1) // 2) <= MOST_BYTES:
        scores.searches[key] = made
        for old in list(scores.searches)[:-MOST_SEARCHES]:
            scores.searches.pop(old, None)  # another thread may have removed it
    return made


# --------------------------------------------------------- the nearest point in a box


@dataclass(frozen=True)
class Found:
    """The best point that was found, and two distances below which there is none.

    The floor is computed, and infinite if there seems to be no such point. `proven` does not
    consider the bounds.
    """

    point: Array | None
    floor: float
    proven: float


class Candidates:
    """Points of the wanted class that are close to a row.

    Parameters
    ----------
    scores : Scores
        The scores of the classes.
    row : Row
        The row.
    sizes : array
        The unit of length along each coordinate.
    wanted : int, optional
        The index of the wanted class; by default, any class other than that of the row.
    """

    def __init__(self, scores: Scores, row: Row, sizes: Array, wanted: int | None) -> None:
        self.scores, self.row, self.sizes, self.wanted = scores, row, sizes, wanted
        self.predicted = int(row.classes(row.point[None])[0])

    def length(self, point: Array) -> float:
        """The distance of a point from the row."""
        return float(np.linalg.norm((point - self.row.point) / self.sizes))

    def is_wanted(self, points: Array) -> Array:
        """Whether the model predicts the wanted class for each point."""
        try:
            found = self.row.classes(points)
        except ValueError:  # a score is not finite, because a point is too far away
            if len(points) == 1:
                return np.array([False])
            return np.concatenate([self.is_wanted(point[None]) for point in points])
        return found != self.predicted if self.wanted is None else found == self.wanted

    def confirmed(self, points: Array) -> Array | None:
        """The first point for which the model predicts the wanted class alone.

        A tie may be rounded in another way than among other rows.
        """
        return next((point for point in points if self.is_wanted(point[None])[0]), None)

    def nearest(self, start: Array, free: Array, limit: float = np.inf) -> Found:
        """The nearest point within the bounds that differs from `start` only in `free`.

        Points that are not closer to `start` than the limit need not be found.
        """
        c = int(self.row.classes(start[None])[0]) if start is not self.row.point else self.predicted
        if c == self.wanted or (self.wanted is None and c != self.predicted):
            return Found(start, 0.0, 0.0)
        if not len(free):
            return Found(None, np.inf, np.inf)
        scene = Scene(self, start, c, free, limit)
        floor, proven = scene.try_nearest_tie()
        if floor == 0 and scene.point is None:
            scene.leave_tie()
        if np.isfinite(floor) and scene.best > floor * (1 + SAME):
            floor = max(floor, scene.explore())
        return Found(scene.point, floor, proven)

    def within(self, free: Array, whole: Sequence[int], limit: float = np.inf) -> Found:
        """A near point that differs from the row only in `free`."""
        some = [i for i in whole if i in free]
        return self.whole(free, some) if some else self.nearest(self.row.point, free, limit)

    def sparse(self, free: Array, whole: Sequence[int], count: int) -> Found:
        """A near point that differs from the row in at most `count` of the coordinates `free`."""
        ideal = self.within(free, whole)
        if ideal.point is None:
            return ideal
        tried, every = self._promising(free, ideal.point, count)
        best, limit, floor = None, np.inf, np.inf
        for some in combinations(tried.tolist(), count):
            found = self.within(np.array(some), whole, limit)
            floor = min(floor, found.floor)
            if found.point is not None and self.length(found.point) < limit:
                best, limit = found.point, self.length(found.point)
        return Found(best, floor if every else ideal.floor, ideal.proven)

    def _promising(self, free: Array, ideal: Array, count: int) -> tuple[Array, bool]:
        """The coordinates whose sets are tried, the strongest first, and whether these are all."""
        order = np.argsort(-np.abs(ideal - self.row.point)[free] / self.sizes[free], kind="stable")
        free, most = free[order], len(free)
        while comb(most, count) > MOST_SETS:
            most -= 1
        return free[:most], most == len(free)

    def whole(self, free: Array, whole: Sequence[int]) -> Found:
        """A near point whose coordinates in `whole` are integers or unchanged."""
        ideal = self.nearest(self.row.point, free)
        if ideal.point is None:
            return ideal
        rest, choices = np.setdiff1d(free, whole), self._choices(ideal.point, np.asarray(whole))
        best = self.confirmed(choices[self.is_wanted(choices)])
        best = best if best is None else self._shrunk(best, whole)
        best = self._nearer(best, choices[: MOST_CHOICES if len(rest) else 0], rest)
        return Found(self._among_all(best, ideal.point, rest, whole), ideal.floor, ideal.proven)

    def _among_all(
        self, best: Array | None, ideal: Array, rest: Array, whole: Sequence[int]
    ) -> Array | None:
        """The best point among all combinations of integers that are nearer than the best one.

        There must be few of them. Without a best point, they are those near the `ideal` one.
        """
        limit = 4 * self.length(ideal) + 4 if best is None else self.length(best)
        start, ranges = self.row.point, []
        for i in whole:
            low = np.ceil(max(self.row.low[i], start[i] - limit * self.sizes[i]))
            high = np.floor(min(self.row.high[i], start[i] + limit * self.sizes[i]))
            if not high - low < MOST_TRIED:
                return best
            ranges.append([start[i], *np.arange(low, high + 1)])
        if np.prod([float(len(values)) for values in ranges]) > MOST_TRIED:
            return best
        points = np.tile(start, (int(np.prod([len(values) for values in ranges])), 1))
        points[:, list(whole)] = list(product(*ranges))
        points = points[np.argsort(np.linalg.norm((points - start) / self.sizes, axis=1))]
        good = points[self.is_wanted(points)] if not len(rest) else points[:MOST_CHOICES]
        return self._nearer(best, good, rest)

    def _nearer(self, best: Array | None, starts: Array, free: Array) -> Array | None:
        """The best point that differs from one of the starts, the nearest first, in `free`."""
        for start in starts:
            length, limit = self.length(start), np.inf if best is None else self.length(best)
            if length >= limit:
                break
            found = self.nearest(start, free, np.sqrt(limit**2 - length**2)).point
            best = best if found is None else found
        return best

    def _choices(self, ideal: Array, whole: Array) -> Array:
        """The row with other integers, the nearest first."""
        start, found = self.row.point, set()
        for share in (1.0, 1.1, 1.25, 1.5, 2.0, 3.0):  # of the change without integers, to round
            target = start[whole] + share * (ideal - start)[whole]
            order = np.argsort(-np.abs(target - start[whole]))
            outwards = np.where(target > start[whole], np.ceil(target), np.floor(target))
            ends = [
                {float(np.floor(value)), float(np.ceil(value)), float(start[i])}
                if j in order[:6]  # 3^6 combinations
                else {float(np.round(value))}
                for j, (i, value) in enumerate(zip(whole, target, strict=True))
            ]
            found |= set(product(*ends))
            for count in 2 ** np.arange(len(whole).bit_length() + 1):
                values = start[whole].copy()
                values[order[:count]] = outwards[order[:count]]
                found.add(tuple(values.tolist()))
        points = np.tile(start, (len(found), 1))
        points[:, whole] = list(found)
        inside = (points >= self.row.low) & (points <= self.row.high)
        points = points[inside[:, whole].all(axis=1)]
        return points[np.argsort(np.linalg.norm((points - start) / self.sizes, axis=1))]

    def _shrunk(self, point: Array, whole: Sequence[int]) -> Array:
        """A point of the wanted class with smaller changes of integers, one unit at a time."""
        start = self.row.point
        while True:
            changed = [i for i in whole if point[i] != start[i]]
            if not changed:
                return point
            points = np.tile(point, (len(changed), 1))
            for one, i in zip(points, changed, strict=True):
                change = one[i] - start[i]
                one[i] = start[i] if abs(change) < 1 else one[i] - np.sign(change)
            shorter = self.confirmed(
                np.array(sorted(points[self.is_wanted(points)], key=self.length))
            )
            if shorter is None:
                return point
            point = shorter


class Scene:
    """The steps from one start in the free coordinates, in their units, and the best point so far.

    Parameters
    ----------
    candidates : Candidates
        The model, the row and the wanted class.
    start, c : array and int
        The start and its class.
    free : array of int
        The coordinates that may change.
    limit : float
        The length of the longest steps that are of interest.
    """

    def __init__(
        self, candidates: Candidates, start: Array, c: int, free: Array, limit: float
    ) -> None:
        self.candidates, self.start, self.c, self.free = candidates, start, c, free
        self.point: Array | None = None
        self.best = limit
        self.search = kept_search(candidates.scores, free, candidates.sizes)
        self.sizes = candidates.sizes[free]
        self.low, self.high = candidates.row.low[free], candidates.row.high[free]
        self.lowest = (self.low - start[free]) / self.sizes
        self.highest = (self.high - start[free]) / self.sizes

    def try_nearest_tie(self) -> tuple[float, float]:
        """Try the nearest tie without bounds; return a computed and a proven limit of lengths.

        Another class must reach the score of the predicted class. A given class must reach the
        scores of all others.
        """
        start, wanted = self.start[None], self.candidates.wanted
        if wanted is None:
            near = Nearest.unknown(np.array([self.c]), len(self.free))
            self.search.run(start, near)
            steps = near.step[np.isfinite(near.distance)]
            self.offer(steps, steps)
            return float(near.distance[0]), float(near.radius[0])
        tie = self.search.tie(start, self.c, wanted)
        floor, proven = float(tie.lengths[0]), float(tie.radii[0])
        steps = tie.S[np.isfinite(tie.lengths)] @ self.search.spectrum(self.c, wanted).V.T
        self.offer(steps, steps)
        for j, k in self._pairs() if self.best > floor * (1 + SAME) else []:
            tie = self.search.tie(start, j, k)
            floor, proven = max(floor, float(tie.lengths[0])), max(proven, float(tie.radii[0]))
        return floor, proven

    def leave_tie(self) -> None:
        """Leave a tie at the start along the axes on which the other score grows.

        At a stationary point of the tie, no gradient shows the way.
        """
        for j, k in self._pairs():
            lam, V = np.linalg.eigh(self._tie(j, k).A)
            axes = V.T[lam < 0]
            self.offer(np.zeros((2 * len(axes), len(self.free))), np.concatenate([axes, -axes]))

    def explore(self) -> float:
        """Visit all faces, or as many as possible; return a computed limit of the lengths."""
        wanted, ties = self.candidates.wanted, [self._tie(j, k) for j, k in self._pairs()]
        walks = [Walk(tie, self.lowest, self.highest) for tie in ties]
        left, starts, work = walks, [], sum(walk.work for walk in walks)
        if len(walks[0].bounded) or work > MOST_WORK:  # a short step saves visits
            for walk in walks:
                starts.append(walk.clamp(self.best))
                self.offer(starts[-1], -walk.tie.slope(starts[-1]))
        while left and work <= MOST_WORK:
            for walk, steps in zip(left, visit(left), strict=True):
                self.offer(steps, -walk.tie.slope(steps))
                starts.append(steps)
            left = [walk for walk in left if walk.advance(self.best)]
            work += sum(walk.work for walk in left)
        shortest = [min(walk.shortest, self.best) for walk in walks]
        floor = 0.0 if left else min(shortest) if wanted is None else max(shortest)
        if self.best > floor * (1 + SAME):
            for some in [[tie] for tie in ties] if wanted is None else [ties]:
                self._descend(some, np.concatenate(starts))
        return floor

    def _descend(self, ties: list[Tie], starts: Array) -> None:
        """Offer the steps of a local minimizer, from the shortest starts and from random ones."""
        near = starts[np.argsort(np.linalg.norm(starts, axis=1))[:MOST_STARTS]]
        steps = descend(ties, self.lowest, self.highest, near)
        worst = np.argmax([tie.at(steps) for tie in ties], axis=0)
        slopes = np.array([tie.slope(steps) for tie in ties])
        self.offer(steps, -slopes[worst, np.arange(len(steps))])

    def offer(self, steps: Array, inwards: Array) -> None:
        """Keep the shortest step at whose end, or just past it, the wanted class is predicted.

        `inwards` are directions into the region of the class.
        """
        lengths = np.linalg.norm(steps, axis=1)
        order = np.argsort(lengths)
        for first in range(0, len(order), AT_ONCE):
            some = order[first : first + AT_ONCE]
            if not lengths[some[0]] < self.best:
                return
            points = self._past(steps[some], inwards[some])
            good = self.candidates.is_wanted(points.reshape(-1, len(self.start)))
            for several, are_good in zip(points, good.reshape(points.shape[:2]), strict=True):
                if (point := self.candidates.confirmed(several[are_good])) is not None:
                    step = (point - self.start)[self.free] / self.sizes
                    if (length := float(np.linalg.norm(step))) < self.best:
                        self.point, self.best = point, length

    def _past(self, steps: Array, inwards: Array) -> Array:
        """Points at the ends of steps and past them, within the bounds: (steps, PAST, n)."""
        sizes = np.linalg.norm(inwards, axis=1)[:, None]
        inwards = np.where(sizes > 0, inwards / np.where(sizes > 0, sizes, 1.0), steps)
        # a step can be much shorter than the rounding errors of the point
        size = float(np.linalg.norm(self.start[self.free] / self.sizes))
        reach = np.linalg.norm(steps, axis=1)[:, None]
        reach = reach + max(1e-4, 1e4 * self.candidates.row.eps) * size
        past = inwards * np.where(reach > 0, reach, 1.0)
        moved = steps[:, None] + PAST[:, None] * past[:, None]
        values = self.start[self.free] + moved * self.sizes
        values = np.where(moved <= self.lowest, self.low, values)
        values = np.where(moved >= self.highest, self.high, values)
        points = np.tile(self.start, (*moved.shape[:2], 1))
        points[:, :, self.free] = values
        return self.candidates.row.rounded(points)

    def _pairs(self) -> list[tuple[int, int]]:
        """The pairs of classes (j, k) such that k must beat j: for one of them, or for all."""
        wanted, classes = self.candidates.wanted, range(len(self.candidates.scores.b))
        if wanted is None:
            return [(self.c, k) for k in classes if k != self.c]
        return [(j, wanted) for j in classes if j != wanted]

    def _tie(self, j: int, k: int) -> Tie:
        """The difference of the scores of classes j and k."""
        scores, change = self.candidates.scores, self.search.change
        D, w = scores.Q[j] - scores.Q[k], scores.W[j] - scores.W[k]
        u, A = scores.change.apply(self.start), change.pull_back(change.pull_back(D).T)
        F = float((u @ D + w) @ u + scores.b[j] - scores.b[k])
        return Tie.of(F, change.pull_back(2 * u @ D + w), (A + A.T) / 2)
