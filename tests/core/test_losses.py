"""Losses and activations at ordinary and extreme logits."""

import numpy as np
import pytest

from quadric import Network
from quadric.core import ACTIVATIONS, LOSSES, check_loss
from quadric.core._activations_and_losses import infer_loss
from tests.support.processes import output_of


def biased(z, last, dtype="float64"):
    """Return a network whose logits are z for any input."""
    net = Network.create(1, [("linear", len(z), last)], rng=0, dtype=dtype)
    net.layers[0].W, net.layers[0].b = np.zeros((len(z), 1)), z
    return net


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("z", "y", "wanted"),
    [
        (1e4, 0, 1e4),
        (1e4, 1, 0.0),
        (-1e4, 1, 1e4),
        (-1e4, 0, 0.0),
        (40.0, 1, 4.248354255291589e-18),
        (0.0, 0.5, np.log(2)),
    ],
)
def test_binary_cross_entropy_is_exact_at_extreme_logits(z, y, wanted, dtype):
    net = biased([z], "logistic", dtype)
    loss, (grad,) = net.gradients([[0.0]], [y])
    assert loss == pytest.approx(wanted, rel=1e-6, abs=0)
    assert grad.b[0] == pytest.approx((z > 0) - y + (0.5 if z == 0 else 0), abs=1e-6)
    history = net.fit([[0.0]], [y], learning_rate=1e-12, epochs=1)
    assert history.loss[0] == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy_is_exact_at_extreme_logits(dtype):
    net = biased([1e4, 0.0, -1e4], "softmax", dtype)
    for k, wanted in enumerate((0.0, 1e4, 2e4)):
        y = np.eye(3)[[k]]
        loss, (grad,) = net.gradients([[0.0]], y)
        assert loss == pytest.approx(wanted)
        np.testing.assert_allclose(grad.b, np.eye(3)[0] - y[0], atol=1e-7)
        assert net.copy().fit([[0.0]], y, epochs=1).loss[0] == pytest.approx(wanted)
    np.testing.assert_allclose(net.forward([[0.0]]), [[1, 0, 0]], atol=1e-30)


@pytest.mark.parametrize("last", ["identity", "logistic", "tanh", "relu"])
def test_squared_error_is_exact_at_extreme_logits(last):
    net = biased([1e4], last)
    loss, _ = net.gradients([[0.0]], [0.0], "squared_error")
    assert loss == pytest.approx(0.5e8 if last in ("identity", "relu") else 0.5)


@pytest.mark.parametrize("name", ["identity", "logistic", "tanh", "relu"])
def test_slopes_match_central_differences(name):
    z = np.array([-3.0, -0.5, 0.2, 2.0])
    g = ACTIVATIONS[name]
    wanted = (g.function(z + 1e-6) - g.function(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(g.slope(g.function(z)), wanted, atol=1e-9)


def test_the_loss_is_inferred_from_the_last_activation():
    assert {name: infer_loss(name) for name in ACTIVATIONS} == {
        "identity": "squared_error",
        "logistic": "binary_cross_entropy",
        "tanh": "squared_error",
        "relu": "squared_error",
        "softmax": "cross_entropy",
        "exponential": "poisson",
    }


def test_every_other_pairing_is_refused():
    refused = 0
    for name, loss in LOSSES.items():
        for last in ACTIVATIONS:
            if last not in loss.activations:
                refused += 1
                with pytest.raises(ValueError, match=f"loss='{name}' needs a last layer"):
                    check_loss(name, last)
    assert refused == 17


def test_the_loss_is_a_mean_over_samples_of_sums_over_outputs():
    net = biased([0.0, 0.0], "logistic")
    loss, (grad,) = net.gradients(np.zeros((5, 1)), np.ones((5, 2)))
    assert loss == pytest.approx(2 * np.log(2))
    np.testing.assert_allclose(grad.b, [-0.5, -0.5])


@pytest.mark.slow
def test_activations_match_numpy_with_and_without_compilation():
    script = (
        "import numpy as np\n"
        "from quadric.core._activations_and_losses import ACTIVATIONS, exp\n"
        "z = np.array([[-800.0, -1.0, 0.0, 2.0, 800.0]])\n"
        "print(np.allclose(ACTIVATIONS['tanh'].function(z), np.tanh(z), rtol=1e-15))\n"
        "a = ACTIVATIONS['logistic'].function(z)\n"
        "print(a[0, 0] < 1e-300, a[0, 2], a[0, 4], exp(z)[0, 2])\n"
        "print('numba' in __import__('sys').modules)\n"
    )
    for forbidden in ("0", "1"):
        printed = output_of(script, NUMBA_DISABLE_JIT=forbidden, PYTHONWARNINGS="error")
        assert printed == "True\nTrue 0.5 1.0 1.0\nTrue\n"


def test_nan_stays_nan():
    z = np.array([[np.nan, 1.0]])
    for name in ("logistic", "tanh"):
        found = ACTIVATIONS[name].function(z)
        assert np.isnan(found[0, 0])
        assert np.isfinite(found[0, 1])
