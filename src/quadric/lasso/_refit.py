"""New coefficients for the terms that the lasso has chosen, which its penalty makes too small."""

from dataclasses import replace

import numpy as np

from quadric.checks import Array
from quadric.lasso._path import Point
from quadric.lasso._problem import Problem
from quadric.training import Descent

PAIRS, MOST_ITERATIONS = 10, 200
CLOSE = 1e-6  # the largest derivative at the end


def refit(
    problem: Problem, point: Point, before: Point | None = None, close: float = CLOSE
) -> Point:
    """Return a point with the coefficients that minimize mean loss + ||coefficients||² / (2N).

    Coefficients that are zero stay zero. The ridge penalty, for N samples, keeps the coefficients
    of separable classes finite. The minimization starts at the coefficients of `before`, the result
    for another penalty, and ends when no derivative is larger than `close`.
    """
    columns, chosen = problem.terms.columns(point.terms), point.coefficients != 0
    weight, K, ridge = problem.terms.weight[:, None], len(point.intercept), 1 / len(problem.Y)

    def unpacked(v: Array) -> tuple[Array, Array]:
        coefficients = np.zeros(chosen.shape)
        coefficients[chosen] = v[K:]
        return v[:K], coefficients

    def evaluate(v: Array) -> tuple[float, Array]:
        intercept, coefficients = unpacked(v)
        z = intercept + columns @ coefficients
        residual = weight * problem.function.residual(z, problem.Y)
        slope = columns.T @ residual + ridge * coefficients
        value = problem.mean_loss(z) + ridge / 2 * float((coefficients**2).sum())
        return value, np.concatenate([residual.sum(axis=0), slope[chosen]])

    start = point.coefficients.copy()
    if before is not None:
        common = np.isin(before.terms, point.terms)
        rows, old = np.searchsorted(point.terms, before.terms[common]), before.coefficients[common]
        start[rows] = np.where(old != 0, old, start[rows])
    intercept = point.intercept if before is None else before.intercept
    descent = Descent.start(evaluate, np.concatenate([intercept, start[chosen]]), PAIRS)
    for _ in range(MOST_ITERATIONS):
        if np.abs(descent.gradient).max() <= close or not descent.iterate(evaluate):
            break
    intercept, coefficients = unpacked(descent.x)
    loss = problem.mean_loss(intercept + columns @ coefficients)
    return replace(point, intercept=intercept, coefficients=coefficients, loss=loss)
