"""The terms of a quadratic function about the mean of the data, and their shares of its variance.

With d = x - center, every quadratic function is

    z = constant + sum_i slopes_i d_i + sum_{i <= j} products_ij d_i d_j

The share of a term is its covariance with z divided by the variance of z. The shares of all terms
add up to 1. If the terms are uncorrelated, the covariance is the term's own variance. The
importance of an input is the mean absolute effect of its terms; without data, it is their share of
the variance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from quadric.checks import Array
from quadric.core import monomial_coefficients, term_variances
from quadric.geometry import Quadric, plain_name
from quadric.utils import rounded

MOST_PRODUCTS = 10**9  # multiplications to find the effects of the inputs in some of the rows
MOST_ROWS = 10_000
CENTER_DIGITS = 3  # significant digits of a center, relative to the spread of its feature
EXACT_DIGITS = 4  # the same, printed for a center that is not rounded
NOISE = 1e-10  # of the largest effect; smaller terms about an exact center are rounding errors


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
        What is subtracted from each coordinate: its mean, rounded, or for a sparse model the mean
        in training.
    coefficient : float
        Coefficient of d_i, d_i² or d_i d_j, with d_i = x_i - center_i.
    effect : float
        Standard deviation of the term, in units of z.
    share : float
        Covariance of the term with z, divided by the variance of z. The shares of all terms add up
        to 1; a share is negative if the term reduces the variance of the other terms.
    frequency : float or None
        How often the term is selected on halves of the samples: see `stability` of
        `SparseQuadraticClassifier`. None if this is unknown.
    printed : tuple of float or None
        The centers in `monomial`, if they have fewer digits.
    """

    kind: str
    features: tuple[int, ...]
    names: tuple[str, ...]
    centers: tuple[float, ...]
    coefficient: float
    effect: float
    share: float
    frequency: float | None = None
    printed: tuple[float, ...] | None = None

    def __str__(self) -> str:
        return self.names[0] + "²" if self.kind == "squared" else "·".join(self.names)

    @property
    def monomial(self) -> str:
        """The term without its coefficient, for instance '(width - 1.2)²'."""
        factors = [
            _factor(*pair) for pair in zip(self.names, self.printed or self.centers, strict=True)
        ]
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
            "frequency": self.frequency,
        }


def signed(number: float, precision: int) -> str:
    """A number with its sign in front: '- 0.3'; without spaces, so that terms stay apart."""
    return f"{'-' if number < 0 else '+'} {rounded(abs(number), precision).replace(' ', '')}"


def _factor(name: str, center: float) -> str:
    name = plain_name(name)
    return name if center == 0 else f"({name} {signed(-center, 12)})"


@dataclass(frozen=True)
class Moments:
    """Moments of the data, or assumed ones if `deviations` is None.

    `deviations` holds x - center, `products` the standard deviations of d_i d_j, and `origin`
    describes the data in words. With `exact`, the center is that of a sparse model.
    """

    std: Array
    center: Array
    products: Array
    origin: str
    deviations: Array | None = None
    exact: bool = False

    @classmethod
    def of(cls, X: Array, exact: Array | None = None) -> Self:
        std = X.std(axis=0)
        center = _rounded(X.mean(axis=0), std) if exact is None else exact
        D = X - center
        second, squares = D.T @ D / len(D), D**2
        spread = np.sqrt(np.maximum(squares.T @ squares / len(D) - second**2, 0.0))
        return cls(std, center, spread, f"the {len(X)} samples given", D, exact is not None)

    @classmethod
    def assumed(cls, mean: Array, std: Array, origin: str, exact: Array | None = None) -> Self:
        """The moments of independent normal features."""
        products = np.outer(std, std)
        np.fill_diagonal(products, np.sqrt(2) * std**2)
        center = _rounded(mean, std) if exact is None else exact
        return cls(std, center, products, origin, None, exact is not None)

    @property
    def shown(self) -> Array:
        """The center as it is printed."""
        return _rounded(self.center, self.std, EXACT_DIGITS) if self.exact else self.center


def _rounded(mean: Array, std: Array, digits: int = CENTER_DIGITS) -> Array:
    """The means, rounded as they are printed, so that the printed equation is exact."""
    size = np.where(std > 0, std, np.where(mean != 0, np.abs(mean), 1.0))
    decimals = digits - 1 - np.floor(np.log10(size)).astype(int)
    return np.array(
        [
            round(value, min(places, 300)) + 0.0
            for value, places in zip(mean.tolist(), decimals.tolist(), strict=True)
        ]
    )


