"""The terms of a quadratic function about the mean of the data, and their shares of its variance.

With d = x - center, every quadratic function is

    z = constant + sum_i slopes_i d_i + sum_{i <= j} products_ij d_i d_j

The share of a term is its covariance with z divided by the variance of z. The shares of all terms
add up to 1. If the terms are uncorrelated, the covariance is the term's own variance. The
importance of an input is the share of its terms.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from quadric.checks import Array
from quadric.core import monomial_coefficients, term_variances
from quadric.geometry import Quadric, plain_name

CENTER_DIGITS = 3  # significant digits of a center, relative to the spread of its feature


@dataclass(frozen=True)
class Term:
    """One term of a quadratic function.

    Parameters
    ----------
    kind : {'linear', 'squared', 'interaction'}
        Type of the term.
    features : tuple of int
        Indices of its one or two coordinates.
    names : tuple of str
        Names of the coordinates.
    centers : tuple of float
        What is subtracted from each coordinate: its mean, rounded.
    coefficient : float
        Coefficient of d_i, d_i² or d_i d_j, with d_i = x_i - center_i.
    effect : float
        Standard deviation of the term, in units of z.
    share : float
        Covariance of the term with z, divided by the variance of z. The shares of all terms add up
        to 1; a share is negative if the term reduces the variance of the other terms.
    """

    kind: str
    features: tuple[int, ...]
    names: tuple[str, ...]
    centers: tuple[float, ...]
    coefficient: float
    effect: float
    share: float

    def __str__(self) -> str:
        return self.names[0] + "²" if self.kind == "squared" else "·".join(self.names)

    @property
    def monomial(self) -> str:
        """The term without its coefficient, for instance '(width - 1.2)²'."""
        factors = [_factor(*pair) for pair in zip(self.names, self.centers, strict=True)]
        return factors[0] + "²" if self.kind == "squared" else "·".join(factors)

    def to_dict(self) -> dict[str, Any]:
        """Convert the term to plain numbers, strings and lists, ready for JSON.

        Returns
        -------
        dict
            The term as a string, and its attributes.
        """
        return {
            "term": self.monomial,
            "kind": self.kind,
            "features": list(self.names),
            "centers": list(self.centers),
            "coefficient": self.coefficient,
            "effect": self.effect,
            "share": self.share,
        }


def signed(number: float, precision: int) -> str:
    """A number with its sign in front: '- 0.3'."""
    return f"{'-' if number < 0 else '+'} {abs(number):.{precision}g}"


def _factor(name: str, center: float) -> str:
    name = plain_name(name)
    return name if center == 0 else f"({name} {signed(-center, 12)})"


@dataclass(frozen=True)
class Moments:
    """Moments of the data, or assumed ones if `deviations` is None.

    `deviations` holds x - center, `products` the standard deviations of d_i d_j, and `origin`
    describes the data in words.
    """

    std: Array
    center: Array
    products: Array
    origin: str
    deviations: Array | None = None

    @classmethod
    def of(cls, X: Array) -> Self:
        std = X.std(axis=0)
        center = _rounded(X.mean(axis=0), std)
        D = X - center
        second, squares = D.T @ D / len(D), D**2
        spread = np.sqrt(np.maximum(squares.T @ squares / len(D) - second**2, 0.0))
        return cls(std, center, spread, f"the {len(X)} samples given", D)

    @classmethod
    def assumed(cls, mean: Array, std: Array, origin: str) -> Self:
        """The moments of independent normal features."""
        products = np.outer(std, std)
        np.fill_diagonal(products, np.sqrt(2) * std**2)
        return cls(std, _rounded(mean, std), products, origin)


def _rounded(mean: Array, std: Array) -> Array:
    """The means, rounded as they are printed, so that the printed equation is exact."""
    size = np.where(std > 0, std, np.where(mean != 0, np.abs(mean), 1.0))
    decimals = CENTER_DIGITS - 1 - np.floor(np.log10(size)).astype(int)
    return np.array(
        [
            round(value, min(digits, 300)) + 0.0
            for value, digits in zip(mean.tolist(), decimals.tolist(), strict=True)
        ]
    )


@dataclass(frozen=True)
class Expansion:
    """A quadratic function about a center, and the variance that comes from each of its terms.

    `covariances` are those of the terms with z: of slopes_i d_i, and, upper triangular, of
    products_ij d_i d_j. Their sum is `variance`, the variance of z. Both are of the function
    divided by a power of two, so that they neither overflow nor underflow.
    """

    constant: float
    slopes: Array
    products: Array
    covariances: tuple[Array, Array]
    moments: Moments

    @classmethod
    def of(cls, surface: Quadric, moments: Moments, encodings: Array, exponent: int) -> Self:
        """The expansion of a function; variances are of the function divided by 2**exponent."""
        center = moments.center
        slopes, products = surface.gradient(center), monomial_coefficients(surface.Q)
        constant = surface.value(center)
        for number in np.unique(encodings[encodings > 0]):
            constant += _make_linear(slopes, products, center, np.flatnonzero(encodings == number))
        s, P = np.ldexp(slopes, -exponent), np.ldexp(products, -exponent)
        D = moments.deviations
        if D is None:
            covariances = term_variances(s, P, moments.std)
        else:
            z = np.ldexp(constant, -exponent) + D @ s + ((D @ P) * D).sum(axis=1)
            residual = (z - z.mean()) / len(z)
            covariances = s * (D.T @ residual), P * ((D * residual[:, None]).T @ D)
        return cls(constant, slopes, products, covariances, moments)

    @property
    def variance(self) -> float:
        return float(sum(part.sum() for part in self.covariances))

    def terms(self, names: Sequence[str], top: int | None) -> list[Term]:
        """The `top` terms with the largest shares in absolute value; None means all of them."""
        n, center, moments = len(self.slopes), self.moments.center, self.moments
        rows, columns = np.nonzero(self.products)
        linear = np.flatnonzero(self.slopes)
        coefficients = np.concatenate([self.slopes[linear], self.products[rows, columns]])
        covariances = np.concatenate(
            [self.covariances[0][linear], self.covariances[1][rows, columns]]
        )
        shares = covariances / self.variance if self.variance > 0 else np.zeros(len(covariances))
        effects = np.abs(coefficients) * np.concatenate(
            [moments.std[linear], moments.products[rows, columns]]
        )
        strongest = np.lexsort((-effects, -np.abs(shares)))[:top]
        places = np.concatenate([linear, n + rows * n + columns])[strongest]
        found = []
        for k, place in zip(strongest.tolist(), places.tolist(), strict=True):
            i, j = divmod(place - n, n) if place >= n else (place, place)
            kind = "linear" if place < n else "squared" if i == j else "interaction"
            features = (i,) if i == j else (i, j)
            found.append(
                Term(
                    kind,
                    features,
                    tuple(names[f] for f in features),
                    tuple(float(center[f]) for f in features),
                    float(coefficients[k]),
                    float(effects[k]),
                    float(shares[k]),
                )
            )
        return found

    @property
    def n_terms(self) -> int:
        return int(np.count_nonzero(self.slopes) + np.count_nonzero(self.products))


def _make_linear(slopes: Array, products: Array, center: Array, columns: Array) -> float:
    """Replace the products within one one-hot encoding by linear terms, in place.

    In a row, at most one of the columns is 1 and the others are 0, so x_i² = x_i and x_i x_j = 0.
    Returns the change of the constant.
    """
    block = np.ix_(columns, columns)
    inside, p = products[block].copy(), center[columns]
    products[block] = 0.0
    squares = np.diagonal(inside)
    pairs = inside - np.diag(squares)
    # (x_i - p_i)² = (1 - 2 p_i)(x_i - p_i) + p_i (1 - p_i), and
    # (x_i - p_i)(x_j - p_j) = -p_j (x_i - p_i) - p_i (x_j - p_j) - p_i p_j
    slopes[columns] += squares * (1 - 2 * p) - (pairs + pairs.T) @ p
    return float(squares @ (p * (1 - p)) - p @ pairs @ p)


@dataclass(frozen=True)
class Importance:
    """The share of the variance of z that comes from one input.

    Parameters
    ----------
    name : str
        The input. The columns of a one-hot encoding count as one input.
    linear : float
        Share of the linear terms of the input.
    squared : float
        Share of its squared terms.
    interactions : float
        Half of the shares of its products with other inputs. The other half belongs to the other
        input.
    """

    name: str
    linear: float
    squared: float
    interactions: float

    @property
    def total(self) -> float:
        """The sum of the three parts; the totals of all inputs add up to 1."""
        return self.linear + self.squared + self.interactions

    def to_dict(self) -> dict[str, Any]:
        """Convert the importance to plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes and the total.
        """
        return {"name": self.name, "total": self.total, **asdict(self)}


def importances(expansions: Sequence[Expansion], groups: Sequence[str]) -> list[Importance]:
    """The importance of every input, the most important first.

    With several outputs, the variance is the sum of the outputs' variances.
    """
    names = list(dict.fromkeys(groups))
    places = {name: g for g, name in enumerate(names)}
    members = np.array([places[group] for group in groups])
    total = sum(one.variance for one in expansions)
    linear = np.bincount(members, sum(one.covariances[0] for one in expansions), len(names))
    rows = np.zeros((len(names), len(members)))
    np.add.at(rows, members, sum(one.covariances[1] for one in expansions))
    pairs = np.zeros((len(names), len(names)))
    np.add.at(pairs.T, members, rows.T)
    squared = np.diagonal(pairs)
    between = pairs - np.diag(squared)
    mixed = (between.sum(axis=0) + between.sum(axis=1)) / 2
    parts = np.stack([linear, squared, mixed]) * (1 / total if total > 0 else 0.0)
    order = np.argsort(-np.abs(parts.sum(axis=0)), kind="stable")
    return [Importance(names[g], *map(float, parts[:, g])) for g in order.tolist()]
