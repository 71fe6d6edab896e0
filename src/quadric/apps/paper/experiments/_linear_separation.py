"""Whether linear neurons can separate classes, decided exactly by linear programming."""

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from quadric.checks import Array


def separable_by_argmax(X: Array, y: Array) -> bool:
    """Return whether one linear neuron per class can have the largest output for all its points.

    The condition is (w_y - w_k)'x + b_y - b_k >= 1 for every point and every other class k.
    """
    corners = _corners(X, y)
    rows = []
    for own, points in enumerate(corners):
        with_bias = np.column_stack([points, np.ones(len(points))])
        for other in range(len(corners)):
            if other != own:
                blocks = np.zeros((len(points), len(corners), with_bias.shape[1]))
                blocks[:, own], blocks[:, other] = with_bias, -with_bias
                rows.append(blocks.reshape(len(points), -1))
    return _feasible(np.concatenate(rows))


def separable_from_the_rest(X: Array, y: Array) -> list[bool]:
    """Return, for each class, whether one linear neuron can separate it from all the others."""
    corners = _corners(X, y)
    separable = []
    for own in range(len(corners)):
        signed = [
            (1 if k == own else -1) * np.column_stack([points, np.ones(len(points))])
            for k, points in enumerate(corners)
        ]
        separable.append(_feasible(np.concatenate(signed)))
    return separable


def _corners(X: Array, y: Array) -> list[Array]:
    """Return the corners of each class's convex hull: a linear function is extreme at these."""
    classes = [X[y == k] for k in np.unique(y)]
    return [points[ConvexHull(points).vertices] for points in classes]


def _feasible(rows: Array) -> bool:
    """Return whether there is a vector whose product with every row is at least 1."""
    solution = linprog(
        np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None)
    )
    return bool(solution.status == 0)
