"""Sums over blocks do not depend on how the blocks are divided, and are those of all samples."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from quadric.core import Stack, draw_layers, parameters
from quadric.training import Options, Samples, TrainingState, train
from quadric.training._blocks import (
    BLOCK_ROWS,
    Block,
    BlockSamples,
    Encoding,
    divide,
    nodes_of,
    total_of,
)
from quadric.training._lbfgs import Objective
from quadric.utils import one_blas_thread

RNG = np.random.default_rng(0)
SHAPES = {
    "quadratic": ([("quadratic", 3)], ["softmax"]),
    "deep": ([("linear", 5), ("quadratic", 1)], ["tanh", "logistic"]),
    "reduced": ([("reduced", 2)], ["identity"]),
}


def total_with(blocks, limits):
    """A `Total` over blocks in memory, which are divided at these limits."""

    def total(function, *arguments):
        with one_blas_thread():
            return total_of(
                nodes_of(start, [function(block, *arguments) for block in blocks[start:stop]])
                for start, stop in itertools.pairwise(limits)
            )

    return total


def in_blocks(X, y, weight, encoding, limits=None):
    blocks = [
        Block(X[rows], y[rows], None if weight is None else weight[rows])
        for rows in (slice(k, k + BLOCK_ROWS) for k in range(0, len(y), BLOCK_ROWS))
    ]
    total = total_with(blocks, [0, *(limits or []), len(blocks)])
    return BlockSamples(len(y), X.shape[1], total, encoding)


@given(st.data())
def test_the_sum_does_not_depend_on_the_ranges(data):
    count = data.draw(st.integers(1, 70))
    values = [RNG.normal(size=2) * 10.0 ** RNG.integers(-8, 8) for _ in range(count)]
    limits = sorted(data.draw(st.lists(st.integers(0, count), max_size=6)))
    whole = total_of([nodes_of(0, values)])
    limits = [0, *limits, count]
    parts = [nodes_of(a, values[a:b]) for a, b in itertools.pairwise(limits)]
    assert np.array_equal(total_of(parts), whole)
    assert all(len(nodes) <= 2 * np.log2(count + 1) + 1 for nodes in parts)
    np.testing.assert_allclose(whole, np.sum(values, axis=0), rtol=1e-9, atol=1e-6)


def test_a_sum_from_left_to_right_would_have_other_bits():
    """The values of the test above can tell one order of the additions from another."""
    values = [RNG.normal(size=2) * 10.0 ** RNG.integers(-8, 8) for _ in range(70)]
    assert not np.array_equal(sum(values), total_of([nodes_of(0, values)]))


@pytest.mark.parametrize(("count", "shares"), [(1, [1]), (2442, [1, 1]), (5, [1] * 9), (7, [2, 1])])
def test_ranges_cover_all_blocks_in_order_with_few_nodes(count, shares):
    limits = divide(count, shares)
    assert limits == sorted(limits)
    assert (limits[0], limits[-1], len(limits)) == (0, count, len(shares) + 1)
    for start, stop in itertools.pairwise(limits):
        assert len(nodes_of(start, np.zeros((stop - start, 1)))) <= 12
        if count > 100:
            assert abs(stop - start - count / len(shares)) < 0.1 * count / len(shares)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_objective_is_that_of_all_samples_for_any_division(shape, weighted, is_sparse):
    layers, activations = SHAPES[shape]
    n_rows, m = 3 * BLOCK_ROWS + 77, layers[-1][1]
    X = RNG.normal(size=(n_rows, 4))
    X = sparse.csr_array(X * (X > 0)) if is_sparse else X
    stack = Stack(
        draw_layers(4, layers, init="glorot", rng=np.random.default_rng(1), dtype=np.dtype(float)),
        activations,
    )
    if shape == "reduced":
        y = RNG.normal(size=(n_rows, m))
        Y, encoding = y, Encoding(np.dtype(float), m)
    else:
        y = RNG.integers(max(m, 2), size=n_rows)
        Y = (y[:, None] == np.arange(max(m, 2))[-m:]).astype(float)
        encoding = Encoding(np.dtype(float), m, max(m, 2))
    weight = RNG.uniform(size=n_rows) if weighted else None
    options = Options(solver="lbfgs", l2=0.3, by_weight=True)
    whole = Objective(stack, Samples(X, Y, weight), options)
    x = RNG.normal(size=whole.scales.size)
    value, gradient = whole(x)
    found = []
    for limits in ([], [1], [2, 3], [1, 1, 2]):
        objective = Objective(stack, in_blocks(X, y, weight, encoding, limits), options)
        np.testing.assert_allclose(objective.scales, whole.scales, rtol=1e-12)
        objective.scales, objective.factors = whole.scales, whole.factors
        found.append(objective(x))
    assert found[0][0] == pytest.approx(value, rel=1e-12)
    assert np.abs(found[0][1] - gradient).max() <= 1e-12 * np.abs(gradient).max()
    for other in found[1:]:
        assert other[0] == found[0][0]
        assert np.array_equal(other[1], found[0][1])


def test_a_convex_fit_reaches_the_same_loss():
    X = RNG.normal(size=(2 * BLOCK_ROWS + 5, 3))
    y = (X[:, 0] * X[:, 1] + RNG.normal(size=len(X)) > 0).astype(int)
    options = Options(solver="lbfgs", epochs=500, l2=1.0, by_weight=True, tol=1e-10)
    losses = []
    for samples in (
        Samples(X, y[:, None].astype(float)),
        in_blocks(X, y, None, Encoding(np.dtype(float), 1, 2)),
    ):
        layers = draw_layers(
            3,
            [("quadratic", 1)],
            init="relinear",
            rng=np.random.default_rng(0),
            dtype=np.dtype(float),
        )
        stack, state = Stack(layers, ["logistic"]), TrainingState()
        train(stack, samples, options, state)
        losses.append(state.history.loss[-1])
        assert all(np.isfinite(array).all() for array in parameters(stack.layers))
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)


def test_the_state_of_every_iteration_can_be_stored_and_continued():
    X = RNG.normal(size=(500, 3))
    samples = Samples(X, (X[:, :1] * X[:, 1:2] > 0.1).astype(float))
    options = Options(solver="lbfgs", epochs=12, l2=0.1, by_weight=True, tol=0, resume=True)
    stored = []

    def run(state, epochs):
        layers = draw_layers(
            3,
            [("quadratic", 1)],
            init="relinear",
            rng=np.random.default_rng(0),
            dtype=np.dtype(float),
        )
        stack = Stack(layers, ["logistic"])
        options_of = Options(**(vars(options) | {"epochs": epochs}))
        train(stack, samples, options_of, state, callback=lambda epoch: keep(state))
        return np.concatenate([array.ravel() for array in parameters(stack.layers)])

    def keep(state):
        arrays, numbers = state.to_arrays()
        stored.append(({name: array.copy() for name, array in arrays.items()}, numbers))

    whole = run(TrainingState(), 12)
    continued = run(TrainingState.from_arrays(*stored[4]), 7)
    assert np.array_equal(continued, whole)
