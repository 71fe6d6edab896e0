"""Layers: parameters, symmetry, packing, shifting."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from quadric import Linear, Network, Quadratic, Reduced
from quadric.core import _quadratic_form as quadratic_form
from quadric.files._describe import from_tensors, to_tensors
from tests.support.networks import KINDS, make_network, targets

RNG = np.random.default_rng(0)


def assert_symmetric(layers):
    for layer in layers:
        assert np.array_equal(layer.Q, layer.Q.transpose(0, 2, 1))


def test_unsymmetric_Q_becomes_the_same_function():
    Q = RNG.normal(size=(2, 3, 3))
    layer = Quadratic(np.zeros((2, 3)), np.zeros(2), Q)
    x = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(layer.forward(x)[0], np.einsum("bi,kij,bj->bk", x, Q, x))
    assert np.array_equal(layer.Q, layer.Q.transpose(0, 2, 1))
    layer.Q = 2 * Q
    np.testing.assert_allclose(layer.forward(x)[0], np.einsum("bi,kij,bj->bk", x, 2 * Q, x))


def test_symmetrizing_does_not_overflow():
    big = np.finfo(np.float64).max
    layer = Quadratic(np.zeros((1, 2)), np.zeros(1), np.full((1, 2, 2), big))
    assert np.isfinite(layer.Q).all()


def test_single_entries_of_Q_cannot_be_written():
    layer = Quadratic(np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        layer.Q[0, 0, 1] = 1.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l2": 0.1, "clip": 1.0},
        {"batch_size": 7, "momentum": 0.9, "nesterov": True},
        {"batch_size": 7, "solver": "adam", "l2": 0.01},
        {"solver": "lbfgs", "l2": 0.01},
        {"offset": 0.3},
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_Q_stays_exactly_symmetric(options, dtype):
    net = make_network(("quadratic", "quadratic"), "tanh", "logistic", n=6, dtype=dtype)
    X, Y = RNG.normal(size=(40, 6)), targets("binary_cross_entropy", 40, 2, RNG)
    _, grads = net.gradients(X, Y)
    assert_symmetric([*net.layers, *grads])
    net.fit(X, Y, epochs=5, learning_rate=0.05, **options)
    assert_symmetric([*net.layers, *net.copy().layers, *net.astype("float32").layers])


@given(st.integers(1, 6), st.integers(1, 4))
def test_unpacking_inverts_packing(n, m):
    packed = np.random.default_rng(n).normal(size=(n * (n + 1) // 2, m))
    Q = quadratic_form.unpack(packed)
    assert np.array_equal(Q, Q.transpose(0, 2, 1))
    assert np.array_equal(quadratic_form.pack(Q), packed)
    # row-major upper triangle: q_11, q_12, ..., q_1n, q_22, ...
    assert np.array_equal(Q[:, 0, :], packed[:n].T)


@pytest.mark.parametrize("kind", KINDS)
def test_stored_tensors_give_the_same_layer_and_count(kind):
    net = make_network([kind], "tanh", "identity", n=5, widths=(3,))
    (layer,) = net.layers
    again = from_tensors(kind, 5, 3, to_tensors(layer).__getitem__)
    for name, array in layer.arrays().items():
        assert np.array_equal(again.arrays()[name], array)
    per_neuron = {"linear": 5 + 1, "quadratic": 15 + 5 + 1, "reduced": 2 * 5 + 2}[kind]
    assert layer.n_parameters == 3 * per_neuron
    assert layer.n_parameters == sum(a.size for a in to_tensors(layer).values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_shifted_layer_adds_the_offset_to_its_inputs(kind):
    (layer,) = make_network([kind], "tanh", "identity", n=4, widths=(3,)).layers
    s, o = RNG.normal(size=(6, 4)), RNG.normal(size=4)
    np.testing.assert_allclose(layer.shifted(o).forward(s)[0], layer.forward(s + o)[0], atol=1e-13)


def test_penalty_counts_independent_entries_once():
    Q = np.array([[[1.0, 2.0], [2.0, 3.0]]])
    layer = Quadratic([[4.0, 0.0]], [100.0], Q)
    assert layer.penalty() == pytest.approx((1 + 4 + 9 + 16) / 2)
    reduced = Reduced([[1.0]], [9.0], [[2.0]], [9.0])
    assert reduced.penalty() == pytest.approx((1 + 4) / 2)


def test_wrong_parameters_are_refused_and_change_nothing():
    layer = Linear(np.ones((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"W must be an array of numbers of shape \(2, 3\)"):
        layer.W = np.ones((3, 2))
    with pytest.raises(ValueError, match="b must be finite"):
        layer.b = [np.nan, 0]
    with pytest.raises(AttributeError, match="a linear layer has no parameter Q, only W, b"):
        layer.Q = np.zeros((2, 3, 3))
    with pytest.raises(ValueError, match="both nonzero"):
        Linear(np.ones((0, 3)), np.zeros(0))
    assert np.array_equal(layer.W, np.ones((2, 3)))
    assert np.array_equal(layer.b, np.zeros(2))
    assert repr(layer) == "Linear(3 -> 2, float64)"


def test_network_refuses_layers_that_do_not_fit():
    a, b = Linear(np.ones((2, 3)), np.zeros(2)), Linear(np.ones((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match=r"layers\[1\] must have 2 inputs.*Got 3"):
        Network([a, b], ["tanh", "logistic"])
    with pytest.raises(ValueError, match="same length"):
        Network([a], [])
    with pytest.raises(ValueError, match=r"softmax.*last layer"):
        Network([a, Linear(np.ones((1, 2)), [0])], ["softmax", "logistic"])
    with pytest.raises(ValueError, match="same dtype"):
        Network([a, Linear(np.ones((1, 2), np.float32), np.zeros(1))], ["tanh", "logistic"])
    with pytest.raises(TypeError, match=r"layers\[0\] must be a Linear"):
        Network(["linear"], ["tanh"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_torch_T1_denormal_derivatives_count_as_zero_in_every_layer(kind, dtype):
    """On some processors, matrix products with denormal numbers take many times as long."""
    (layer,) = make_network((kind,), "identity", "identity", widths=(2,), dtype=dtype).layers
    X = np.random.default_rng(0).uniform(0.5, 1, (500, 3)).astype(dtype)
    delta = np.full((500, 2), np.finfo(dtype).tiny / 4, dtype)
    gradients, d_input = layer.backward(delta, layer.forward(X)[1])
    assert not any(array.any() for array in (*gradients.arrays().values(), d_input))
    delta[0] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        gradients, _ = layer.backward(delta, layer.forward(X)[1])
    assert not np.isfinite(gradients.b).any()
