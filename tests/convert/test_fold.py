"""Folded layers compute the same function as the layers they replace."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression, datasets
from quadric.convert import fold, truncate
from quadric.core import Linear, Quadratic
from quadric.datasets._sources import COLLECTIONS, cache_directory, holds_all
from tests.support.networks import CURVED, LAST, LINEAR, SEEDS, WIDTHS, create, largest_error


def assert_same(network, folded, X):
    assert largest_error(folded.logits(X), network.logits(X)) <= 1e-12
    assert folded.activations[-1] == network.activations[-1]


@given(WIDTHS, LINEAR, CURVED, LINEAR, LAST, SEEDS)
def test_stacks_of_degree_two_become_one_layer(n, before, curved, after, last, seed):
    network = create(n, [*before, curved, *after], last, seed)
    folded = fold(network)
    assert [type(layer) for layer in folded.layers] == [Quadratic]
    assert_same(network, folded, np.random.default_rng(seed).normal(size=(20, n)))


def test_linear_layers_become_one_linear_layer():
    network = create(4, [("linear", 7), ("linear", 3)], "softmax", 0)
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


STEPS = st.lists(
    st.sampled_from([StandardScaler, MinMaxScaler, RobustScaler, lambda: PCA(3, whiten=True)]),
    min_size=1,
    max_size=3,
)


@given(STEPS, LINEAR, CURVED, LINEAR, SEEDS)
def test_affine_steps_of_a_pipeline_are_folded(steps, before, curved, after, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) * [1.0, 20.0, 0.1, 3.0] + [0.0, 30.0, 1.0, -2.0]
    Z = make_pipeline(*(step() for step in steps)).fit(X)
    n = Z.transform(X).shape[1]
    network = create(n, [*before, curved, *after, ("linear", 3)], "softmax", seed)
    model = make_pipeline(*(step for _, step in Z.steps), network)
    folded = fold(model)
    assert [(one.n_inputs, one.n_outputs) for one in folded.layers] == [(4, 3)]
    assert largest_error(folded.logits(X), network.logits(Z.transform(X))) <= 1e-12


def test_a_fitted_pipeline_is_folded():
    X, y = load_iris(return_X_y=True)
    kinds = {"layer_kinds": ("linear", "reduced"), "activation": "identity"}
    classifier = QuadraticClassifier((3,), **kinds, random_state=0)
    model = make_pipeline(StandardScaler(), PCA(3), classifier).fit(X, y)
    folded = fold(model)
    assert [(one.n_inputs, one.n_outputs) for one in folded.layers] == [(4, 3)]
    assert largest_error(folded.logits(X), model.decision_function(X)) <= 1e-12


def far_from_zero(offset, *steps, n=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, n)) * rng.uniform(0.5, 2, size=n) + offset
    y = ((X - offset) ** 2).sum(axis=1) > n
    return make_pipeline(*steps, QuadraticLogisticRegression()).fit(X, y), X


@pytest.mark.filterwarnings("ignore:The features' standard deviations")  # PCA loses precision, too
@pytest.mark.parametrize("offset", [0, 10, 1e3, 1e5, 1e6, 1e7, 1e8, 1e10])
@pytest.mark.parametrize(
    "steps",
    [
        (StandardScaler(),),
        (MinMaxScaler(),),
        (PCA(3, whiten=True),),
        (StandardScaler(), PCA(3)),
        (PCA(3), SelectKBest(k=2)),
        (ColumnTransformer([("a", StandardScaler(), [0, 2]), ("b", RobustScaler(), [1])]),),
    ],
)
def test_certify_C10_fold_far_from_zero_is_wrong(steps, offset):
    """A folded pipeline agrees with the pipeline, or there is an error."""
    model, X = far_from_zero(offset, *steps)
    if offset > 1e4:
        with pytest.raises(ValueError, match="so far from zero, relative to their spread"):
            fold(model)
    elif offset < 1e4:
        error = largest_error(fold(model).logits(X)[:, 0], model.decision_function(X))
        assert error <= (1e-12 if offset <= 10 else 1e-9)
    assert fold(model[-1]).n_inputs == model[:-1].transform(X).shape[1]


def test_certify_C10_fold_refuses_units_instead_of_distances_from_zero():
    """Only the ratio of the offset and the spread matters."""
    for unit in (1e-9, 1e9):
        model, X = far_from_zero(0, PCA(3))
        rng = np.random.default_rng(1)
        X = unit * (X + 3)
        scaled = make_pipeline(PCA(3), StandardScaler(), QuadraticLogisticRegression())
        scaled.fit(X, rng.random(300) > 0.5)
        assert largest_error(fold(scaled).logits(X)[:, 0], scaled.decision_function(X)) <= 1e-11
        network = Network.create(3, [("quadratic", 1, "identity")], rng=0)
        model = make_pipeline(PCA(3).fit(X), network)
        wanted = network.logits(model[0].transform(X))
        assert largest_error(fold(model).logits(X), wanted) <= 1e-11


def test_certify_C10_truncate_far_from_zero_is_wrong():
    model, X = far_from_zero(1e6, StandardScaler())
    full = truncate(model, 4).logits(X)[:, 0]
    assert largest_error(full, model.decision_function(X)) <= 1e-8
    model, X = far_from_zero(1e12, StandardScaler())
    with pytest.raises(ValueError, match="so far from zero, relative to their spread"):
        truncate(model, 4)


@given(WIDTHS, LINEAR, CURVED, LINEAR, st.booleans(), SEEDS)
def test_torch_models_are_folded(n, before, curved, after, bias, seed):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from quadric.torch import Quadratic as QuadraticModule, Reduced

    kinds = {"linear": torch.nn.Linear, "quadratic": QuadraticModule, "reduced": Reduced}
    modules, width = [], n
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for kind, size in [*before, curved, *after]:
            modules.append(kinds[kind](width, size, bias=bias))
            width = size
        model = torch.nn.Sequential(torch.nn.Sequential(*modules), torch.nn.Dropout()).double()
        x = torch.randn(10, n, dtype=torch.float64)
    with torch.no_grad():
        wanted = model.eval()(x).numpy()
    folded = fold(model)
    assert [type(layer) for layer in folded.layers] == [Quadratic]
    assert largest_error(folded.logits(x.numpy()), wanted) <= 1e-12


def images():
    """100 images of MNIST if its files are here, or else random ones, with pixels in [0, 1]."""
    if holds_all(cache_directory() / "mnist", COLLECTIONS["mnist"]):
        return datasets.mnist().X_test[:100] / 255
    return np.random.default_rng(0).random((100, 784))


def test_a_bilinear_mlp_of_the_published_size_in_float32():
    layers = [("linear", 256, "identity"), ("reduced", 256, "identity"), ("linear", 10, "softmax")]
    network = Network.create(784, layers, rng=0, dtype="float32")
    X = images().astype(np.float32)
    folded, wanted = fold(network), network.logits(X)
    assert wanted.dtype == np.float32
    assert [(one.n_inputs, one.n_outputs) for one in folded.layers] == [(784, 10)]
    assert largest_error(folded.logits(X), wanted) <= 1e-5
    assert largest_error(folded.astype("float32").logits(X), wanted) <= 1e-5


def test_models_that_cannot_be_folded_are_refused():
    with pytest.raises(TypeError, match="model must be a Network, a layer, a fitted quadric"):
        fold("model")
    huge = Network(
        [Linear([[1e200]], [0.0]), Quadratic([[0.0]], [0.0], [[[1.0]]])], 2 * ["identity"]
    )
    with pytest.raises(ValueError, match="larger than floating-point numbers can represent"):
        fold(huge)
