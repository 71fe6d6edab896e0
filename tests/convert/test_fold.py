"""Folded layers compute the same function as the layers they replace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticClassifier
from quadric.convert import fold, fold_bilinear
from quadric.core import Linear, Quadratic


def assert_same(network, folded, X):
    wanted, found = network.logits(X), folded.logits(X)
    assert np.abs(found - wanted).max() <= 1e-12 * max(1.0, np.abs(wanted).max())
    assert folded.activations[-1] == network.activations[-1]


LINEAR = st.lists(st.tuples(st.just("linear"), st.integers(1, 5)), max_size=3)


@given(
    st.integers(1, 5),
    LINEAR,
    st.sampled_from(["quadratic", "reduced"]),
    st.integers(1, 6),
    LINEAR,
    st.sampled_from(["softmax", "logistic", "identity"]),
    st.integers(0, 1000),
)
def test_stacks_of_degree_two_become_one_layer(n, before, kind, width, after, last, seed):
    stack = [*before, (kind, width), *after]
    activations = ["identity"] * (len(stack) - 1) + [last]
    layers = [(*layer, name) for layer, name in zip(stack, activations, strict=True)]
    network = Network.create(n, layers, init="normal", scale=0.7, rng=seed)
    folded = fold(network)
    assert [type(layer) for layer in folded.layers] == [Quadratic]
    assert_same(network, folded, np.random.default_rng(seed).normal(size=(20, n)))


def test_linear_layers_become_one_linear_layer():
    network = Network.create(
        4, [("linear", 7, "identity"), ("linear", 3, "softmax")], init="normal", scale=1.0, rng=0
    )
    folded = fold(network)
    assert [type(layer) for layer in folded.layers] == [Linear]
    assert_same(network, folded, np.random.default_rng(0).normal(size=(9, 4)))


def test_layers_stay_apart_where_the_degree_or_an_activation_forbids_it():
    layers = [
        ("linear", 6, "identity"),
        ("quadratic", 4, "tanh"),
        ("linear", 3, "identity"),
        ("reduced", 5, "identity"),
        ("quadratic", 2, "softmax"),
    ]
    network = Network.create(5, layers, init="normal", scale=0.3, rng=0)
    folded = fold(network)
    assert [(one.n_inputs, one.n_outputs) for one in folded.layers] == [(5, 4), (4, 5), (5, 2)]
    assert folded.activations == ("tanh", "identity", "softmax")
    assert_same(network, folded, np.random.default_rng(0).normal(size=(20, 5)))


def test_affine_steps_of_a_pipeline_are_folded():
    X, y = load_iris(return_X_y=True)
    kinds = {"layer_kinds": ("linear", "reduced"), "activation": "identity"}
    classifier = QuadraticClassifier((3,), **kinds, random_state=0)
    model = make_pipeline(StandardScaler(), PCA(3), classifier).fit(X, y)
    folded = fold(model)
    assert [(one.n_inputs, one.n_outputs) for one in folded.layers] == [(4, 3)]
    wanted = model.decision_function(X)
    assert np.abs(folded.logits(X) - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("residual", [False, True])
def test_a_bilinear_block_given_by_its_matrices(residual):
    rng = np.random.default_rng(0)
    W, V, out, embed = (rng.normal(size=size) for size in [(6, 6), (6, 6), (3, 6), (6, 4)])
    biases = {"W": rng.normal(size=6), "out": rng.normal(size=3), "embed": rng.normal(size=6)}
    layer = fold_bilinear(W, V, out, embed=embed, biases=biases, residual=residual)
    X = rng.normal(size=(20, 4))
    h = X @ embed.T + biases["embed"]
    product = (h @ W.T + biases["W"]) * (h @ V.T) + residual * h
    np.testing.assert_allclose(layer.forward(X)[0], product @ out.T + biases["out"], rtol=1e-11)


def test_a_torch_model_is_folded():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from quadric.torch import Reduced

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), Reduced(4, 6), torch.nn.Linear(6, 3))
    model.double()
    folded = fold(model)
    assert [type(layer) for layer in folded.layers] == [Quadratic]
    x = torch.randn(10, 5, dtype=torch.float64)
    with torch.no_grad():
        wanted = model(x).numpy()
    np.testing.assert_allclose(folded.logits(x.numpy()), wanted, rtol=1e-11, atol=1e-13)


def test_wrong_arguments():
    one = np.ones((2, 3))
    with pytest.raises(TypeError, match="model must be a Network, a fitted quadric estimator"):
        fold("model")
    with pytest.raises(ValueError, match=r"out must have 2 columns, one per row of W and V"):
        fold_bilinear(one, one, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"residual requires square W and V"):
        fold_bilinear(one, one, np.ones((4, 2)), residual=True)
    with pytest.raises(ValueError, match=r"embed must have 3 rows"):
        fold_bilinear(one, one, np.ones((4, 2)), embed=one)
    with pytest.raises(ValueError, match=r"biases must name matrices that are given"):
        fold_bilinear(one, one, np.ones((4, 2)), biases={"embed": [1.0]})
    huge = Network(
        [Linear([[1e200]], [0.0]), Quadratic([[0.0]], [0.0], [[[1.0]]])], 2 * ["identity"]
    )
    with pytest.raises(ValueError, match="larger than floating-point numbers can represent"):
        fold(huge)
