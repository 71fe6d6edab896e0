"""Newton's method with a penalty, on the groups of a working set."""

import numpy as np

from quadric import kernels
from quadric.checks import Array
from quadric.errors import expect
from quadric.lasso._problem import Problem, Solution
from quadric.lasso._working_set import Curvature, WorkingSet

MOST_STEPS = 200
MOST_SWEEPS = 100_000
HALVINGS = 40
SUFFICIENT = 1e-4  # the share of the predicted decrease that a step must achieve
ROUNDING = 1e-14  # of the objective
SLOW = 0.3  # a step that leaves a larger share of the violation needs new second derivatives


def minimize(
    problem: Problem,
    solution: Solution,
    working: WorkingSet,
    curvature: Curvature,
    alpha: float,
    tol: float,
) -> None:
    """Minimize over the groups of the working set, until no condition is violated by tol * alpha.

    The solution is updated in place; its groups must be in the working set. The second derivatives
    are computed again if those of an earlier point no longer make fast progress.
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
    z = solution.intercept + working.columns.times(working.table(x, K))
    value = problem.mean_loss(z) + float(weights @ working.norms(x))
    stalled, last, fresh = False, np.inf, problem.loss == "squared"
    for _ in range(MOST_STEPS):
        residual = loss.residual(z, problem.Y)
        weighted = problem.terms.weight[:, None] * residual
        gradients = working.columns.sums(weighted), weighted.sum(axis=0)
        gradient, of_intercept = gradients[0][working.column, working.klass], gradients[1]
        violation = max(stationarity(working, x, gradient, weights), np.abs(of_intercept).max())
        if violation <= tol * alpha or (stalled and fresh and violation > last / 2):
            break
        if problem.loss != "squared":
            fresh = violation > SLOW * last or not curvature.keys
            if fresh:
                curvature.forget(residual + problem.Y)
        step, shift = _newton_step(working, x, gradients, curvature, weights, tol * alpha)
        predicted = float(gradient @ step + of_intercept @ shift)
        predicted += float(weights @ (working.norms(x + step) - working.norms(x)))
        dz = shift + working.columns.times(working.table(step, K))
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
        stalled = predicted > -slack  # the objective no longer shows progress
        last = violation
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
    working: WorkingSet,
    x: Array,
    gradients: tuple[Array, Array],
    curvature: Curvature,
    weights: Array,
    tol: float,
) -> tuple[Array, Array]:
    """The step to the minimum of the quadratic model plus the penalty, and that of the intercept.

    The intercept is eliminated, so that only penalized coordinates remain.
    """
    of_columns, of_intercept = gradients
    if not len(x):
        return x, -curvature.inverse @ of_intercept
    place = curvature.places(working.keys)
    classes, columns = (np.array(part) for part in zip(*curvature.keys, strict=True))
    mixed, H = curvature.mixed[:, : len(classes)], curvature.H
    linear = of_columns[columns, classes] - mixed.T @ (curvature.inverse @ of_intercept)
    vectors, values = _eigen(H, place, working)
    target, start = x.copy(), working.starts
    kernels.block_descent(
        H, linear, target, place, start, weights, vectors, values, tol / 10, MOST_SWEEPS
    )
    step = target - x
    expect(bool(np.isfinite(step).all()), ValueError("the data are too large; scale the features."))
    shift = np.bincount(place, step, len(classes))
    return step, -curvature.inverse @ (of_intercept + mixed @ shift)


def _eigen(H: Array, place: Array, working: WorkingSet) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of the groups' blocks of H, padded to size 3."""
    count = len(working.sizes)
    vectors, values = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for size in np.unique(working.sizes):
        some = np.flatnonzero(working.sizes == size)
        keys = place[working.starts[some][:, None] + np.arange(size)]
        w, V = np.linalg.eigh(H[keys[:, :, None], keys[:, None, :]])
        vectors[some, :size, :size], values[some, :size] = V, np.maximum(w, 0.0)
    return vectors, values
