"""Linear algebra with rational numbers, without rounding errors."""

import math
from fractions import Fraction


def rationals(values):
    """Nested lists of numbers as nested lists of fractions; floats are converted exactly."""
    if hasattr(values, "__len__"):
        return [rationals(value) for value in values]
    return Fraction(float(values))


def product(A, B):
    columns = list(zip(*B, strict=True))
    return [[sum(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in A]


def inverse(A):
    """The inverse of a square matrix, or None if it is singular."""
    n = len(A)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(A)]
    _, _, reduced = _eliminate(rows, n)
    return [row[n:] for row in reduced] if len(reduced) == n else None


def determinant(A):
    """The determinant of a square matrix."""
    pivots, odd, _ = _eliminate(A, len(A))
    return (-1) ** odd * math.prod(pivots) if len(pivots) == len(A) else Fraction(0)


def rank(A):
    """The rank of a matrix."""
    return len(_eliminate(A, len(A[0]))[0])


def _eliminate(A, columns):
    """Gauss-Jordan elimination: pivots, whether rows are permuted oddly, and the reduced rows."""
    rows, pivots, odd, reduced = [list(row) for row in A], [], False, []
    for k in range(columns):
        place = next((i for i, row in enumerate(rows) if row[k]), None)
        if place is not None:
            odd ^= place % 2 == 1
            pivot = rows.pop(place)
            pivots.append(pivot[k])
            pivot = [x / pivot[k] for x in pivot]
            for row in (*rows, *reduced):
                row[:] = [a - row[k] * b for a, b in zip(row, pivot, strict=True)]
            reduced.append(pivot)
    return pivots, odd, reduced


def signature(A):
    """The numbers of positive and of negative eigenvalues of a symmetric matrix (Sylvester)."""
    A, counts = [list(row) for row in A], [0, 0]
    n = len(A)
    while n:
        k = next((i for i in range(n) if A[i][i]), None)
        if k is None:
            pair = next(((i, j) for i in range(n) for j in range(i) if A[i][j]), None)
            if pair is None:
                break
            k, j = pair  # add row and column j to row and column k, so that A_kk is not zero
            A[k] = [a + b for a, b in zip(A[k], A[j], strict=True)]
            for row in A:
                row[k] += row[j]
        counts[A[k][k] < 0] += 1
        pivot = A.pop(k)
        rest = [row.pop(k) / pivot[k] for row in A]
        del pivot[k]
        A = [
            [a - r * b for a, b in zip(row, pivot, strict=True)]
            for row, r in zip(A, rest, strict=True)
        ]
        n -= 1
    return tuple(counts)
