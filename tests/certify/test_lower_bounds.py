"""Lower bounds of the radius for networks that do not fold to one layer."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticClassifier
from quadric.certify import radius
from quadric.core import Linear, Quadratic
from tests.support.adversary import attack

STACKS = [
    [("linear", 8, "tanh"), ("linear", 3, "softmax")],
    [("quadratic", 5, "logistic"), ("quadratic", 3, "softmax")],
    [("reduced", 6, "relu"), ("linear", 5, "identity"), ("quadratic", 1, "logistic")],
    [("quadratic", 4, "identity"), ("quadratic", 2, "logistic")],
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layers", STACKS)
def test_no_attack_within_the_bound_succeeds(layers, dtype):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        network = Network.create(4, layers, init="normal", scale=0.7, rng=seed, dtype=dtype)
        X = rng.normal(size=(30, 4))
        found = radius(network, X)
        assert not found.exact
        assert np.isnan(found.distance).all()
        assert np.isnan(found.nearest).all()
        assert (found.becomes == found.predicted).all()
        assert (found.radius > 0).mean() > 0.9
        assert attack(network.predict, X, found, count=100, share=1.0) == 0


def test_the_bound_is_below_the_distance_found_by_a_minimizer():
    for seed in range(4):
        network = Network.create(2, STACKS[0], init="normal", scale=1.0, rng=seed)
        x = np.random.default_rng(seed).normal(size=2)
        c = network.predict(x[None])[0]

        def margin(y, network=network, c=c):
            z = network.logits(y[None])[0]
            return z[c] - np.delete(z, c).max()

        starts = x + 3 * np.random.default_rng(0).normal(size=(30, 2))
        solved = [
            minimize(
                lambda y, x=x: (y - x) @ (y - x),
                start,
                constraints=[{"type": "eq", "fun": margin}],
            )
            for start in starts
        ]
        distances = [
            np.sqrt(one.fun) for one in solved if one.success and abs(margin(one.x)) < 1e-7
        ]
        found = radius(network, x[None]).radius[0]
        assert 0 < found < min(distances)


def test_one_linear_layer_after_the_activation_gives_the_exact_radius():
    # relu(x) = x for x > 0, so that the bound in one dimension is the distance
    network = Network([Linear([[1.0]], [0.0]), Linear([[1.0]], [-1.0])], ["relu", "logistic"])
    found = radius(network, [[3.0], [0.25]])
    np.testing.assert_allclose(found.radius, [2.0, 0.75], rtol=0.01)
    assert (found.radius < [2.0, 0.75]).all()


def test_a_network_that_never_changes_its_mind_has_a_large_bound():
    layers = [Linear([[1.0]], [0.0]), Quadratic([[0.0]], [5.0], [[[1.0]]])]
    assert radius(Network(layers, ["tanh", "logistic"]), [[0.0]]).radius[0] > 1e11


@pytest.mark.parametrize("layers", [*STACKS, [("quadratic", 3, "softmax")]])
def test_without_free_inputs_every_distance_is_infinite(layers):
    network = Network.create(2, layers, rng=0)
    found = radius(network, np.array([[1.0, 2.0], [-1.0, 0.5]]), fixed=[0, 1])
    assert (found.distance == np.inf).all()
    assert (found.radius == np.inf).all()
    assert np.isnan(found.nearest).all()
    assert (found.becomes == found.predicted).all()


def test_bounds_of_pipelines_hold_in_both_units_and_with_fixed_inputs():
    X, y = load_iris(return_X_y=True)
    X = X * [1, 100, 1, 0.01]
    classifier = QuadraticClassifier((5,), activation="tanh", random_state=0, max_iter=300)
    model = make_pipeline(StandardScaler(), classifier).fit(X, y)
    inputs, scaled = radius(model, X), radius(model, X, units="scaled")
    fixed = radius(model, X, fixed=[0, "x2"])
    assert attack(model.predict, X, inputs, share=1.0) == 0
    assert (inputs.radius > 0).mean() > 0.9
    assert (fixed.radius >= inputs.radius * 0.999).all()
    assert np.median(scaled.radius) > np.median(inputs.radius)
