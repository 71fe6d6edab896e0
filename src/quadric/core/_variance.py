"""Variances of the terms of a quadratic function of independent inputs."""

import numpy as np

from quadric.checks import Array


def term_variances(slopes: Array, products: Array, std: Array) -> tuple[Array, Array]:
    """Variances of slopes_i d_i and of products_ij d_i d_j for independent normal d.

    The d_i have mean 0 and standard deviation std_i, so that d_i^2 has variance 2 std_i^4 and
    d_i d_j has variance std_i^2 std_j^2. All these terms are uncorrelated, so the variance of their
    sum is the sum of their variances. `products` is upper triangular.
    """
    squares = std**2
    factors = np.outer(squares, squares)
    np.fill_diagonal(factors, 2 * squares**2)
    return slopes**2 * squares, products**2 * factors


def monomial_coefficients(Q: Array) -> Array:
    """Coefficients of x_i x_j, i <= j, in x'Qx: upper triangular, q_ii and 2 q_ij."""
    return np.triu(Q) + np.triu(Q, 1)
