"""Residual connections as part of a layer."""

import numpy as np
import pytest

from quadric import Network
from quadric.convert import add_residual, fold
from quadric.torch import Quadratic, Reduced


@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
def test_residual_blocks_are_folded(kind):
    layers = [("linear", 6, "identity"), (kind, 6, "identity"), ("linear", 3, "softmax")]
    first, inner, last = Network.create(4, layers, init="normal", scale=1.0, rng=0).layers
    folded = fold(Network([first, add_residual(inner), last], ["identity", "identity", "softmax"]))
    assert len(folded.layers) == 1
    X = np.random.default_rng(0).normal(size=(20, 4))
    h = first.forward(X)[0]
    wanted = last.forward(inner.forward(h)[0] + h)[0]
    np.testing.assert_allclose(folded.logits(X), wanted, rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match=r"requires as many neurons as inputs.*Linear\(4 -> 6"):
        add_residual(first)


torch = pytest.importorskip("torch", reason="needs PyTorch")
nn = torch.nn


class Block(nn.Module):
    """A bilinear block with a residual connection, as a researcher would write it."""

    def __init__(self, d, m, scale=1.0):
        super().__init__()
        self.left, self.right, self.out = nn.Linear(d, m), nn.Linear(d, m), nn.Linear(m, d)
        self.scale = scale

    def forward(self, x):
        return x + self.scale * self.out(self.left(x) * self.right(x))


class Both(nn.Module):
    """The sum or difference of two modules; `None` stands for the input."""

    def __init__(self, sign, first, second):
        super().__init__()
        self.sign, self.first, self.second = sign, first, second

    def forward(self, x):
        a = self.first(x)
        b = x if self.second is None else self.second(x)
        return a + b if self.sign > 0 else torch.sub(b, a) / 2


MODULES = {
    "block": lambda: nn.Sequential(nn.Linear(5, 4), Block(4, 6), nn.Linear(4, 3)),
    "scaled": lambda: nn.Sequential(Block(4, 6, scale=0.5), nn.Linear(4, 3)),
    "quadratic": lambda: Both(1, Quadratic(4, 4), None),
    "reduced": lambda: Both(-1, Reduced(4, 4), None),
    "two": lambda: Both(-1, Quadratic(4, 3), nn.Sequential(nn.Linear(4, 6), Reduced(6, 3))),
    "after an activation": lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), Block(4, 2)),
    "before an activation": lambda: nn.Sequential(Block(4, 2), nn.Tanh(), nn.Linear(4, 2)),
    "two layers": lambda: nn.Sequential(nn.Linear(3, 4), Block(4, 2), Block(4, 3), nn.Linear(4, 2)),
    "linear": lambda: Both(1, nn.Linear(4, 4), None),
    "dropout": lambda: nn.Sequential(nn.Dropout(), Both(1, Quadratic(4, 4), nn.Identity())),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_modules_with_residual_connections_are_folded(name, dtype):
    torch.manual_seed(0)
    module = MODULES[name]().to(dtype).eval()
    folded = fold(module)
    X = np.random.default_rng(0).normal(size=(20, folded.n_inputs))
    with torch.no_grad():
        wanted = module.double()(torch.from_numpy(X)).numpy()
    assert len(folded.layers) == 1 + ("activation" in name or "layers" in name)
    np.testing.assert_allclose(folded.forward(X), wanted, rtol=1e-11, atol=1e-11)


class Functions(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.one, self.two, self.last = nn.Linear(4, 5), Quadratic(5, 3), last

    def forward(self, x):
        return self.last(self.two(torch.tanh(self.one(x))))


def test_activations_may_be_functions():
    torch.manual_seed(0)
    module = Functions(lambda z: torch.softmax(z, dim=-1)).double()
    folded = fold(module)
    assert folded.activations == ("tanh", "softmax")
    X = torch.randn(9, 4, dtype=torch.float64)
    np.testing.assert_allclose(folded.forward(X.numpy()), module(X).detach().numpy(), rtol=1e-12)


class Past(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return x + self.two(torch.relu(self.one(x)))


class InPlace(Past):
    """`x += ...`; with `twice`, the changed tensor is used under its first name as well."""

    def __init__(self, twice):
        super().__init__()
        self.twice = twice

    def forward(self, x):
        x = self.one(x)
        before = x
        x += self.two(x)
        return x + before if self.twice else x


def test_a_tensor_that_is_changed_in_place():
    torch.manual_seed(0)
    module, X = InPlace(twice=False).double(), torch.randn(9, 4, dtype=torch.float64)
    with torch.no_grad():
        np.testing.assert_allclose(fold(module).forward(X.numpy()), module(X).numpy(), rtol=1e-10)
    with pytest.raises(ValueError, match="does not record all"):
        fold(InPlace(twice=True))


class Branching(Past):
    def forward(self, x):
        return self.one(x) if x.sum() > 0 else self.two(x)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: Both(1, nn.Sequential(Quadratic(4, 4), Quadratic(4, 4)), None), "higher degree"),
        (Past, "a connection past an activation"),
        (Branching, "torch.fx cannot record what this Branching computes"),
        (lambda: Functions(torch.exp), r"exp.* is not supported: fold supports layers, sums"),
        (lambda: Functions(nn.LayerNorm(3)), "the LayerNorm at 'last' is not supported"),
        (lambda: Both(1, nn.Linear(4, 3), nn.Linear(4, 2)), "same size. Got 3 and 2"),
    ],
)
def test_other_modules_are_refused_by_name(module, message):
    with pytest.raises(ValueError, match=message):
        fold(module())
