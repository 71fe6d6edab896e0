"""Separation of classes by quadrics: ellipsoids around classes, and linear programming.

The paper states that one layer of C quadratic neurons separates C bounded clusters. This is true
if every class has an ellipsoid that excludes the other classes, in particular if the ellipsoids are
disjoint. It is not true for all bounded clusters: no conic separates two interleaved moons.
`separating_quadric` proves this by linear programming.

Both answers of `separating_quadric` are verified without rounding errors. Floating-point numbers
are integers times powers of two, so all conditions are statements about integers. Linear systems
are solved by fraction-free elimination (E. Bareiss, 1968), in which every division is exact.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from quadric.checks import FLOAT64, Array, as_numbers, check_number, unmasked
from quadric.convert._models_and_layers import from_ellipsoids
from quadric.geometry import THINNEST, AffineMap, Quadric, disjoint, smallest_ellipsoid
from quadric.network import Network
from quadric.utils import first_applying, notebook

MAX_POINTS = 100  # of a linear system, which takes several seconds
MAX_BITS = 5000  # of a coordinate
MAX_PRODUCTS = 1_000_000  # of fractions
TINY = 1e-250  # numbers that underflow change F by less, relative to its largest coefficient
ENCLOSED = 64 * float(np.finfo(FLOAT64).eps)  # least value of a neuron on its own points


@dataclass(frozen=True)
class Separation:
    """Classes and the ellipsoids around them.

    Attributes
    ----------
    classes : array of shape (n_classes,)
        The classes.
    ellipsoids : list of Quadric
        The smallest ellipsoid around each class.
    network : Network
        One logistic neuron per class. Its output is above 1/2 inside the ellipsoid and nowhere
        else.
    overlapping : list of pairs of classes
        Classes whose ellipsoids intersect.
    intruding : list of pairs of classes
        Pairs (a, b) for which points of b lie inside the ellipsoid of a.
    """

    classes: Array
    ellipsoids: list[Quadric]
    network: Network
    overlapping: list[tuple[Any, Any]]
    intruding: list[tuple[Any, Any]]

    @property
    def disjoint(self) -> bool:
        """Whether no two ellipsoids intersect, which guarantees that the classes are separated.

        It is False if rounding errors could exceed the distance between two ellipsoids.
        """
        return not self.overlapping

    @property
    def separates(self) -> bool:
        """Whether every given point is inside the ellipsoid of its own class only."""
        return not self.intruding

    def predict(self, X: Any) -> Array:
        """Predict the class with the largest output.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Points.

        Returns
        -------
        array of shape (n_samples,)
            The predicted classes.
        """
        return self.classes[self.network.logits(X).argmax(axis=1)]

    def __str__(self) -> str:
        outcomes = {
            "No two ellipsoids intersect, so the separation is certain.": self.disjoint,
            "Some ellipsoids intersect, but no given point is in the wrong one.": self.separates,
            "Not separated: points of one class lie in the ellipsoid of another.": True,
        }
        summary = f"{len(self.classes)} classes, one ellipsoid around each."
        lines = [summary, first_applying(outcomes)]
        if self.overlapping:
            pairs = ", ".join(f"{a} and {b}" for a, b in self.overlapping)
            lines.append(f"These ellipsoids overlap: {pairs}.")
        if self.intruding:
            pairs = ", ".join(f"{b} in {a}" for a, b in self.intruding)
            lines.append(f"Points inside another class's ellipsoid: {pairs}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def listed(pairs: list[tuple[Any, Any]], label: Any) -> str:
            return ", ".join(str(b) for a, b in pairs if a == label) or "-"

        both = self.overlapping + [(b, a) for a, b in self.overlapping]
        rows = [
            [str(label), one.kind, listed(both, label), listed(self.intruding, label)]
            for label, one in zip(self.classes.tolist(), self.ellipsoids, strict=True)
        ]
        header = ["class", "surface", "overlaps with", "contains points of"]
        return notebook.paragraph(*str(self).splitlines()[:2]) + notebook.table(header, rows)


def separate(X: Any, y: Any, *, tolerance: float = 1e-7, sharpness: float = 1.0) -> Separation:
    """Build a layer of quadratic neurons from the smallest ellipsoid around each class.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Points.
    y : array of shape (n_samples,)
        Labels of two or more classes.
    tolerance : float
        Tolerance of Khachiyan's algorithm: the volume of an ellipsoid is too large by a factor of
        at most (1 + 2 tolerance)^(n_features / 2), unless the class is very thin; see Notes.
    sharpness : float
        How steeply the output of a neuron falls from the center of its ellipsoid to the surface.

    Returns
    -------
    Separation
        The ellipsoids, the network, and the pairs of classes that are not separated.

    Notes
    -----
    Disjoint ellipsoids are sufficient but not necessary. Overlapping ellipsoids may still separate
    the given points (see `separates`). If they do not, another quadric may separate them (see
    `separating_quadric`).

    A neuron in float64 cannot represent very thin ellipsoids. If a half-length would be less than
    3e-7 of the longest one, it is enlarged to that. If a class is flat up to rounding errors, for
    example because a feature is constant, its half-length in that direction is 1e-3 of the longest
    one.

    Examples
    --------
    >>> from quadric import separate
    >>> result = separate([[0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]], list("aaabbb"))
    >>> print(result)
    2 classes, one ellipsoid around each.
    No two ellipsoids intersect, so the separation is certain.
    """
    X, y = _labeled(X, y)
    check_number("sharpness", sharpness, above=0)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes. Got only {classes.tolist()}.")
    ellipsoids = [
        smallest_ellipsoid(X[index == k], tolerance=tolerance, thinnest=THINNEST)
        for k in range(len(classes))
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
        if (_exact_signs(ellipsoids[i], X[index == j]) <= 0).any()
    ]
    network = from_ellipsoids(ellipsoids, sharpness)
    # z is less accurate than F: raise b to enclose points on the surface of their own ellipsoid
    own = index[:, None] == np.arange(len(classes))
    lowest = network.logits(X).min(axis=0, where=own, initial=np.inf)
    network.layers[0].b[...] += np.maximum(
        0.0, np.maximum(-2 * lowest, ENCLOSED * sharpness - lowest)
    )
    enclosed = np.column_stack([quadric.encloses(X) for quadric in ellipsoids])
    if ((network.logits(X) >= 0) != enclosed).any():
        raise ValueError(
            "the data are so far from the origin, relative to their spread, that float64 cannot "
            "represent the coefficients of the neurons. Subtract the mean first: "
            "separate(X - X.mean(axis=0), y)."
        )
    return Separation(classes, ellipsoids, network, overlapping, intruding)


@dataclass(frozen=True)
class QuadricSeparation:
    """Whether one quadric separates two classes, with a proof in either case.

    Parameters
    ----------
    quadric : Quadric or None
        A quadric that is positive on the second class and negative on the first, with the widest
        margin. None if no quadric separates the classes.
    margin : float
        The smallest |F| on the points, where F has coefficients between -1 and 1 in an orthogonal
        basis of the quadratic functions on the points; 0 if no quadric separates the classes.
    weights : array of shape (n_samples,) or None
        The proof that no quadric separates the classes: non-negative weights that sum to 1 in each
        class and give both classes the same weighted mean of every coordinate, square and
        product. Every quadratic function then has the same weighted mean on both classes, so it
        cannot be positive on one and negative on the other. The means of exact weights are equal
        without rounding errors; these are the exact weights, rounded.
    """

    quadric: Quadric | None
    margin: float
    weights: Array | None


def separating_quadric(X: Any, y: Any) -> QuadricSeparation:
    """Find a quadric that separates two classes, or prove that there is none.

    A linear program in the coefficients of F maximizes the margin t subject to F >= t on the
    second class and F <= -t on the first. If the maximum is t = 0, its dual solution is the proof.
    Both answers are verified without rounding errors, with integers and fractions.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Points.
    y : array of shape (n_samples,)
        Labels of two classes.

    Returns
    -------
    QuadricSeparation
        The quadric or the proof.

    Raises
    ------
    ArithmeticError
        If neither answer can be verified, because the points are too close to the boundary between
        the two cases, or because a proof needs more than 100 points. Points in general position
        need (n + 1)(n + 2)/2 + 1 of them for n features, which is at most 100 for 12 features.
    """
    X, y = _labeled(X, y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold exactly 2 classes. Got {classes.tolist()}.")
    change = _unit_spread(X)
    Z, n = change.apply(X), X.shape[1]
    rows, columns = np.triu_indices(n)
    monomials = np.column_stack([Z[:, rows] * Z[:, columns], Z, np.ones(len(Z))])
    sign = np.where(y == classes[1], 1, -1)
    # an orthogonal basis of the quadratic functions on these points
    sizes = np.linalg.norm(monomials, axis=0)
    sizes[sizes == 0] = 1.0
    U, sigma, Vt = np.linalg.svd(monomials / sizes, full_matrices=False)
    kept = sigma > 1e-14 * sigma[0]
    basis = U[:, kept] * np.sqrt(len(Z))
    lengths = np.linalg.norm(basis, axis=1)
    supports = []
    # later attempts scale each point by its size, so that points with small values matter; which
    # attempt finds a margin close to the solver's tolerance depends on the processor
    for power in (0, 1, 2):
        row_sizes = np.where(lengths > 0, lengths, 1.0) ** power
        coefficients, weights = _widest_margin(basis / row_sizes[:, None], sign)
        solution = (Vt[kept].T @ (coefficients * np.sqrt(len(Z)) / sigma[kept])) / sizes
        quadric = _quadric(solution, n)._preimage(change)
        if _separates(quadric, X, sign):
            return QuadricSeparation(quadric, float((sign * (basis @ coefficients)).min()), None)
        weights = weights / row_sizes
        for least in (1e-9, 0.0):
            support = np.flatnonzero(weights > least * weights.max())
            points = _integer_points(X[support], change) if len(support) else None
            if points is None:
                continue
            proof = _proven_weights(points, sign[support], weights[support] / weights.max())
            if proof is not None:
                total = np.zeros(len(X))
                total[support] = proof
                return QuadricSeparation(None, 0.0, total)
            supports.append((points, support))
    # points in general position have an interpolating quadric, which may separate the others, too
    for points, support in supports:
        found = _interpolating_quadric(points, sign[support])
        if found is not None and _separates(found._preimage(change), X, sign):
            F = sign * found.value(Z)
            size = np.abs(U.T @ F).max() / np.sqrt(len(Z))
            return QuadricSeparation(found._preimage(change), float(F.min() / size), None)
    raise ArithmeticError(
        "undecided: neither a separating quadric nor a proof that there is none could be verified. "
        "The points are too close to the boundary between the two cases, or have more than 12 "
        "features."
    )


def _unit_spread(X: Array) -> AffineMap:
    """The map to coordinates with a mean of about 0 and a spread of about 1.

    It multiplies by powers of two and adds whole numbers, so exact coordinates have few digits.
    """
    middle, half = X.max(axis=0) / 2 + X.min(axis=0) / 2, X.max(axis=0) / 2 - X.min(axis=0) / 2
    half[half == 0] = 1.0
    U = (X - middle) / half  # neither squares nor sums of these overflow
    spread = np.where(U.std(axis=0) > 0, U.std(axis=0), 1.0) * half
    scale = 2.0 ** np.clip(np.round(np.log2(spread)), -1000, 1000)
    return AffineMap(1 / scale, -np.round((middle + half * U.mean(axis=0)) / scale))


def _separates(quadric: Quadric, X: Array, sign: Array) -> bool:
    """Whether F has these signs, both without rounding errors and as `value` computes it."""
    return bool((sign * quadric.value(X) > 0).all() and (_exact_signs(quadric, X) == sign).all())


def _widest_margin(basis: Array, sign: Array) -> tuple[Array, Array]:
    """Return the coefficients in [-1, 1] with the widest margin, and the dual weights."""
    A = np.column_stack([-sign[:, None] * basis, np.ones(len(basis))])  # t - sign F <= 0
    result = optimize.linprog(
        np.append(np.zeros(basis.shape[1]), -1.0),
        A_ub=A,
        b_ub=np.zeros(len(basis)),
        bounds=[(-1.0, 1.0)] * basis.shape[1] + [(0.0, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise ArithmeticError(f"the linear program was not solved: {result.message}")
    return result.x[:-1], np.maximum(-result.ineqlin.marginals, 0.0)


def _labeled(X: Any, y: Any) -> tuple[Array, Array]:
    X = as_numbers("X", X, FLOAT64)
    y = np.asarray(unmasked("y", y))
    if y.dtype.kind == "O":
        missing = [label for label in y.ravel() if label is None or label != label]
        if missing or len({type(label) for label in y.ravel()}) > 1:
            raise ValueError("y must hold labels of one type, none of them missing.")
    elif y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y must hold labels, none of them missing. Got NaN or infinity.")
    if X.ndim != 2 or not X.size or y.shape != (len(X),):
        raise ValueError(
            "X must have shape (n_samples, n_features) and y (n_samples,). "
            f"Got {X.shape} and {y.shape} instead."
        )
    return X, y


# ---------------------------------------------------------------------- without rounding errors


class _IntegerPoints(NamedTuple):
    """Points with the coordinates rows[i][j] / denominators[j]."""

    rows: list[list[int]]
    denominators: list[int]

    @property
    def monomials(self) -> list[list[int]]:
        """Products, coordinates and 1 for each point, in the order of `np.triu_indices`.

        Each column is multiplied by the denominators of its factors.
        """
        n = len(self.denominators)
        pairs = list(itertools.combinations_with_replacement(range(n), 2))
        return [[*(x[i] * x[j] for i, j in pairs), *x, 1] for x in self.rows]


def _integer_points(X: Array, change: AffineMap) -> _IntegerPoints | None:
    """The points A x + t for a diagonal A, or None if their numbers have too many digits."""
    columns, denominators = [], []
    for values, a, t in zip(X.T.tolist(), change.A.tolist(), change.t.tolist(), strict=True):
        scaled = [Fraction(value) * Fraction(a) + Fraction(t) for value in values]
        denominator = max(value.denominator for value in scaled)  # a power of two
        columns.append([int(value * denominator) for value in scaled])
        denominators.append(denominator)
        if max(denominator, *map(abs, columns[-1])).bit_length() > MAX_BITS:
            return None
    return _IntegerPoints([list(row) for row in zip(*columns, strict=True)], denominators)


def _proven_weights(points: _IntegerPoints, sign: Array, weights: Array) -> Array | None:
    """Weights near the given ones that give both classes the same mean of every monomial.

    The weights of some points are kept, and those of the others follow from linear equations. The
    result is None if the weights are not a proof: if one of them is negative, or if all are zero.
    The result has been rounded.
    """
    count = len(sign)
    if count > MAX_POINTS:
        return None
    order = np.argsort(-weights, kind="stable").tolist()  # large weights stay positive
    equations = list(zip(*points.monomials, strict=True))
    rows, pivots = _eliminated(
        [[int(sign[i]) * column[i] for i in order] for column in equations], count
    )
    kept = {k: int(Fraction(weights[order[k]]) * 2**80) for k in range(count) if k not in pivots}
    solution, divisor = _solution(rows, pivots, kept)
    whole = {k: value * divisor for k, value in kept.items()} | solution
    found = [0] * count
    for k, value in whole.items():
        found[order[k]] = value if divisor > 0 else -value
    # the proof itself: these weights give both classes the same sum of every monomial
    signed = [int(one) * weight for one, weight in zip(sign, found, strict=True)]
    unequal = any(sum(map(mul, signed, column)) for column in equations)
    if min(found) < 0 or not any(found) or unequal:
        return None
    half = sum(value for value in signed if value > 0)
    return np.array([float(Fraction(value, half)) for value in found])


def _interpolating_quadric(points: _IntegerPoints, sign: Array) -> Quadric | None:
    """A quadric with the values ±1 at these points, rounded; None if there is none."""
    if len(sign) > MAX_POINTS:
        return None
    rows = [[*row, int(one)] for row, one in zip(points.monomials, sign, strict=True)]
    width = len(rows[0]) - 1
    rows, pivots = _eliminated(rows, width)
    if len(pivots) < len(rows):
        return None
    solution, divisor = _solution(rows, pivots, {width: -1})
    # each column of the monomials is multiplied by the same monomial of the denominators
    found, (factors,) = np.zeros(width), points._replace(rows=[points.denominators]).monomials
    try:
        for k, value in solution.items():
            found[k] = float(Fraction(value * factors[k], divisor))
    except OverflowError:
        return None
    return _quadric(found, len(points.denominators))


def _quadric(coefficients: Array, n: int) -> Quadric:
    """The quadric with these coefficients of products, coordinates and 1."""
    Q = np.zeros((n, n))
    Q[np.triu_indices(n)] = coefficients[: -n - 1]
    return Quadric(Q, coefficients[-n - 1 : -1], coefficients[-1])


def _eliminated(rows: list[list[int]], width: int) -> tuple[list[list[int]], list[int]]:
    """The rows of a matrix in echelon form, and the pivot columns, among the first `width`."""
    pivots: list[int] = []
    last = 1
    for column in range(width):
        k = len(pivots)
        pivot = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[k], rows[pivot] = rows[pivot], rows[k]
        top = rows[k][column:]
        for i in range(k + 1, len(rows)):
            row = rows[i][column:]
            rows[i][column:] = [
                (top[0] * a - row[0] * b) // last for a, b in zip(row, top, strict=True)
            ]
        last = top[0]
        pivots.append(column)
    return rows, pivots


def _solution(
    rows: list[list[int]], pivots: list[int], given: dict[int, int]
) -> tuple[dict[int, int], int]:
    """The entries x of the pivot columns for which rows @ x = 0, times a divisor.

    `given` holds the other entries. The divisor is the last pivot, which makes all divisions exact
    (Cramer's rule).
    """
    divisor = rows[len(pivots) - 1][pivots[-1]]
    solution: dict[int, int] = {}
    for row, pivot in reversed(list(zip(rows, pivots, strict=False))):
        total = divisor * sum(row[k] * value for k, value in given.items())
        total += sum(row[k] * value for k, value in solution.items())
        solution[pivot] = -total // row[pivot]
    return solution, divisor


def _exact_signs(quadric: Quadric, X: Array) -> Array:
    """The sign of F at each row of X without rounding errors, or 0 if F is zero or unclear.

    F is the function of the quadric's source, after the map to it.
    """
    F, n = np.asarray(quadric.value(X)), quadric.n_dims
    source, change = quadric._origin or (quadric, AffineMap(np.ones(n), np.zeros(n)))
    lost = TINY * max(1.0, np.abs(source.Q).max(), np.abs(source.w).max())
    signs = np.where(np.abs(F) > quadric._rounding(X) + lost, np.sign(F), 0).astype(int)
    unclear = np.flatnonzero(signs == 0)
    if len(unclear) * n * n <= MAX_PRODUCTS:
        A, t = _fractions(change.matrix), _fractions(change.t)
        Q, w = _fractions(source.Q), _fractions(source.w)
        for i in unclear.tolist():
            x = _fractions(X[i])
            u = [sum(map(mul, row, x), shift) for row, shift in zip(A, t, strict=True)]
            slopes = [sum(map(mul, row, u), slope) for row, slope in zip(Q, w, strict=True)]
            total = sum(map(mul, u, slopes), Fraction(source.b))
            signs[i] = (total > 0) - (total < 0)
    return signs


def _fractions(values: Array) -> list[Any]:
    """The entries of an array as fractions, without rounding errors."""
    return [
        Fraction(v) if isinstance(v, float) else [Fraction(x) for x in v] for v in values.tolist()
    ]
