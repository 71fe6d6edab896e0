"""Newton's method with a penalty, on the groups of a working set."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quadric import kernels
from quadric.checks import Array
from quadric.core import weighted_products
from quadric.errors import expect
from quadric.lasso._problem import Problem, Solution
from quadric.lasso._terms import ROWS
from quadric.utils import check_limit

MOST_STEPS = 100
MOST_SWEEPS = 100_000
HALVINGS = 40
SUFFICIENT = 1e-4  # the share of the predicted decrease that a step must achieve
ROUNDING = 1e-14  # of the objective
LARGEST = 2**24  # numbers in the products of the columns for several pairs of classes


@dataclass
class WorkingSet:
    """The groups that may be nonzero, their coordinates, and the columns of their terms.

    Coordinate c belongs to class `klass[c]` and to column `column[c]`. Group g has the coordinates
    starts[g] to starts[g + 1] - 1.
    """

    groups: list[tuple[int, int]]
    terms: Array
    columns: Array
    klass: Array
    column: Array
    starts: Array

    @classmethod
    def of(
        cls, problem: Problem, groups: list[tuple[int, int]], before: "WorkingSet | None"
    ) -> "WorkingSet":
        """Return the working set of these groups; columns are taken from the one before."""
        members = [problem.members(group) for _, group in groups]
        terms = np.unique(np.array([t for some in members for t in some], dtype=np.intp))
        columns = np.empty((problem.terms.n_samples, len(terms)), order="F")
        known = np.zeros(len(terms), dtype=bool)
        if before is not None:
            known = np.isin(terms, before.terms)
            columns[:, known] = before.columns[:, np.searchsorted(before.terms, terms[known])]
        if not known.all():
            columns[:, ~known] = problem.terms.columns(terms[~known])
        sizes = [len(some) for some in members]
        return cls(
            groups,
            terms,
            columns,
            np.repeat([k for k, _ in groups], sizes).astype(np.intp),
            np.searchsorted(terms, [t for some in members for t in some]).astype(np.intp),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        )

    @property
    def sizes(self) -> Array:
        """The number of coordinates of each group."""
        return np.diff(self.starts)

    def table(self, x: Array, K: int) -> Array:
        """The coefficients of the columns, shape (columns, K), that the coordinates x add up to."""
        found = np.zeros((len(self.terms), K))
        np.add.at(found, (self.column, self.klass), x)
        return found

    def norms(self, x: Array) -> Array:
        """The norm of each group."""
        return np.sqrt(np.add.reduceat(x * x, self.starts[:-1])) if len(x) else np.zeros(0)


def minimize(
    problem: Problem, solution: Solution, working: WorkingSet, alpha: float, tol: float
) -> None:
    """Minimize over the groups of the working set, until no condition is violated by tol * alpha.

    The solution is updated in place; its groups must be in the working set.
    """
    x = np.concatenate(
        [
            solution.groups.get(key, np.zeros(size))
            for key, size in zip(working.groups, working.sizes, strict=True)
        ]
        or [np.zeros(0)]
    )
    loss, K = problem.function, problem.Y.shape[1]
    weights = alpha * np.sqrt(working.sizes)
    z = solution.intercept + working.columns @ working.table(x, K)
    value = problem.mean_loss(z) + float(weights @ working.norms(x))
    stalled, last = False, np.inf
    for _ in range(MOST_STEPS):
        residual = loss.residual(z, problem.Y)
        response = residual + problem.Y
        weighted = problem.terms.weight[:, None] * residual
        gradient = (working.columns.T @ weighted)[working.column, working.klass]
        of_intercept = weighted.sum(axis=0)
        violation = max(stationarity(working, x, gradient, weights), np.abs(of_intercept).max())
        if violation <= tol * alpha or (stalled and violation > last / 2):
            break
        step, shift = _newton_step(
            problem, working, x, (gradient, of_intercept), response, weights, tol * alpha
        )
        predicted = float(gradient @ step + of_intercept @ shift)
        predicted += float(weights @ (working.norms(x + step) - working.norms(x)))
        dz = shift + working.columns @ working.table(step, K)
        size, slack = 1.0, ROUNDING * max(1.0, abs(value))
        for _ in range(HALVINGS):
            new = problem.mean_loss(z + size * dz)
            new += float(weights @ working.norms(x + size * step))
            if new <= value + SUFFICIENT * size * min(predicted, 0.0) + slack:
                break
            size /= 2
        else:
            break  # rounding hides any further decrease
        x, z, value = x + size * step, z + size * dz, new
        stalled, last = predicted > -slack, violation  # the objective no longer shows progress
        solution.intercept = solution.intercept + size * shift
    if problem.loss == "multinomial":  # a constant that is added to all scores has no effect
        z = z - solution.intercept.mean()
        solution.intercept = solution.intercept - solution.intercept.mean()
    solution.z = z
    parts = np.split(x, working.starts[1:-1]) if len(x) else []
    solution.groups = {
        key: part for key, part in zip(working.groups, parts, strict=True) if part.any()
    }


def stationarity(working: WorkingSet, x: Array, gradient: Array, weights: Array) -> float:
    """The largest violation of the optimality conditions, divided by sqrt(size) of its group."""
    if not len(x):
        return 0.0
    norms, starts, sizes = working.norms(x), working.starts[:-1], working.sizes
    scale = np.divide(weights, norms, out=np.zeros_like(norms), where=norms > 0)
    whole = np.sqrt(np.add.reduceat((gradient + np.repeat(scale, sizes) * x) ** 2, starts))
    found = np.where(norms > 0, whole, np.maximum(whole - weights, 0.0)) / np.sqrt(sizes)
    return float(found.max())


def _newton_step(
    problem: Problem,
    working: WorkingSet,
    x: Array,
    gradients: tuple[Array, Array],
    response: Array,
    weights: Array,
    tol: float,
) -> tuple[Array, Array]:
    """The step to the minimum of the quadratic model plus the penalty, and that of the intercept.

    The intercept is eliminated, so that only penalized coordinates remain.
    """
    (gradient, of_intercept), _K = gradients, problem.Y.shape[1]
    H, mixed, own = _hessian(problem, working, response)
    inverse = np.linalg.pinv(own, hermitian=True)
    if not len(x):
        return x, -inverse @ of_intercept
    keys, place = np.unique(
        working.klass * len(working.terms) + working.column, return_inverse=True
    )
    H = H - mixed.T @ inverse @ mixed
    if len(place) > len(keys) or np.any(np.diff(place) != 1):
        H, mixed = H[np.ix_(place, place)], mixed[:, place]
    linear = gradient - mixed.T @ (inverse @ of_intercept)
    vectors, values = _eigen(H, working)
    target = x.copy()
    kernels.block_descent(
        H, linear.copy(), target, working.starts, weights, vectors, values, tol / 10, MOST_SWEEPS
    )
    step = target - x
    expect(bool(np.isfinite(step).all()), ValueError("the data are too large; scale the features."))
    return step, -inverse @ (of_intercept + mixed @ step)


def _eigen(H: Array, working: WorkingSet) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of the groups' blocks of H, padded to size 3."""
    count = len(working.sizes)
    vectors, values = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for size in np.unique(working.sizes):
        some = np.flatnonzero(working.sizes == size)
        place = working.starts[some][:, None] + np.arange(size)
        blocks = H[place[:, :, None], place[:, None, :]]
        w, V = np.linalg.eigh(blocks)
        vectors[some, :size, :size], values[some, :size] = V, np.maximum(w, 0.0)
    return vectors, values


