"""Answers about separating quadrics that are verified without rounding errors.

Floating-point numbers are integers times powers of two, so all conditions are statements about
integers. Linear systems are solved by fraction-free elimination (E. Bareiss, 1968), in which every
division is exact.
"""

from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array
from quadric.geometry import AffineMap, Quadric

MAX_POINTS = 100  # of a linear system, which takes several seconds
MAX_BITS = 5000  # of a coordinate
MAX_PRODUCTS = 1_000_000  # of fractions
TINY = 1e-250  # numbers that underflow change F by less, relative to its largest coefficient


class IntegerPoints(NamedTuple):
    """Points with the coordinates rows[i][j] / denominators[j]."""

    rows: list[list[int]]
    denominators: list[int]

    @property
    def monomials(self) -> list[list[int]]:
        """Products, coordinates and 1 for each point, in the order of `np.triu_indices`.

        Each column is multiplied by the denominators of its factors.
        """
        n = len(self.denominators)
        pairs = [(i, j) for i in range(n) for j in range(i, n)]
        return [[*(x[i] * x[j] for i, j in pairs), *x, 1] for x in self.rows]

    @property
    def factors(self) -> list[int]:
        """The factor by which each column of `monomials` is multiplied."""
        return IntegerPoints([self.denominators], self.denominators).monomials[0]


def integer_points(X: Array, change: AffineMap) -> IntegerPoints | None:
    """The points A x + t for a diagonal A, or None if their numbers have too many digits."""
    columns, denominators = [], []
    for values, a, t in zip(X.T.tolist(), change.A.tolist(), change.t.tolist(), strict=True):
        scaled = [Fraction(value) * Fraction(a) + Fraction(t) for value in values]
        denominator = max(value.denominator for value in scaled)  # a power of two
        columns.append([int(value * denominator) for value in scaled])
        denominators.append(denominator)
        if max(denominator, *map(abs, columns[-1])).bit_length() > MAX_BITS:
            return None
    return IntegerPoints([list(row) for row in zip(*columns, strict=True)], denominators)


def proven_weights(points: IntegerPoints, sign: Array, weights: Array) -> Array | None:
    """Weights near the given ones that give both classes the same mean of every monomial.

    The weights of some points are kept, and those of the others follow from linear equations. The
    result is None if the weights are not a proof: if one of them is negative, or if all are zero.
    The result has been rounded.
    """
    count = len(sign)
    if count > MAX_POINTS:
        return None
    order = np.argsort(-weights, kind="stable").tolist()  # large weights stay positive
    equations = zip(*points.monomials, strict=True)
    rows, pivots = _eliminated(
        [[int(sign[i]) * column[i] for i in order] for column in equations], count
    )
    kept = {k: int(Fraction(weights[order[k]]) * 2**80) for k in range(count) if k not in pivots}
    solution, divisor = _solution(rows, pivots, kept)
    whole = {k: value * divisor for k, value in kept.items()} | solution
    found = [0] * count
    for k, value in whole.items():
        found[order[k]] = value if divisor > 0 else -value
    if min(found) < 0 or not any(found) or not _are_equal_means(points, sign, found):
        return None
    half = sum(value for value, one in zip(found, sign, strict=True) if one > 0)
    return np.array([float(Fraction(value, half)) for value in found])


def _are_equal_means(points: IntegerPoints, sign: Array, weights: list[int]) -> bool:
    """Whether these weights give both classes the same sum of every monomial: the proof itself."""
    signed = [int(one) * weight for one, weight in zip(sign, weights, strict=True)]
    return not any(sum(map(mul, signed, column)) for column in zip(*points.monomials, strict=True))


def interpolating_quadric(points: IntegerPoints, sign: Array) -> Quadric | None:
    """A quadric with the values ±1 at these points, rounded; None if there is none."""
    if len(sign) > MAX_POINTS:
        return None
    rows = [[*row, int(one)] for row, one in zip(points.monomials, sign, strict=True)]
    width = len(rows[0]) - 1
    rows, pivots = _eliminated(rows, width)
    if len(pivots) < len(rows):
        return None
    solution, divisor = _solution(rows, pivots, {width: -1})
    found, factors = np.zeros(width), points.factors
    try:
        for k, value in solution.items():
            found[k] = float(Fraction(value * factors[k], divisor))
    except OverflowError:
        return None
    n = len(points.denominators)
    Q = np.zeros((n, n))
    Q[np.triu_indices(n)] = found[: -n - 1]
    return Quadric(Q, found[-n - 1 : -1], found[-1])


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


def exact_signs(quadric: Quadric, X: Array) -> Array:
    """The sign of F at each row of X without rounding errors, or 0 if F is zero or unclear.

    F is the function of the quadric's source, after the map to it.
    """
    F, n = np.asarray(quadric.value(X)), quadric.n_dims
    identity = AffineMap(np.ones(n), np.zeros(n))
    source, change = quadric._origin or (quadric, identity)
    lost = TINY * max(1.0, np.abs(source.Q).max(), np.abs(source.w).max())
    signs = np.where(np.abs(F) > quadric._rounding(X) + lost, np.sign(F), 0).astype(int)
    unclear = np.flatnonzero(signs == 0)
    if len(unclear) * n * n <= MAX_PRODUCTS:
        A, t = _fractions(change.matrix), _fractions(change.t)
        for i in unclear.tolist():
            x = _fractions(X[i])
            mapped = [sum(map(mul, row, x), shift) for row, shift in zip(A, t, strict=True)]
            signs[i] = _sign(source, mapped)
    return signs


def _fractions(values: Array) -> list[Any]:
    """The entries of an array as fractions, without rounding errors."""
    return [
        Fraction(v) if isinstance(v, float) else [Fraction(x) for x in v] for v in values.tolist()
    ]


def _sign(quadric: Quadric, x: Sequence[Fraction]) -> int:
    total = Fraction(quadric.b)
    for one, row, slope in zip(x, _fractions(quadric.Q), _fractions(quadric.w), strict=True):
        total += one * sum(map(mul, row, x), slope)
    return (total > 0) - (total < 0)
