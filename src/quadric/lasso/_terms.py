"""All terms of degree one and two of standardized inputs, which are never expanded.

With s_i = (x_i - mean_i) / std_i, the terms are s_i, s_i^2 and s_i s_j, each standardized again.
Term number i < n is s_i, and term n + p is the product of the p-th pair i <= j, in the order of the
triangles in `core`. Means, deviations and gradients of all products come from passes of the
compiled loop for X'diag(d)X over blocks of rows.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix
from quadric.core import Quadratic, weighted_products
from quadric.utils import check_limit

ROWS = 4096  # rows that are standardized at once
CONSTANT = 1e-10  # of a term's mean square: a smaller variance counts as zero
COPY = 1e-12  # correlations with a magnitude of at least 1 - COPY make a square a copy
UNCERTAIN = 1e-3  # of a term's mean square: a smaller variance is computed again, in two passes
SNAP = 1e-12  # means and scales that differ by less from 0 and 1 are those of standardized data


class Terms:
    """The standardized terms of the rows of X, with weights that sum to 1.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The inputs.
    weight : array of shape (n_samples,)
        The weights of the rows.

    Attributes
    ----------
    center, scale : arrays of shape (n_features,)
        Means and standard deviations of the inputs; the scale of a constant input is 1.
    mean, deviation : arrays of shape (n_terms,)
        Those of the terms s_i, s_i^2 and s_i s_j. The deviation of a constant term is infinite, so
        that the standardized term is zero.
    """

    def __init__(self, X: Matrix, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.n_samples, self.n = X.shape
        self.n_terms = self.n + self.n * (self.n + 1) // 2
        check_limit(
            8 * 12 * self.n_terms,
            f"the gradient of {self.n_terms:,} terms",
            "Select fewer features first.",
        )
        self._standardize_inputs()
        self._standardize_terms()

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """The inputs i <= j of all products."""
        return np.triu_indices(self.n)

    def inputs_of(self, terms: Array) -> tuple[Array, Array]:
        """The inputs i and j of each term; j is -1 for a linear term."""
        return inputs_of(terms, self.n)

    def _standardize_inputs(self) -> None:
        mean = np.zeros(self.n)
        for rows, X in dense_blocks(self.X):
            mean += self.weight[rows] @ X
        variance, rest = np.zeros(self.n), np.zeros(self.n)
        for rows, X in dense_blocks(self.X):
            X -= mean
            rest += self.weight[rows] @ X
            variance += self.weight[rows] @ (X * X)
        mean += rest
        scale = np.sqrt(np.maximum(variance - rest**2, 0.0))
        # as in StandardScaler: what is left of a constant column is rounding
        eps = np.finfo(float).eps
        bound = self.n_samples * eps * scale**2 + (self.n_samples * mean * eps) ** 2
        scale[(scale**2 <= bound) | (scale <= 10 * eps)] = 0.0
        constant = scale == 0.0
        scale[constant | (np.abs(scale - 1) <= SNAP)] = 1.0
        mean[np.abs(mean) <= SNAP * scale] = 0.0
        self.center, self.scale, self.constant_inputs = mean, scale, constant

    def blocks(self, X: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """Yield the standardized inputs of a block of rows at a time, by default of all samples."""
        for rows, dense in dense_blocks(self.X if X is None else X):
            dense -= self.center
            dense /= self.scale
            dense[:, self.constant_inputs] = 0.0
            yield rows, dense

    def _standardize_terms(self) -> None:
        i, j = self.pairs
        halves = np.where(i == j, 1.0, 0.5)
        first, second = np.zeros(len(i)), np.zeros(len(i))
        cubes = np.zeros(self.n)
        for rows, S in self.blocks():
            weight = self.weight[rows, None]
            first += weighted_products(S, weight)[:, 0]
            cubes += self.weight[rows] @ S**3
            S *= S
            second += weighted_products(S, weight)[:, 0]
        first *= halves
        second *= halves
        variance = second - first**2
        self.mean = np.concatenate([np.zeros(self.n), first])
        deviation = np.sqrt(np.maximum(variance, 0.0))
        self.deviation = np.concatenate([np.where(self.constant_inputs, np.inf, 1.0), deviation])
        again = np.flatnonzero((variance < UNCERTAIN * second) & (second > 0)) + self.n
        if len(again):
            self.deviation[again] = np.sqrt(self._variances(again))
        constant = self.deviation[self.n :] ** 2 <= CONSTANT * second
        self.deviation[self.n :][constant] = np.inf
        self._exclude_copies(cubes, np.flatnonzero(i == j) + self.n)
        self._factors = halves / self.deviation[self.n :]

    def _exclude_copies(self, cubes: Array, squares: Array) -> None:
        """Treat the square of an input with two values, which is a copy of the input, as constant.

        An optimum without it exists. The mean of s^3 is the covariance of s and s^2, and at most
        the deviation of s^2.
        """
        deviation = self.deviation[squares]
        usable = np.isfinite(deviation)
        copies = np.abs(cubes[usable]) >= (1 - COPY) * deviation[usable]
        self.deviation[squares[usable][copies]] = np.inf

    def _variances(self, terms: Array) -> Array:
        """Variances of some terms in a second pass, which does not cancel."""
        i, j = self.inputs_of(terms)
        found = np.zeros(len(terms))
        most = max(1, 2**22 // ROWS)
        for rows, S in self.blocks():
            for k in range(0, len(terms), most):
                some = slice(k, k + most)
                values = S[:, i[some]] * S[:, j[some]] - self.mean[terms[some]]
                found[some] += self.weight[rows] @ (values * values)
        return found

    def columns(self, terms: Array, X: Matrix | None = None, out: Array | None = None) -> Array:
        """The standardized terms with these numbers, shape (n_rows, len(terms)), by column.

        The rows are those of X, by default all samples. They are written to `out` if it is given.
        """
        X = self.X if X is None else X
        found = np.empty((X.shape[0], len(terms)), order="F") if out is None else out
        for rows, S in self.blocks(X):
            found[rows] = self._values(S, terms)
        return found

    def _values(self, S: Array, terms: Array) -> Array:
        i, j = self.inputs_of(terms)
        linear = j < 0
        values = S[:, i]
        values[:, ~linear] *= S[:, j[~linear]]
        values -= self.mean[terms]
        values /= self.deviation[terms]
        return values

    def gradient(self, residual: Array) -> Array:
        """Sums of weight * term * residual for all terms, shape (n_terms, K), in one pass."""
        K = residual.shape[1]
        linear, products = np.zeros((self.n, K)), np.zeros((self.n_terms - self.n, K))
        total = np.zeros(K)
        for rows, S in self.blocks():
            part = self.weight[rows, None] * residual[rows]
            linear += S.T @ part
            products += weighted_products(S, part)
            total += part.sum(axis=0)
        products *= self._factors[:, None]
        products -= np.outer(self.mean[self.n :] / self.deviation[self.n :], total)
        return np.concatenate([linear, products])

    def gradient_of(self, terms: Array, residual: Array) -> Array:
        """The rows of `gradient` for some terms."""
        found = np.zeros((len(terms), residual.shape[1]))
        for rows, S in self.blocks():
            found += self._values(S, terms).T @ (self.weight[rows, None] * residual[rows])
        return found

    def layer(self, terms: Array, coefficients: Array, intercept: Array) -> Quadratic:
        """The quadratic layer of the inputs x that computes intercept + terms @ coefficients."""
        (i, j), K = self.inputs_of(terms), len(intercept)
        linear = j < 0
        second = np.where(linear, 0, j)
        W, b = np.zeros((K, self.n)), intercept.astype(float)
        packed = np.zeros((self.n_terms - self.n, K))
        each = coefficients / self.deviation[terms, None]
        b -= self.mean[terms] @ each
        each = each / (self.scale[i] * np.where(linear, 1.0, self.scale[second]))[:, None]
        np.add.at(W.T, i[linear], each[linear])
        b -= self.center[i[linear]] @ each[linear]
        # (x_i - c_i)(x_j - c_j) = x_i x_j - c_j x_i - c_i x_j + c_i c_j
        i, j, each = i[~linear], j[~linear], each[~linear]
        packed[terms[~linear] - self.n] = np.where(i == j, 1.0, 0.5)[:, None] * each
        np.add.at(W.T, i, -self.center[j, None] * each)
        np.add.at(W.T, j, -self.center[i, None] * each)
        b += (self.center[i] * self.center[j]) @ each
        return Quadratic(W, b, packed=packed)


def inputs_of(terms: Array, n: int) -> tuple[Array, Array]:
    """The inputs i <= j of terms with these numbers, for n inputs; j is -1 for a linear term."""
    products, linear = np.maximum(terms - n, 0), terms < n
    firsts = np.arange(n) * n - np.arange(n) * (np.arange(n) - 1) // 2  # the number of (i, i)
    i = np.searchsorted(firsts, products, side="right") - 1
    j = products - firsts[i] + i
    return np.where(linear, terms, i), np.where(linear, -1, j)


def dense_blocks(X: Matrix) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows as new arrays of float64."""
    for first in range(0, X.shape[0], ROWS):
        rows = slice(first, min(first + ROWS, X.shape[0]))
        part = X[rows]
        dense = part.toarray() if sparse.issparse(part) else part
        yield rows, np.array(dense, dtype=np.float64, order="C")
