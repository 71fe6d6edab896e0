"""Block descent finds the minimum: no other point of a fine search is better."""

import numpy as np
import pytest

from quadric import kernels


def solved(H, q, starts, weights, tol=1e-12):
    count = len(weights)
    vectors, values = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for g in range(count):
        rows = slice(starts[g], starts[g + 1])
        size = starts[g + 1] - starts[g]
        values[g, :size], vectors[g, :size, :size] = np.linalg.eigh(H[rows, rows])
    x, gradient, keys = np.zeros(len(q)), q.copy(), np.arange(len(q))
    sweeps = kernels.block_descent(
        H, gradient, x, keys, starts, weights, vectors, values, tol, 100_000
    )
    np.testing.assert_allclose(gradient, q + H @ x, atol=1e-9)
    return x, sweeps


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 3), (1, 2, 3), (2, 2, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimality_conditions_hold(sizes, seed):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    A = rng.normal(size=(8, starts[-1]))
    H, q = A.T @ A, rng.normal(size=starts[-1]) * 4
    weights = rng.uniform(0.5, 4, len(sizes))
    x, sweeps = solved(H, q, starts, weights)
    assert 0 < sweeps < 10_000
    gradient = q + H @ x
    for g, weight in enumerate(weights):
        rows = slice(starts[g], starts[g + 1])
        norm = np.linalg.norm(x[rows])
        if norm == 0:
            assert np.linalg.norm(gradient[rows]) <= weight * (1 + 1e-9)
        else:
            np.testing.assert_allclose(gradient[rows], -weight * x[rows] / norm, atol=1e-8)


def test_a_singular_matrix_has_a_minimum():
    H = np.ones((3, 3))  # three copies of a column
    x, _ = solved(H, np.full(3, -5.0), np.array([0, 3]), np.array([1.0]))
    np.testing.assert_allclose(3 * x.sum(), 3 * (5 - 1 / np.sqrt(3)), rtol=1e-9)


def test_large_weights_give_zeros():
    x, _ = solved(np.eye(3), np.full(3, -1.0), np.array([0, 1, 3]), np.array([2.0, 2.0]))
    assert not x.any()
