"""The terms of a quadratic function, ranked by their effect on data."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from quadric._utils.arrays import Array
from quadric.geometry import Quadric


@dataclass(frozen=True)
class Term:
    """One term of a quadratic function.

    Parameters
    ----------
    kind : {'squared', 'interaction', 'linear'}
        Type of the term.
    features : tuple of int
        Indices of its one or two coordinates.
    names : tuple of str
        Names of the coordinates.
    coefficient : float
        Coefficient of x_i² or of x_i x_j (that is, 2 q_ij). For a linear term, the slope at the
        mean of the data.
    effect : float
        Standard deviation of the term after centering its features: of q_ii (x_i - mean_i)², of
        2 q_ij (x_i - mean_i)(x_j - mean_j), or of the slope times (x_i - mean_i). It is in units
        of z and does not depend on the units of the features.
    """

    kind: str
    features: tuple[int, ...]
    names: tuple[str, ...]
    coefficient: float
    effect: float

    def __str__(self) -> str:
        return self.names[0] + "²" if self.kind == "squared" else "·".join(self.names)

    def to_dict(self) -> dict[str, Any]:
        """Convert the term to plain numbers, strings and lists, ready for JSON.

        Returns
        -------
        dict
            The term as a string, and its attributes.
        """
        return {
            "term": str(self),
            "kind": self.kind,
            "features": list(self.names),
            "coefficient": self.coefficient,
            "effect": self.effect,
        }


@dataclass(frozen=True)
class Moments:
    """Moments of the data by which terms are ranked.

    `products` holds the standard deviations of (x_i - mean_i)(x_j - mean_j), and `origin`
    describes the data in words.
    """

    mean: Array
    std: Array
    products: Array
    origin: str

    @classmethod
    def of(cls, X: Array) -> Self:
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
    def assumed(cls, mean: Array, std: Array, origin: str) -> Self:
        """The moments of independent normal features."""
        products = np.outer(std, std)
        np.fill_diagonal(products, np.sqrt(2) * std**2)
        return cls(mean, std, products, origin)


def rank_terms(surface: Quadric, moments: Moments, names: list[str], top: int) -> list[Term]:
    """The `top` strongest squared terms and interactions and the `top` strongest linear ones."""
    rows, columns = np.triu_indices(surface.n_dims)
    coefficients = surface.Q[rows, columns] * np.where(rows == columns, 1.0, 2.0)
    effects = np.abs(coefficients) * moments.products[rows, columns]
    strongest = np.argsort(-effects, kind="stable")[:top]
    pairs = zip(rows[strongest].tolist(), columns[strongest].tolist(), strict=True)
    curved = [((i,) if i == j else (i, j)) for i, j in pairs]
    slopes = surface.gradient(moments.mean)
    strengths = np.abs(slopes) * moments.std
    steepest = np.argsort(-strengths, kind="stable")[:top]

    def term(kind: str, features: tuple[int, ...], coefficient: float, effect: float) -> Term:
        return Term(kind, features, tuple(names[i] for i in features), coefficient, effect)

    return [
        term("interaction" if len(features) == 2 else "squared", features, *numbers)
        for features, *numbers in zip(
            curved, coefficients[strongest].tolist(), effects[strongest].tolist(), strict=True
        )
    ] + [term("linear", (i,), float(slopes[i]), float(strengths[i])) for i in steepest.tolist()]
