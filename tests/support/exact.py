"""Models and distances in 60 digits, independent of the library, and rational numbers.

A model is written as a polynomial of its inputs from its stored numbers, and a distance is the
maximum of the Lagrangian dual, which has no gap for one quadratic constraint (the S-lemma). Arrays
of numbers with 60 digits are NumPy arrays of objects; so are those of fractions, for linear algebra
without rounding errors.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

DIGITS = 60
ZERO = mpf(10) ** -45  # share of the largest eigenvalue
HALVINGS = 220

exactly = np.vectorize(lambda number: mpf(float(number)), otypes=[object])


@dataclass(frozen=True)
class Polynomial:
    """z = u'Qu + w'u + b, where u = A x + t."""

    Q: Any
    w: Any
    b: Any


# ------------------------------------------------------------------------------------- models


def polynomials(network):
    """The logits of a network without activations between its layers, one polynomial for each."""
    n = network.n_inputs
    values = [Polynomial(exactly(np.zeros((n, n))), row, mpf(0)) for row in exactly(np.eye(n))]
    for layer in network.layers:
        arrays = {name: exactly(array) for name, array in layer.arrays().items()}
        if layer.kind == "quadratic":
            arrays["Q"] = exactly(layer.Q)
        values = [_neuron(layer.kind, arrays, k, values) for k in range(layer.n_outputs)]
    return values


def _weighted(weights, values, constant):
    """The sum of a constant and of polynomials with these weights."""
    pairs = list(zip(weights, values, strict=True))
    Q, w, b = (sum(weight * getattr(z, part) for weight, z in pairs) for part in "Qwb")
    return Polynomial(Q, w, b + constant)


def _product(left, right):
    """The product of two linear polynomials."""
    assert not left.Q.any()
    assert not right.Q.any()
    Q = (np.outer(left.w, right.w) + np.outer(right.w, left.w)) / 2
    return Polynomial(Q, left.b * right.w + right.b * left.w, left.b * right.b)


def _neuron(kind, arrays, k, values):
    z = _weighted(arrays["W"][k], values, arrays["b"][k])
    if kind == "linear":
        return z
    if kind == "reduced":
        return _product(z, _weighted(arrays["U"][k], values, arrays["c"][k]))
    W, b = np.stack([value.w for value in values]), np.array([value.b for value in values])
    assert not any(value.Q.any() for value in values)
    Q, curved = arrays["Q"][k], W.T @ arrays["Q"][k]
    return Polynomial(curved @ W, z.w + 2 * curved @ b, z.b + b @ Q @ b)


def affine(step, n):
    """The map A x + t of a fitted step with n inputs."""
    one, name = exactly(np.eye(n)), type(step).__name__
    if name in ("str", "SimpleImputer", "FunctionTransformer"):
        return one, exactly(np.zeros(n))
    if name in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):
        scale = exactly(step.scale_)
        center = exactly(getattr(step, "mean_", getattr(step, "center_", np.zeros(n))))
        return one / scale[:, None], -center / scale
    if name == "MinMaxScaler":
        return one * exactly(step.scale_)[:, None], exactly(step.min_)
    if name in ("PCA", "IncrementalPCA", "TruncatedSVD"):
        A = exactly(step.components_)
        t = -A @ exactly(step.mean_) if hasattr(step, "mean_") else exactly(np.zeros(len(A)))
        if getattr(step, "whiten", False):
            scale = np.sqrt(step.explained_variance_)
            scale = exactly(np.maximum(scale, np.finfo(scale.dtype).eps))
            return A / scale[:, None], t / scale
        return A, t
    if name == "Pipeline":
        return affine_of([inner for _, inner in step.steps], n)
    if name == "FeatureUnion":
        parts = [affine(inner, n) for _, inner in step.transformer_list]
    else:
        assert name == "ColumnTransformer"
        parts = []
        for _, inner, columns in step.transformers_:
            if len(columns):
                A, t = affine(inner, len(columns))
                parts.append((A @ one[list(columns)], t))
    return np.vstack([A for A, _ in parts]), np.concatenate([t for _, t in parts])


def affine_of(steps, n):
    """The composition of several steps."""
    A, t = exactly(np.eye(n)), exactly(np.zeros(n))
    for step in steps:
        B, s = affine(step, len(t))
        A, t = B @ A, B @ t + s
    return A, t


def scores_of(model, n):
    """The class scores of a model as polynomials of its n inputs, and the map before them."""
    with mp.workdps(DIGITS):
        steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
        network = getattr(steps[-1], "network_", steps[-1])
        scores = polynomials(network)
        if len(scores) == 1:
            zero = exactly(np.zeros(network.n_inputs))
            scores = [Polynomial(np.outer(zero, zero), zero, mpf(0)), *scores]
        return scores, affine_of(steps[:-1], n)


# ---------------------------------------------------------------------------------- distances


def distance_between(scores, change, x, c, k):
    """The distance from x to the nearest point where score k is at least score c."""
    with mp.workdps(DIGITS):
        A, t = change
        u = A @ exactly(x) + t
        Q, w = scores[c].Q - scores[k].Q, scores[c].w - scores[k].w
        F = u @ Q @ u + w @ u + scores[c].b - scores[k].b
        return distance(A.T @ Q @ A, A.T @ (2 * (Q @ u) + w), F)


def exact_scores(model, X):
    """The class scores of a model at each row of X, rounded to float64."""
    scores, (A, t) = scores_of(model, X.shape[1])
    with mp.workdps(DIGITS):
        rows = [A @ exactly(x) + t for x in X]
        return np.array([[float(u @ z.Q @ u + z.w @ u + z.b) for z in scores] for u in rows])


def distance(A, g, F):
    """The length of the shortest d with F + g'd + d'Ad <= 0; infinite if there is none."""
    with mp.workdps(DIGITS):
        if F <= 0:
            return mpf(0)
        lam, V = mpmath.eigsy(mpmath.matrix(A.tolist()))
        lam = np.array(list(lam))
        G = np.array(V.T.tolist()).reshape(len(lam), -1) @ g
        largest, steepest = max(abs(lam)), max(abs(g))
        lam[abs(lam) <= ZERO * largest] = mpf(0)
        G[abs(G) <= ZERO * steepest] = mpf(0)
        if not any(lam < 0) and not any(G[lam == 0] != 0):
            curved = lam > 0
            if (G[curved] ** 2 / (4 * lam[curved])).sum() < F:
                return mpf("inf")

        def step(nu):
            return -nu / 2 * G / (1 + nu * lam)

        def value(d):  # at the step, it falls as nu grows
            return F + (G * d).sum() + (lam * d * d).sum()

        if any(lam < 0):
            high = -1 / min(lam)
            at_end = 1 + high * lam <= ZERO
            if not any(G[at_end] != 0):  # the hard case: the zero may be along these axes
                d = np.where(at_end, mpf(0), G)
                d[~at_end] = -high / 2 * G[~at_end] / (1 + high * lam[~at_end])
                rest = value(d)
                if rest >= 0:
                    return mpmath.sqrt((d * d).sum() + rest * high)
        else:
            high = mpf(1)
            while value(step(high)) > 0 and high < mpf(10) ** 2000:  # the minimum may be zero
                high *= 4
        start = high
        while value(step(start / 2)) < 0 and start > mpf(10) ** -2000:
            start /= 2
        low, high = start / 2, start if start < high else high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if value(step(middle)) > 0 else (low, middle)
        d = step(low)
        return mpmath.sqrt((d * d).sum())


# -------------------------------------------------------------------------- rational matrices

rationals = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
_fractions = np.vectorize(
    lambda number: Fraction(int(number.numerator), int(number.denominator)), otypes=[object]
)


def _rational(A):
    """A matrix of fractions as a matrix of sympy, whose import takes half a second."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix

    rows = [[QQ(number.numerator, number.denominator) for number in row] for row in A]
    return DomainMatrix(rows, np.shape(A), QQ)


def determinant(A):
    """The determinant of a square matrix."""
    return _fractions(_rational(A).det()).item()


def inverse(A):
    """The inverse of a square matrix, or None if it is singular."""
    matrix = _rational(A)
    return _fractions(matrix.inv().to_list()) if matrix.det() else None


def rank(A):
    """The rank of a matrix."""
    return _rational(A).rank()


def signature(A):
    """The numbers of positive and of negative eigenvalues of a symmetric matrix (Descartes)."""
    matrix = _rational(A)
    signs = [value > 0 for value in matrix.charpoly() if value]
    positive = sum(a != b for a, b in pairwise(signs))
    return positive, matrix.rank() - positive