def _hessian(problem: Problem, working: WorkingSet, response: Array) -> tuple[Array, Array, Array]:
    """Second derivatives by the distinct pairs of class and column, mixed ones, and intercepts'.

    The pairs are in the order of their classes, then of their columns.
    """
    K, t = problem.Y.shape[1], len(working.terms)
    used = [np.unique(working.column[working.klass == k]) for k in range(K)]
    first = np.concatenate([[0], np.cumsum([len(some) for some in used])])
    check_limit(
        8 * 3 * first[-1] ** 2, f"{first[-1]:,} coefficients", "Set max_terms, or a larger alpha."
    )
    H, mixed, own = np.zeros((first[-1], first[-1])), np.zeros((K, first[-1])), np.zeros((K, K))
    at_once = max(1, LARGEST // (t + 1) ** 2)
    every = [(k, l) for k in range(K) for l in range(k, K)]
    for start in range(0, len(every), at_once):
        some = every[start : start + at_once]
        for (k, l), M in zip(some, _products(problem, working, response, some), strict=True):
            of_k, of_l = slice(first[k], first[k + 1]), slice(first[l], first[l + 1])
            H[of_k, of_l] = M[np.ix_(used[k], used[l])]
            H[of_l, of_k] = H[of_k, of_l].T
            mixed[k, of_l], mixed[l, of_k] = M[t, used[l]], M[t, used[k]]
            own[k, l] = own[l, k] = M[t, t]
    return H, mixed, own


def _products(
    problem: Problem, working: WorkingSet, response: Array, pairs: list[tuple[int, int]]
) -> Iterator[Array]:
    """Products of the columns and a column of ones, weighted by the curvatures of some pairs."""
    size, weight = len(working.terms) + 1, problem.terms.weight
    packed = np.zeros((size * (size + 1) // 2, len(pairs)))
    for start in range(0, len(weight), ROWS):
        rows = slice(start, start + ROWS)
        mu = response[rows]
        T = np.ones((len(mu), size))
        T[:, :-1] = working.columns[rows]
        D = np.stack([problem.function.curvature(mu, k, l) for k, l in pairs], axis=1)
        packed += weighted_products(T, weight[rows, None] * D)
    i, j = np.triu_indices(size)
    M = np.empty((size, size))
    for column in packed.T:
        M[i, j] = M[j, i] = np.where(i == j, column, column / 2)
        yield M