@dataclass(frozen=True)
class Expansion:
    """A quadratic function about a center, and the variance that comes from each of its terms.

    `covariances` are those of the terms with z: of slopes_i d_i, and, upper triangular, of
    products_ij d_i d_j. Their sum is `variance`, the variance of z. Both are of the function
    divided by 2**exponent, so that they neither overflow nor underflow.
    """

    constant: float
    slopes: Array
    products: Array
    covariances: tuple[Array, Array]
    moments: Moments
    exponent: int

    @classmethod
    def of(cls, surface: Quadric, moments: Moments, encodings: Array, exponent: int) -> Self:
        """The expansion of a function; variances are of the function divided by 2**exponent."""
        center = moments.center
        slopes, products = surface.gradient(center), monomial_coefficients(surface.Q)
        constant = surface.value(center)
        for number in np.unique(encodings[encodings > 0]):
            constant += _make_linear(slopes, products, center, np.flatnonzero(encodings == number))
        if moments.exact:
            effects = np.abs(slopes) * moments.std, np.abs(products) * moments.products
            least = NOISE * max(map(np.max, effects))
            slopes, products = (
                np.where(effect > least, part, 0.0)
                for effect, part in zip(effects, (slopes, products), strict=True)
            )
        s, P = np.ldexp(slopes, -exponent), np.ldexp(products, -exponent)
        D = moments.deviations
        if D is None:
            covariances = term_variances(s, P, moments.std)
        else:
            z = np.ldexp(constant, -exponent) + D @ s + ((D @ P) * D).sum(axis=1)
            residual = (z - z.mean()) / len(z)
            covariances = s * (D.T @ residual), P * ((D * residual[:, None]).T @ D)
        return cls(constant, slopes, products, covariances, moments, exponent)

    @property
    def variance(self) -> float:
        return float(sum(part.sum() for part in self.covariances))

    def terms(
        self, names: Sequence[str], top: int | None, frequencies: Mapping[tuple[int, ...], float]
    ) -> list[Term]:
        """The `top` terms with the largest shares in absolute value; None means all of them.

        If there are `frequencies`, a term that is not among them was never selected.
        """
        n, moments = len(self.slopes), self.moments
        center, shown = moments.center, moments.shown
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
            term = (i,) if place < n else (i, j)
            found.append(
                Term(
                    kind,
                    features,
                    tuple(names[f] for f in features),
                    tuple(float(center[f]) for f in features),
                    float(coefficients[k]),
                    float(effects[k]),
                    float(shares[k]),
                    frequencies.get(term, 0.0) if frequencies else None,
                    tuple(float(shown[f]) for f in features),
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
    """The importance of one input: its share of the mean absolute effects of all inputs.

    Parameters
    ----------
    name : str
        The input. The columns of a one-hot encoding count as one input.
    total : float
        The share, never negative. The totals of all inputs add up to 1, unless all are 0.
    linear, squared, interactions : float or None
        The parts of the total that come from these terms of the input, in proportion to their own
        mean absolute effects. None if the model has a hidden layer and therefore no terms.

    Notes
    -----
    The effect of an input in a row is the sum of its linear and squared terms and of half of its
    interactions, minus the mean of this sum. The other half of an interaction belongs to the other
    input. With several outputs, the mean absolute effects are added. Without data, the variance of
    independent inputs takes the place of the mean absolute effect. With a hidden layer, the effect
    is the change of the prediction if the input has its value in another row.
    """

    name: str
    total: float
    linear: float | None = None
    squared: float | None = None
    interactions: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Convert the importance to plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes.
        """
        return asdict(self)


def importances(expansions: Sequence[Expansion], groups: Sequence[str]) -> list[Importance]:
    """The importance of every input, the most important first."""
    names = list(dict.fromkeys(groups))
    members = np.array([names.index(group) for group in groups])
    measure = _variances if expansions[0].moments.deviations is None else _mean_absolute_effects
    parts, totals = np.zeros((3, len(names))), np.zeros(len(names))
    for one in expansions:
        of_parts, of_inputs = measure(one, members, len(names))
        parts, totals = parts + of_parts, totals + of_inputs
    totals = _shares(totals)
    parts = np.divide(parts, parts.sum(axis=0), out=np.zeros_like(parts), where=parts > 0) * totals
    order = np.argsort(-totals, kind="stable").tolist()
    return [Importance(names[g], float(totals[g]), *map(float, parts[:, g])) for g in order]


def importances_of_effects(effects: Sequence[tuple[str, float]]) -> list[Importance]:
    """The importances of inputs with these mean absolute effects."""
    shares = _shares(np.array([effect for _, effect in effects]))
    return [
        Importance(name, share) for (name, _), share in zip(effects, shares.tolist(), strict=True)
    ]


def _shares(numbers: Array) -> Array:
    total = numbers.sum()
    return numbers / total if total > 0 else numbers


def _variances(one: Expansion, members: Array, count: int) -> tuple[Array, Array]:
    """The variances that come from the terms of each input, by part and together."""
    linear = np.bincount(members, one.covariances[0], count)
    rows, pairs = np.zeros((count, len(members))), np.zeros((count, count))
    np.add.at(rows, members, one.covariances[1])
    np.add.at(pairs.T, members, rows.T)
    squared = np.diagonal(pairs)
    between = pairs - np.diag(squared)
    parts = np.stack([linear, squared, (between.sum(axis=0) + between.sum(axis=1)) / 2])
    return parts, parts.sum(axis=0)


def _mean_absolute_effects(one: Expansion, members: Array, count: int) -> tuple[Array, Array]:
    """The mean absolute effects of the terms of each input, by part and together."""
    everything, n = one.moments.deviations, len(members)
    assert everything is not None
    most = int(np.clip(MOST_PRODUCTS // (n * n), 200, MOST_ROWS))
    D = everything[np.unique(np.linspace(0, len(everything) - 1, most).astype(int))]
    s, P = np.ldexp(one.slopes, -one.exponent), np.ldexp(one.products, -one.exponent)
    own = np.where(members[:, None] == members, P, 0.0)  # products of columns of the same input
    half = (P - own + (P - own).T) / 2
    inputs = sparse.csr_array((np.ones(n), (np.arange(n), members)), shape=(n, count))
    parts = np.stack([part @ inputs for part in (D * s, D * (D @ own), D * (D @ half))])
    return _mean_deviations(parts), _mean_deviations(parts.sum(axis=0))


def _mean_deviations(effects: Array) -> Array:
    """The mean absolute deviation from the mean over rows, the axis before the last one."""
    return np.abs(effects - effects.mean(axis=-2, keepdims=True)).mean(axis=-2)
