"""A bilinear block, given by its matrices, becomes one quadratic layer."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from quadric.convert import fold_bilinear
from tests.support.networks import largest_error

PARTS = ("W", "V", "out", "embed", "head")


def block(parts, residual, h):
    """The block, written as a researcher would."""
    apply = {
        name: lambda x, name=name: x @ parts[name].T + parts.get(f"bias {name}", 0.0)
        for name in PARTS
        if name in parts
    }
    h = apply["embed"](h) if "embed" in parts else h
    product = apply["W"](h) * apply["V"](h)
    y = apply["out"](product + h if residual == "before" else product)
    y = y + h if residual in (True, "after") else y
    return apply["head"](y) if "head" in parts else y


@given(
    st.sampled_from([False, True, "after", "before"]),
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(PARTS)),
    st.tuples(*[st.integers(1, 6)] * 5),
    st.integers(0, 2**32 - 1),
)
def test_blocks_with_every_combination_of_parts(residual, embeds, heads, biased, sizes, seed):
    n, d, m, k, c = sizes
    k = d if residual in (True, "after") else k
    m = d if residual == "before" else m
    rng = np.random.default_rng(seed)
    shapes = {"W": (m, d), "V": (m, d), "out": (k, m), "embed": (d, n), "head": (c, k)}
    left_out = {"embed": not embeds, "head": not heads}
    matrices = {
        name: rng.normal(size=shape) for name, shape in shapes.items() if not left_out.get(name)
    }
    biases = {name: rng.normal(size=len(matrices[name])) for name in biased & matrices.keys()}
    layer = fold_bilinear(**matrices, biases=biases, residual=residual)
    assert (layer.n_inputs, layer.n_outputs) == (n if embeds else d, c if heads else k)
    X = rng.normal(size=(20, layer.n_inputs))
    parts = matrices | {f"bias {name}": value for name, value in biases.items()}
    assert largest_error(layer.forward(X)[0], block(parts, residual, X)) <= 1e-12


def test_a_researchers_own_class_with_a_residual_connection():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Linear(9, 6), nn.Linear(6, 4)
            self.W, self.V = nn.Linear(6, 12, bias=False), nn.Linear(6, 12, bias=False)
            self.out = nn.Linear(12, 6)

        def forward(self, x):
            h = self.embed(x)
            return self.head(h + self.out(self.W(h) * self.V(h)))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, x = Block().double(), torch.randn(30, 9, dtype=torch.float64)
    names = {name: getattr(model, name) for name in PARTS}
    biases = {name: one.bias.detach() for name, one in names.items() if one.bias is not None}
    weights = {name: one.weight.detach() for name, one in names.items()}
    layer = fold_bilinear(**weights, biases=biases, residual=True)
    with torch.no_grad():
        assert largest_error(layer.forward(x.numpy())[0], model(x).numpy()) <= 1e-12


def test_wrong_arguments_are_refused():
    one = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"out must have 2 columns, one per row of W and V"):
        fold_bilinear(one, one, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"embed must have 3 rows, one per column of W and V"):
        fold_bilinear(one, one, np.ones((4, 2)), embed=one)
    with pytest.raises(ValueError, match=r"head must have 4 columns, one per row of out"):
        fold_bilinear(one, one, np.ones((4, 2)), head=one)
    with pytest.raises(ValueError, match=r"biases must name matrices that are given"):
        fold_bilinear(one, one, np.ones((4, 2)), biases={"embed": [1.0]})
    with pytest.raises(ValueError, match=r"residual must be True, False, 'after' or 'before'"):
        fold_bilinear(one, one, np.ones((4, 2)), residual="around")
    with pytest.raises(ValueError, match=r"adds h, with 3 entries, to the output of out, with 4"):
        fold_bilinear(one, one, np.ones((4, 2)), residual=True)
    with pytest.raises(ValueError, match=r"adds h, with 3 entries, to the product, with 2"):
        fold_bilinear(one, one, np.ones((4, 2)), residual="before")
