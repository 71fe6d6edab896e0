"""Certified radii hold for the labels that the model itself computes, with rounding errors."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression
from quadric.certify import _radius, radius
from quadric.certify._model_and_rounding import precision_of
from quadric.core import Linear, Quadratic
from quadric.models import affine_map
from tests.support.adversary import attack, near_ties

DEEP = [("linear", 6, "identity"), ("reduced", 8, "identity"), ("linear", 3, "softmax")]


def draw(seed, dtype="float64", layers=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    layers = layers or [("quadratic", int(rng.integers(1, 4)), "logistic")]
    network = Network.create(n, layers, init="normal", scale=1.0, rng=seed, dtype=dtype)
    return network, rng.normal(size=(20, n))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layers", [None, DEEP], ids=["one layer", "three layers"])
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(200), marks=pytest.mark.full)])
def test_no_attack_near_a_tie_succeeds_against_the_network_itself(seeds, dtype, layers):
    kept = []
    for seed in seeds:
        network, X = draw(seed, dtype, layers)
        found = radius(network, X)
        ties = near_ties(X, found)
        assert attack(network.predict, X, found) == 0
        if len(ties):
            assert attack(network.predict, ties, radius(network, ties)) == 0
        ordinary = np.isfinite(found.distance) & (found.distance > 1e-2)
        kept.extend((found.radius / found.distance)[ordinary])
    assert np.median(kept) > 0.999
    assert min(kept) > (0.8 if dtype == "float32" else 0.9999)


def test_the_attack_succeeds_if_rounding_errors_are_left_out(monkeypatch):
    true = _radius.class_scores

    def without(*given):
        found = true(*given)
        exact = replace(found.rounding.majorant, share=0.0)
        return replace(found, rounding=replace(found.rounding, majorant=exact, share=0.0))

    monkeypatch.setattr(_radius, "class_scores", without)
    flips = 0
    for seed in range(5):
        network, X = draw(seed, "float32", DEEP)
        ties = near_ties(X, radius(network, X))
        flips += attack(network.predict, ties, radius(network, ties))
    assert flips > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "steps", [[StandardScaler()], [MinMaxScaler(), PCA(3)], [StandardScaler(), PCA(4, whiten=True)]]
)
def test_pipelines_of_features_far_from_zero(steps, dtype):
    X, y = load_iris(return_X_y=True)
    offsets = [1e6, -1e6, 0, 1e3] if dtype == "float64" else [100, -100, 0, 10]
    X = (X * [1, 1, 1e-3, 100] + offsets).astype(dtype)
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(X, y)
    found = radius(model, X)
    ties = near_ties(X, found).astype(dtype)
    assert attack(model.predict, X, found) == 0
    assert attack(model.predict, ties, radius(model, ties)) == 0
    if dtype == "float64":  # whitening multiplies the rounding errors
        kept = 0.99 if getattr(steps[-1], "whiten", False) else 0.999
        assert (found.radius / found.distance > kept).all()
    else:
        assert found.radius.max() > 0


def test_the_precision_is_that_of_the_inputs_and_the_network():
    X, y = load_iris(return_X_y=True)
    single = QuadraticClassifier((), random_state=0).fit(X.astype("float32"), y)
    assert single.network_.dtype == np.float32
    exact, rounded = radius(single, X), radius(single, X.astype("float32"))
    lost = [1 - (one.radius / one.distance).max() for one in (exact, rounded)]
    assert lost[0] < 1e-10 < lost[1] < 1e-3
    assert attack(single.predict, X.astype("float32"), rounded) == 0


def test_columns_of_float16_and_float32_are_rounded_like_float32():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X, y = load_iris(return_X_y=True)
    table = pandas.DataFrame(X.astype("float32")).astype({0: "float16"})
    model = QuadraticClassifier((), random_state=0).fit(table, y)
    assert model.network_.dtype == np.float32
    mixed, single = radius(model, table), radius(model, table.astype("float32"))
    np.testing.assert_array_equal(mixed.radius, single.radius)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12])
def test_tiny_and_huge_weights(dtype, scale):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        layers = [
            Linear(rng.normal(size=(4, 3)) * scale, rng.normal(size=4) * scale),
            Quadratic(np.zeros((2, 4)), np.zeros(2), rng.normal(size=(2, 4, 4))),
        ]
        network = Network(layers, ["identity", "softmax"]).astype(dtype)
        X = rng.normal(size=(20, 3))
        try:
            found = radius(network, X)
        except ValueError:  # not finite
            assert (dtype, scale) == ("float32", 1e12)
            continue
        assert attack(network.predict, X, found) == 0
        ties = near_ties(X, found)
        assert attack(network.predict, ties, radius(network, ties)) == 0
        if dtype == "float64":
            assert found.radius.max() > 0


def test_scores_that_underflow_have_no_radius():
    square = Network([Quadratic(np.zeros((1, 2)), [0.0], [np.eye(2)])], ["logistic"])
    found = radius(square.astype("float32"), [[1e-25, 0.0], [1.0, 0.0]])
    assert found.predicted.tolist() == [0, 1]  # the square of 1e-25 is zero in float32
    assert found.radius[0] == 0
    assert found.radius[1] > 0.99


def test_scores_that_are_not_finite_are_errors():
    network = Network([Quadratic(np.zeros((1, 2)), [0.0], [np.eye(2)])], ["logistic"])
    with pytest.raises(ValueError, match="not finite in float32"):
        radius(network.astype("float32"), [[1e30, 0.0]])
    with pytest.raises(ValueError, match="not finite in float64"):
        radius(network, [[1e200, 0.0]])


def test_the_map_of_absolute_values_has_the_absolute_values_of_every_step():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 5
    step = PCA(2).fit(X)
    found = affine_map(step, absolute=0.0)
    np.testing.assert_allclose(found.A, np.abs(step.components_))
    assert (found.t >= np.abs(step.components_) @ np.abs(step.mean_)).all()


def test_lists_and_tables_have_the_precision_of_their_columns():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X = np.ones((3, 2), dtype="float32")
    single, double = np.dtype("float32"), np.dtype("float64")
    assert precision_of(X) == precision_of(list(X)) == single
    assert precision_of([[1.0, 2.0]]) == precision_of(np.ones((1, 2), dtype=int)) == double
    table = pandas.DataFrame({"dtype": X[:, 0], "other": [1.0, 2.0, 3.0]})
    assert precision_of(table) == single
    assert precision_of(table.astype(float)) == double
