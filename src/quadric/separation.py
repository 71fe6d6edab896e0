"""The cluster theorem as a tool: one ellipsoid around each class, one neuron for each ellipsoid.

The paper states that C bounded clusters are separated by one layer of C quadratic neurons. That
holds where every class has an ellipsoid that keeps the others out; it is certain where the
ellipsoids are disjoint. It does not hold for all bounded clusters: two interleaved moons can not
be separated by any conic, which `separating_quadric` proves by linear programming.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from quadric import checks
from quadric.arrays import Array, as_numbers
from quadric.convert import from_ellipsoids
from quadric.geometry import Quadric
from quadric.geometry.ellipsoids import disjoint, smallest_ellipsoid
from quadric.network import Network

__all__ = ["QuadricSeparation", "Separation", "separate", "separating_quadric"]

FLOAT = np.dtype(np.float64)


@dataclass(frozen=True)
class Separation:
    """Classes and the ellipsoids around them.

    Attributes
    ----------
    classes : array
    ellipsoids : list of Quadric
        The smallest one around each class.
    network : Network
        One logistic neuron for each class, above 1/2 exactly inside its ellipsoid.
    overlapping : list of pairs of classes
        Those whose ellipsoids have points in common.
    intruding : list of pairs of classes
        (a, b) where points of b lie inside the ellipsoid of a.
    """

    classes: Array
    ellipsoids: list[Quadric]
    network: Network
    overlapping: list[tuple[Any, Any]]
    intruding: list[tuple[Any, Any]]

    @property
    def disjoint(self) -> bool:
        """Whether no two ellipsoids meet: then the classes are separated with certainty."""
        return not self.overlapping

    @property
    def separates(self) -> bool:
        """Whether every given point is inside the ellipsoid of its own class and no other."""
        return not self.intruding

    def predict(self, X: Any) -> Array:
        """The class whose neuron is largest."""
        return self.classes[self.network.logits(X).argmax(axis=1)]

    def __str__(self) -> str:
        lines = [f"{len(self.classes)} classes, one ellipsoid around each."]
        if self.disjoint:
            lines.append("No two ellipsoids meet: the separation is certain.")
        elif self.separates:
            lines.append("Ellipsoids meet, but no given point is in the wrong one.")
        else:
            lines.append("Not separated: points of one class lie in the ellipsoid of another.")
        if self.overlapping:
            pairs = ", ".join(f"{a} and {b}" for a, b in self.overlapping)
            lines.append(f"These ellipsoids overlap: {pairs}.")
        if self.intruding:
            pairs = ", ".join(f"{b} in {a}" for a, b in self.intruding)
            lines.append(f"Points inside another class's ellipsoid: {pairs}.")
        return "\n".join(lines)


def separate(X: Any, y: Any, *, tolerance: float = 1e-7, sharpness: float = 1.0) -> Separation:
    """The smallest ellipsoid around each class, as a layer of quadratic neurons.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Labels of two classes or more.
    tolerance : float
        Of Khachiyan's algorithm; see `quadric.geometry.ellipsoids.smallest_ellipsoid`.
    sharpness : float
        How steeply a neuron falls from the inside of its ellipsoid to the outside.

    Notes
    -----
    Disjoint ellipsoids are sufficient, not necessary: overlapping ones may still keep the given
    points apart (`separates`), and where they do not, another quadric may (`separating_quadric`).

    Examples
    --------
    >>> from quadric.separation import separate
    >>> result = separate([[0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]], list("aaabbb"))
    >>> print(result)
    2 classes, one ellipsoid around each.
    No two ellipsoids meet: the separation is certain.
    """
    X, y = _labelled(X, y)
    checks.check_number("sharpness", sharpness, above=0)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes. Got only {classes.tolist()}.")
    ellipsoids = [
        smallest_ellipsoid(X[index == k], tolerance=tolerance) for k in range(len(classes))
    ]
    labels = classes.tolist()
    overlapping = [
        (labels[i], labels[j])
        for i, j in itertools.combinations(range(len(labels)), 2)
        if not disjoint(ellipsoids[i], ellipsoids[j])
    ]
    intruding = [
        (labels[i], labels[j])
        for i, j in itertools.permutations(range(len(labels)), 2)
        if ellipsoids[i].encloses(X[index == j]).any()
    ]
    network = from_ellipsoids(ellipsoids, sharpness)
    # far from the origin z is rounded more than F is: points on an edge are taken in again
    z = network.logits(X)[np.arange(len(X)), index]
    for k in range(len(classes)):
        network.layers[0].b[k] += 2 * max(0.0, -float(z[index == k].min()))
    return Separation(classes, ellipsoids, network, overlapping, intruding)


@dataclass(frozen=True)
class QuadricSeparation:
    """Whether one quadric separates two classes, with the proof either way.

    Attributes
    ----------
    quadric : Quadric or None
        Positive on the second class, negative on the first, with the widest margin.
    margin : float
        The least |F| on the points, for coefficients between -1 and 1 of standardised features;
        0 where no quadric separates them.
    weights : array of shape (n_samples,) or None
        The proof that there is none: non-negative weights, 1 in sum for each class, for which the
        two classes have the same means, and the same means of all squares and products. So every
        quadratic function has the same weighted mean on both classes, and cannot be positive on
        one and negative on the other.
    """

    quadric: Quadric | None
    margin: float
    weights: Array | None


def separating_quadric(X: Any, y: Any) -> QuadricSeparation:
    """A quadric that separates two classes, or the proof that there is none.

    A linear program in the coefficients of F: maximise the margin t subject to F >= t on the
    second class and F <= -t on the first. If t = 0 is the best, the program's dual solution is
    the proof.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Labels of two classes.
    """
    X, y = _labelled(X, y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold exactly 2 classes. Got {classes.tolist()}.")
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    Z = (X - mean) / scale
    n = Z.shape[1]
    rows, columns = np.triu_indices(n)
    monomials = np.column_stack([Z[:, rows] * Z[:, columns], Z, np.ones(len(Z))])
    sign = np.where(y == classes[1], 1.0, -1.0)
    # t - sign F <= 0; the last variable is t
    A = np.column_stack([-sign[:, None] * monomials, np.ones(len(Z))])
    cost = np.zeros(A.shape[1])
    cost[-1] = -1.0
    bounds = [(-1.0, 1.0)] * monomials.shape[1] + [(0.0, None)]
    result = optimize.linprog(cost, A_ub=A, b_ub=np.zeros(len(Z)), bounds=bounds, method="highs")
    if result.status != 0:
        raise RuntimeError(f"the linear program was not solved: {result.message}")
    margin = float(result.x[-1])
    coefficients = result.x[:-1]
    if margin > 1e-9 and (sign * (monomials @ coefficients)).min() > 0:
        Q = np.zeros((n, n))
        Q[rows, columns] = coefficients[: len(rows)]
        w, b = coefficients[len(rows) : len(rows) + n], coefficients[-1]
        return QuadricSeparation(Quadric(Q, w, b).transform(scale, mean), margin, None)
    weights = -result.ineqlin.marginals  # their sum is 1: half of it on each class
    weights = np.maximum(weights, 0.0)
    for label in classes:
        weights[y == label] /= weights[y == label].sum()
    return QuadricSeparation(None, 0.0, weights)


def _labelled(X: Any, y: Any) -> tuple[Array, Array]:
    X = as_numbers("X", X, FLOAT)
    y = np.asarray(y)
    if X.ndim != 2 or not X.size or y.shape != (len(X),):
        raise ValueError(
            "X must have shape (n_samples, n_features) and y (n_samples,). "
            f"Got {X.shape} and {y.shape} instead."
        )
    return X, y
