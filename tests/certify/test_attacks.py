"""The attacks of foolbox find no input of another class within the certified radius."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from quadric import QuadraticLogisticRegression
from quadric.certify import radius
from quadric.datasets import DatasetError, mnist

pytest.importorskip("torch", reason="needs PyTorch")

import torch

from quadric.torch import from_network

pytestmark = pytest.mark.filterwarnings("ignore")  # foolbox's own
CLOSE, BEYOND = 0.999, 1.05


@pytest.fixture(scope="module", autouse=True)
def _foolbox():
    """Import it late, because all tests here are slow and it takes a second."""
    pytest.importorskip("foolbox", reason="needs foolbox: pip install foolbox")


class Around(torch.nn.Module):
    """Logits of x + r d as a function of d, so that every row has its own radius r."""

    def __init__(self, network, X, radii):
        super().__init__()
        self.module = from_network(network)
        self.X, self.radii = torch.tensor(X), torch.tensor(radii)[:, None]

    def forward(self, d):
        z = self.module.logits(self.X + self.radii * d)
        return torch.hstack([torch.zeros_like(z), z]) if z.shape[1] == 1 else z


def projected_gradients(network, X, found, share):
    """Points at most at `share` of the radius, found by projected gradient ascent."""
    import foolbox

    model = foolbox.PyTorchModel(
        Around(network, X, found.radius).eval(), bounds=(-100, 100), device="cpu"
    )
    attack = foolbox.attacks.L2ProjectedGradientDescentAttack(steps=40, rel_stepsize=0.1)
    start = torch.zeros(X.shape, dtype=torch.float64)
    d = attack(model, start, torch.tensor(found.predicted), epsilons=[share])[1][0].numpy()
    lengths = np.linalg.norm(d, axis=1, keepdims=True)
    return X + found.radius[:, None] * d * np.minimum(1.0, share / np.maximum(lengths, 1e-300))


def boundary_attack(network, X, found, steps):
    """The nearest points of another class that the boundary attack finds, with pixels in [0, 1]."""
    import foolbox

    model = foolbox.PyTorchModel(
        Around(network, np.zeros_like(X), np.ones(len(X))).eval(), bounds=(0, 1), device="cpu"
    )
    attack = foolbox.attacks.BoundaryAttack(steps=steps)
    return attack(model, torch.tensor(X), torch.tensor(found.predicted), epsilons=None)[0].numpy()


def check(network, X, *, steps):
    torch.manual_seed(0)
    predict, found = network.predict, radius(network, X)
    kept = (found.radius / found.distance)[found.distance > 1e-3]
    assert kept.min() > 0.999
    assert (predict(projected_gradients(network, X, found, CLOSE)) == found.predicted).all()
    flipped = predict(projected_gradients(network, X, found, BEYOND)) != found.predicted
    assert flipped.mean() > 0.7  # the attack is strong
    reached = boundary_attack(network, X, found, steps)
    flips = predict(reached) != found.predicted
    assert flips.mean() > 0.9
    assert (np.linalg.norm(reached - X, axis=1)[flips] > CLOSE * found.radius[flips]).all()
    beyond = X + 1.001 * (found.nearest - X)
    assert (predict(beyond) != found.predicted).all()


@pytest.mark.slow
@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.full)])
def test_no_attack_on_digits_succeeds(count):
    X, y = load_digits(return_X_y=True)  # 1797 images; the others are copies with noise
    X /= 16
    model = QuadraticLogisticRegression().fit(X, y)
    noise = np.random.default_rng(0).normal(scale=0.05, size=(203, 64))
    images = np.vstack([X, (X[:203] + noise).clip(0, 1)])
    check(model.network_, images[:count], steps=200 if count < 100 else 1000)


@pytest.mark.full
def test_no_attack_on_mnist_succeeds():
    from benchmarks.certificates import digits_model

    try:
        mnist()
    except DatasetError as error:
        pytest.skip(str(error))
    network, X, _ = digits_model()
    check(network, X[:500], steps=1000)
