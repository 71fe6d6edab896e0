"""Products with about twice the precision of float64.

They use the error-free transformations of T. Ogita, S. Rump and S. Oishi, "Accurate sum and dot
product", 2005.
"""

import numpy as np

from quadric.checks import Array

SPLIT = 2.0**27 + 1


def apply_accurately(A: Array, t: Array, X: Array) -> Array:
    """A x + t for each row of X, also where the terms cancel."""
    total = np.broadcast_to(t, (len(X), len(t)))
    error = np.zeros_like(total)
    for column, a in zip(X.T, A.T, strict=True):
        term, lost = _product(column[:, None], a)
        total, rounded = _sum(total, term)
        error = error + (lost + rounded)
    return total + error


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b, and its rounding error (D. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b, and its rounding error (T. Dekker)."""
    (a1, a2), (b1, b2), product = _halves(a), _halves(b), a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _halves(a: Array) -> tuple[Array, Array]:
    """The first and the last 26 digits of a."""
    scaled = SPLIT * a
    first = scaled - (scaled - a)
    return first, a - first
