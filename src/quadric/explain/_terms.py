"""The terms of a quadratic function, ranked by what they do on data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry import Quadric


@dataclass(frozen=True)
class Term:
    """One term of a quadratic function.

    Attributes
    ----------
    kind : {'squared', 'interaction', 'linear'}
    features : tuple of int
        The one or two coordinates in it.
    names : tuple of str
    coefficient : float
        Of x_i² or of x_i x_j (that is 2 q_ij); of a linear term the slope at the data's mean.
    effect : float
        The standard deviation over the data of the term about the data's mean: of
        q_ii (x_i - mean_i)², of 2 q_ij (x_i - mean_i)(x_j - mean_j), of the slope times
        (x_i - mean_i). In units of z, so that effects can be compared whatever the features' units.
    """

    kind: str
    features: tuple[int, ...]
    names: tuple[str, ...]
    coefficient: float
    effect: float

    def __str__(self) -> str:
        return self.names[0] + "²" if self.kind == "squared" else "·".join(self.names)


@dataclass(frozen=True)
class Moments:
    """What ranking needs to know of the data.

    Attributes
    ----------
    mean, std : arrays of shape (n,)
    products : array of shape (n, n)
        The standard deviation of (x_i - mean_i)(x_j - mean_j).
    origin : str
        What they were taken from, in words.
    """

    mean: Array
    std: Array
    products: Array
    origin: str

    @classmethod
    def of(cls, X: Array) -> Moments:
        mean = X.mean(axis=0)
        Z = X - mean
        squares = Z**2
        second = Z.T @ Z / len(Z)
        fourth = squares.T @ squares / len(Z)
        return cls(
            mean,
            np.sqrt(squares.mean(axis=0)),
            np.sqrt(np.maximum(fourth - second**2, 0.0)),
            f"the {len(X)} samples given",
        )

    @classmethod
    def assumed(cls, mean: Array, std: Array, origin: str) -> Moments:
        """Those of independent normal features."""
        products = np.outer(std, std)
        np.fill_diagonal(products, np.sqrt(2) * std**2)
        return cls(mean, std, products, origin)


def rank_terms(surface: Quadric, moments: Moments, names: list[str], top: int) -> list[Term]:
    """The `top` strongest squared terms and interactions and the `top` strongest linear ones."""
    n = surface.n_dims
    rows, columns = np.triu_indices(n)
    coefficients = surface.Q[rows, columns] * np.where(rows == columns, 1.0, 2.0)
    effects = np.abs(coefficients) * moments.products[rows, columns]
    terms = []
    for k in np.argsort(-effects, kind="stable")[:top]:
        i, j = int(rows[k]), int(columns[k])
        where = (i,) if i == j else (i, j)
        terms.append(
            Term(
                "squared" if i == j else "interaction", where, tuple(names[d] for d in where),
                float(coefficients[k]), float(effects[k]),
            )
        )  # fmt: skip
    slopes = surface.gradient(moments.mean)
    strengths = np.abs(slopes) * moments.std
    for i in np.argsort(-strengths, kind="stable")[:top].tolist():
        terms.append(Term("linear", (i,), (names[i],), float(slopes[i]), float(strengths[i])))
    return terms
