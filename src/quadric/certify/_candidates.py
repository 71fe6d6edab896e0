"""The nearest points of another class, or of a given class, verified with the model itself."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from quadric._utils.arrays import Array
from quadric.certify._rows import Row
from quadric.certify._scores import Scores
from quadric.certify._search import Search

PAST = np.concatenate([[0.0], np.geomspace(1e-15, 1e-2, 40)])  # steps past the boundary
MOST_INPUTS = 200  # for the numerical minimizer
MOST_CHOICES = 64  # of integers
LEAD = 1e-7  # of the wanted class, relative to the scores at the row
SCALES = (1.0, 2.0, 4.0, 8.0)  # of the random starts of the minimizer
FARTHER = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)  # multiples of the change without integers, to round


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
        self._searches: dict[bytes, Search] = {}

    def length(self, point: Array) -> float:
        """The distance of a point from the row."""
        return float(np.linalg.norm((point - self.row.point) / self.sizes))

    def is_wanted(self, points: Array) -> Array:
        """Whether the model predicts the wanted class for each point."""
        found = self.row.classes(points)
        return found != self.predicted if self.wanted is None else found == self.wanted

    def limits(self, free: Array) -> tuple[float, float]:
        """The computed distance below which no input has the wanted class, and a proven one.

        Another class must reach the score of the predicted class. A given class must reach the
        scores of all others.
        """
        if not len(free):
            return np.inf, np.inf
        K, search, point = len(self.scores.b), self._search(free), self.row.point[None]
        if self.wanted is None:
            ties = [search.tie(point, self.predicted, k) for k in range(K) if k != self.predicted]
        else:
            ties = [search.tie(point, k, self.wanted) for k in range(K) if k != self.wanted]
        pick = min if self.wanted is None else max
        return pick(float(tie.lengths[0]) for tie in ties), pick(float(t.radii[0]) for t in ties)

    def nearest(self, start: Array, free: Array) -> Array | None:
        """The nearest point of the wanted class that differs from `start` only in `free`."""
        if self.is_wanted(start[None])[0]:
            return start
        if not len(free):
            return None
        c, search = int(self.row.classes(start[None])[0]), self._search(free)
        rivals = [self.wanted] if self.wanted is not None else range(len(self.scores.b))
        found: list[Array] = []
        for k in rivals:
            if k != c:
                tie = search.tie(start[None], c, int(k))
                if np.isfinite(tie.lengths[0]):
                    step = np.zeros(len(start))
                    step[free] = (tie.steps[0] @ tie.V.T) * self.sizes[free]
                    found += self._past(start, step)
        if not found and self.wanted is not None:
            found = self._minimized(start, free)
        return min(found, key=self.length, default=None)

    def bounded(self, start: Array, free: Array, low: Array, high: Array) -> Array | None:
        """A near point within bounds: coordinates that leave them are moved to their bound."""
        current, left = start.copy(), free
        while True:
            point = self.nearest(current, left)
            if point is None:
                return None
            outside = left[(point[left] < low[left]) | (point[left] > high[left])]
            if not len(outside):
                return point
            current[outside] = point[outside].clip(low[outside], high[outside])
            left = np.setdiff1d(left, outside)

    def whole(self, free: Array, whole: Sequence[int], low: Array, high: Array) -> Array | None:
        """A near point whose coordinates in `whole` are integers or unchanged."""
        start = self.row.point
        ideal = self.bounded(start, free, low, high)
        if ideal is None:
            return None
        best, rest = None, np.setdiff1d(free, whole)
        for choice in self._choices(ideal, np.asarray(whole), low, high):
            if best is not None and self.length(choice) >= self.length(best):
                break
            point = self.bounded(choice, rest, low, high)
            if point is not None and (best is None or self.length(point) < self.length(best)):
                best = point
        return best

    def _choices(self, ideal: Array, whole: Array, low: Array, high: Array) -> list[Array]:
        """The row with other integers, the nearest first."""
        start, found = self.row.point, set()
        for share in FARTHER:
            target = start[whole] + share * (ideal - start)[whole]
            most = np.argsort(-np.abs(target - start[whole]))[:6]  # 3^6 combinations
            ends = [
                {float(np.floor(value)), float(np.ceil(value)), float(start[i])}
                if j in most
                else {float(np.round(value))}
                for j, (i, value) in enumerate(zip(whole, target, strict=True))
            ]
            found |= set(product(*ends))
        points = []
        for values in found:
            point = start.copy()
            point[whole] = values
            if ((point >= low) & (point <= high))[whole].all():
                points.append(point)
        return sorted(points, key=self.length)[:MOST_CHOICES]

    def _past(self, start: Array, step: Array) -> list[Array]:
        """The first point of the wanted class past the end of a step, if there is one."""
        points = self.row.rounded(start + step * (1 + PAST[:, None]))
        good = points[self.is_wanted(points)]
        # a tie may be rounded in another way if a row is predicted alone
        return next(([point] for point in good if self.is_wanted(point[None])[0]), [])

    def _minimized(self, start: Array, free: Array) -> list[Array]:
        """Near points at which the wanted class has the largest score, by a local minimizer."""
        if len(free) > MOST_INPUTS:
            return []
        search, k = self._search(free), self.wanted
        assert k is not None  # any other class needs no minimizer
        A, u0 = search.change.matrix, self.scores.inputs.change.apply(start)
        others = [j for j in range(len(self.scores.b)) if j != k]
        Q = self.scores.Q[k] - self.scores.Q[others]
        W = self.scores.W[k] - self.scores.W[others]
        b = self.scores.b[k] - self.scores.b[others]

        def lead(s: Array) -> Array:
            u = u0 + A @ s
            return np.asarray((Q @ u + W) @ u + b)

        def slope(s: Array) -> Array:
            return np.asarray((2 * Q @ (u0 + A @ s) + W) @ A)

        # a small lead, so that the solution is inside the region where several classes meet
        least = LEAD * float(np.abs(lead(np.zeros(len(free)))).max())
        constraint: Any = {"type": "ineq", "fun": lambda s: lead(s) - least, "jac": slope}
        rng, found = np.random.default_rng(0), []
        ties = [search.tie(start[None], j, k) for j in others]
        starts = [tie.steps[0] @ tie.V.T for tie in ties if np.isfinite(tie.lengths[0])]
        reach = max([float(np.linalg.norm(one)) for one in starts], default=1.0) or 1.0
        random = rng.normal(size=(len(SCALES) * 8, len(free))) / np.sqrt(len(free))
        starts += list(random * reach * np.repeat(SCALES, 8)[:, None])
        for s in starts:
            solved = minimize(
                lambda s: (s @ s, 2 * s), s, jac=True, method="SLSQP", constraints=[constraint]
            )
            if np.isfinite(solved.x).all():
                step = np.zeros(len(start))
                step[free] = solved.x * self.sizes[free]
                found += self._past(start, step)
        return found

    def _search(self, free: Array) -> Search:
        key = free.tobytes()
        if key not in self._searches:
            self._searches[key] = Search(self.scores, free, self.sizes)
        return self._searches[key]
