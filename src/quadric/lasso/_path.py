"""Solutions for a sequence of penalties, each checked over all terms.

A solution on a working set is optimal if no group outside of it has a score above alpha. The
residual at the solution is split into a combination of earlier residuals, for which the gradients
of all terms are known, and a rest. The gradient of the combination is known, and the rest changes a
score by at most its root mean square. This bound excludes most groups without looking at the data.
If few are left, their scores are computed one by one, otherwise those of all groups in one pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from quadric.checks import Array
from quadric.lasso._newton import minimize
from quadric.lasso._problem import Problem, Solution
from quadric.lasso._working_set import Columns, Curvature, WorkingSet

REFERENCES = 4  # residuals whose gradients are kept
SINGLE = 400  # scores are computed one by one for at most n_terms / SINGLE groups
FEWEST_ADDED = 20  # groups that violate the conditions and are added at once
ROUNDING = 1e-10  # of the size of a residual: the error of a gradient, which the bounds include
MOST_PROOFS = 3  # attempts to reach a violation of at most ENOUGH of alpha
ENOUGH = 1e-7


@dataclass(frozen=True)
class Certificate:
    """How far a fitted model is from the optimum, over all terms.

    Parameters
    ----------
    kkt_violation : float
        The largest violation of the optimality conditions over all groups, divided by alpha.
    duality_gap : float
        An upper bound on the difference between the objective and its minimum.
    objective : float
        Mean loss plus penalty.
    n_terms : int
        The number of terms whose conditions were checked, for each output.
    n_passes : int
        The number of passes over all terms in the fit.
    """

    kkt_violation: float
    duality_gap: float
    objective: float
    n_terms: int
    n_passes: int


@dataclass(frozen=True)
class Point:
    """One point of a path: the penalty, the terms and their standardized coefficients.

    Parameters
    ----------
    alpha : float
        The penalty.
    intercept : array of shape (K,)
        The intercept with respect to the standardized terms.
    terms : array of shape (n_nonzero,)
        The numbers of the terms that are not zero for all outputs.
    coefficients : array of shape (n_nonzero, K)
        Their coefficients.
    loss : float
        The mean loss.
    objective : float
        Mean loss plus penalty.
    """

    alpha: float
    intercept: Array
    terms: Array
    coefficients: Array
    loss: float
    objective: float


@dataclass
class References:
    """Residuals and the gradients of all terms there."""

    residuals: list[Array] = field(default_factory=list)
    gradients: list[Array] = field(default_factory=list)

    def add(self, residual: Array, gradient: Array) -> None:
        """Keep a residual; the oldest is dropped if there are too many."""
        self.residuals = [*self.residuals, residual][-REFERENCES:]
        self.gradients = [*self.gradients, gradient][-REFERENCES:]

    def estimate(self, residual: Array, weight: Array) -> tuple[Array, Array]:
        """The gradient of the projection on the references, and the size of the rest by class."""
        estimate, rest = np.empty_like(self.gradients[0]), np.empty(residual.shape[1])
        root = np.sqrt(weight)
        for k in range(residual.shape[1]):
            A = np.stack([one[:, k] for one in self.residuals], axis=1)
            R = root[:, None] * A
            factors = np.linalg.lstsq(R, root * residual[:, k], rcond=1e-10)[0]
            estimate[:, k] = sum(
                f * one[:, k] for f, one in zip(factors, self.gradients, strict=True)
            )
            rest[k] = np.sqrt(weight @ (residual[:, k] - A @ factors) ** 2)
            rest[k] += ROUNDING * (np.abs(factors) @ np.linalg.norm(R, axis=0))
        return estimate, rest


class Path:
    """Solve a problem for decreasing penalties, each solution starting from the last.

    Parameters
    ----------
    problem : Problem
        What is minimized.
    tol : float
        No optimality condition is violated by more than tol * alpha.

    Attributes
    ----------
    solution : Solution
        The last solution.
    n_passes, n_skipped : int
        The number of passes over all terms, and of checks that did not need one.
    """

    def __init__(self, problem: Problem, tol: float = 1e-10) -> None:
        self.problem, self.tol = problem, tol
        self.solution = Solution.zero(problem)
        self.references = References()
        self.columns = Columns(problem)
        self.curvature = Curvature(problem, self.columns)
        self.working = WorkingSet.of(problem, [], self.columns)
        self.n_passes = self.n_skipped = 0
        self._solve([], 1.0)
        self._pass()
        scores = np.where(
            problem.usable[:, None], problem.scores(self.references.gradients[-1]), 0.0
        )
        self.alpha_max = float(scores.max(initial=0.0))

    @property
    def residual(self) -> Array:
        """The residual of the last solution."""
        return self.problem.function.residual(self.solution.z, self.problem.Y)

    def _pass(self) -> Array:
        residual = self.residual
        gradient = self.problem.terms.gradient(residual)
        self.references.add(residual, gradient)
        self.n_passes += 1
        return gradient

    def _solve(self, groups: list[tuple[int, int]], alpha: float) -> None:
        self.working = WorkingSet.of(self.problem, groups, self.columns)
        minimize(self.problem, self.solution, self.working, self.curvature, alpha, self.tol / 2)

    def solve(self, alpha: float) -> Point:
        """Return the solution for one penalty."""
        groups = self._likely(alpha)
        while True:
            self._solve(groups, alpha)
            added = self._violating(alpha)
            if not added:
                return self._point(alpha)
            groups = [*groups, *added]

    def _point(self, alpha: float) -> Point:
        problem, solution = self.problem, self.solution
        terms, coefficients = solution.coefficients(problem)
        loss = problem.mean_loss(solution.z)
        objective = loss + alpha * solution.penalty
        return Point(alpha, solution.intercept.copy(), terms, coefficients, loss, objective)

    def _estimated_scores(self) -> tuple[Array, Array, Array]:
        """Estimated gradients and scores, and bounds on the scores; unusable groups have -inf."""
        estimate, rest = self.references.estimate(self.residual, self.problem.terms.weight)
        scores = self.problem.scores(estimate)
        scores[~self.problem.usable] = -np.inf
        return estimate, scores, scores + rest

    def _likely(self, alpha: float) -> list[tuple[int, int]]:
        """The nonzero groups, and the strongest ones by the sequential strong rule."""
        groups = list(self.solution.groups)
        _, scores, _ = self._estimated_scores()
        last = getattr(self, "_last_alpha", max(alpha, self.alpha_max))
        self._last_alpha = alpha
        found = self._strongest(scores, 2 * alpha - last, groups)
        return [*groups, *found]

    def _strongest(
        self, scores: Array, least: float, known: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Groups with scores above a number, the largest first, without those that are known."""
        scores = scores.copy()
        for k, group in known:
            scores[group, k] = -np.inf
        places = np.flatnonzero(scores.ravel() > max(least, 0.0))
        most = max(FEWEST_ADDED, len(known))
        if len(places) > most:
            places = places[np.argpartition(-scores.ravel()[places], most)[:most]]
        return [(int(p % scores.shape[1]), int(p // scores.shape[1])) for p in places]

    def _violating(self, alpha: float) -> list[tuple[int, int]]:
        """Groups outside the working set whose score exceeds alpha; empty at the optimum."""
        problem, limit = self.problem, alpha * (1 + self.tol)
        estimate, _, bounds = self._estimated_scores()
        for k, group in self.working.groups:
            bounds[group, k] = -np.inf
        undecided = np.flatnonzero((bounds > limit).any(axis=1))
        if len(undecided) > problem.terms.n_terms / SINGLE:
            estimate = self._pass()
        else:
            self.n_skipped += 1
            if not len(undecided):
                return []
            members = np.unique([t for group in undecided for t in problem.members(int(group))])
            estimate[members] = problem.terms.gradient_of(members, self.residual)
        scores = problem.scores(estimate)
        scores[~np.isfinite(bounds)] = -np.inf
        if len(undecided) <= problem.terms.n_terms / SINGLE:
            mask = np.ones(len(scores), dtype=bool)
            mask[undecided] = False
            scores[mask] = -np.inf
        return self._strongest(scores, limit, self.working.groups)

    def prove(self, alpha: float) -> tuple[Point, Certificate]:
        """Return the solution for one penalty, and how far it is from the optimum.

        The gradients of `solve` include bounds. If the exact ones show a violation, which rounding
        could hide, the problem is solved again with these.
        """
        for _ in range(MOST_PROOFS):
            point, found = self.solve(alpha), self.certificate(alpha)
            if found.kkt_violation <= max(10 * self.tol, ENOUGH):
                break
        return point, found

    def certificate(self, alpha: float) -> Certificate:
        """Compute how far the last solution is from the optimum, in one pass over all terms."""
        problem, solution = self.problem, self.solution
        gradient = self._pass()
        scores = np.where(problem.usable[:, None], problem.scores(gradient), 0.0)
        violations = np.maximum(scores - alpha, 0.0)
        for (k, group), values in solution.groups.items():
            members = problem.members(group)
            root = np.sqrt(len(members))
            ideal = alpha * root * values / np.linalg.norm(values)
            violations[group, k] = np.linalg.norm(gradient[members, k] + ideal) / root
        objective = problem.mean_loss(solution.z) + alpha * solution.penalty
        residual = self.residual
        gap = problem.gap(solution.z, residual, solution.penalty, alpha, float(scores.max()))
        return Certificate(
            float(violations.max(initial=0.0)) / alpha,
            gap,
            float(objective),
            problem.terms.n_terms,
            self.n_passes,
        )


def grid(alpha_max: float, count: int, ratio: float) -> Array:
    """Penalties in decreasing geometric order, from alpha_max to ratio * alpha_max."""
    return alpha_max * np.geomspace(1.0, ratio, count)


def follow(path: Path, alphas: Array, most: int | None = None) -> Iterator[Point]:
    """Yield the points of a path while no more than `most` terms are not zero."""
    for alpha in alphas:
        point = path.solve(float(alpha))
        if most is not None and np.count_nonzero(point.coefficients, axis=0).max(initial=0) > most:
            return
        yield point
