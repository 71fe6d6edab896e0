"""Properties of each kind of initialization."""

import numpy as np
import pytest

from quadric import Network
from tests.support.networks import KINDS


def layer(kind, n, m, **options):
    return Network.create(n, [(kind, m, "identity")], rng=0, **options).layers[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3, 40])
def test_glorot_keeps_the_variance(kind, n):
    # 20 000 samples for small n, where fourth moments vary widely; many neurons
    X = np.random.default_rng(1).normal(size=(20000 if n < 10 else 400, n))
    if kind == "linear":  # n = m makes Glorot's compromise exact
        nets = [Network.create(n, [(kind, n, "identity")], rng=seed) for seed in range(400)]
        z = np.concatenate([net.logits(X[:1000]).ravel() for net in nets])
    else:
        z = layer(kind, n, 600).forward(X)[0]
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.15)


def test_normal_uses_its_scale_for_everything():
    quadratic = layer("quadratic", 60, 20, init="normal", scale=0.3)
    assert quadratic.W.std() == pytest.approx(0.3, rel=0.1)
    diagonal = np.einsum("kii->ki", quadratic.Q)
    off = quadratic.Q[:, *np.triu_indices(60, 1)]
    assert diagonal.std() == pytest.approx(0.3, rel=0.1)
    assert off.std() == pytest.approx(0.3 / np.sqrt(2), rel=0.1)  # (Q + Q')/2
    reduced = layer("reduced", 60, 20, init="normal", scale=0.3)
    assert reduced.c.std() == pytest.approx(0.3, rel=0.4)
    assert layer("linear", 60, 20, init="normal").W.std() == pytest.approx(0.005, rel=0.1)


def test_identity_starts_with_unit_matrices():
    quadratic = layer("quadratic", 3, 2, init="identity")
    assert np.array_equal(quadratic.Q, np.stack([np.eye(3)] * 2))
    assert not quadratic.W.any()
    assert not quadratic.b.any()
    assert layer("quadratic", 3, 2, init="identity", scale=0.1).W.any()
    assert layer("linear", 3, 2, init="identity").W.any()  # no Q: glorot's values


@pytest.mark.parametrize("kind", ["quadratic", "reduced"])
def test_relinear_is_exactly_linear(kind):
    quadratic = layer(kind, 4, 3, init="relinear")
    linear = layer("linear", 4, 3, init="relinear")
    X = np.random.default_rng(0).normal(size=(9, 4))
    assert np.array_equal(quadratic.forward(X)[0], linear.forward(X)[0])
    # training can change this: the new parameters have gradients
    net = Network.create(4, [(kind, 3, "identity")], init="relinear", rng=0)
    _, (grad,) = net.gradients(X, np.ones((9, 3)))
    assert np.abs(grad.Q if kind == "quadratic" else grad.U).max() > 0.01


def test_relinear_preserves_the_variance_in_deep_quadratic_networks():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 6))
    depth = [("quadratic", 6, "identity")] * 8
    spread = {}
    for init in ("normal", "relinear"):
        net = Network.create(6, depth, init=init, rng=0)
        spread[init] = net.logits(X).std(axis=0).max()
    assert spread["normal"] < 1e-6  # collapsed
    assert 0.1 < spread["relinear"] < 10


def test_float32_values_are_the_rounded_float64_ones():
    for kind in KINDS:
        single, double = layer(kind, 4, 3, dtype="float32"), layer(kind, 4, 3)
        for name, array in double.arrays().items():
            np.testing.assert_array_equal(single.arrays()[name], array.astype(np.float32))
