"""Torch layers against einsum, the core, finite differences, and torch's own tools."""

import copy
import io
import pickle
import shutil
import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

import quadric
from quadric import triangle
from quadric.initial_values import draw_layer
from quadric.torch import Linear, Quadratic, Reduced, choice, functional, layout
from quadric.torch.operator import _Transformable, quadratic_form

OF_TORCH = (choice.UNPACKED, choice.MONOMIALS)  # made of torch's operations
FORMS = (choice.COMPILED, *OF_TORCH)
# below a block, one block, a block and a row, several with a short last one
SIZES = [(1, 1), (3, 2), (128, 3), (129, 2), (300, 4)]


def tensors(*shapes, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 3 rows, so that small tensors have several."""
    monkeypatch.setattr(layout, "BLOCK", 3)
    monkeypatch.setattr("quadric.torch.operator.BLOCK", 3)
    layout._orders.cache_clear()
    yield
    layout._orders.cache_clear()


# -- the operator -----------------------------------------------------------------------------


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("B", [0, 1, 7])
def test_form_against_einsum(B, n, m, form, recompute):
    x, P, dz = tensors((B, n), (n * (n + 1) // 2, m), (B, m))
    z = quadratic_form(x, P, form=form, recompute=recompute)
    wanted = torch.einsum("bi,kij,bj->bk", x, layout.unpack(P), x)
    torch.testing.assert_close(z, wanted, rtol=1e-12, atol=1e-11)
    got = torch.autograd.grad(z, (x, P), dz)
    for ours, theirs in zip(got, torch.autograd.grad(wanted, (x, P), dz), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 3, 7])
def test_derivatives_of_every_order(small_blocks, n, form, recompute):
    def f(x, P):
        return quadratic_form(x, P, form=form, recompute=recompute)

    def gradient(x, P):
        return torch.autograd.grad(f(x, P).sin().sum(), (x, P), create_graph=True)

    inputs = tensors((2, n), (n * (n + 1) // 2, 2))
    assert gradcheck(f, inputs, check_batched_grad=True)
    assert gradgradcheck(f, inputs, check_batched_grad=True)
    assert gradgradcheck(gradient, inputs)  # third derivatives


@pytest.mark.parametrize("form", OF_TORCH)
@pytest.mark.parametrize("n", [1, 3, 7])
def test_derivatives_through_V(small_blocks, n, form, monkeypatch):
    """What torch.func and compilers use, with finite differences: V is a differentiable output."""
    monkeypatch.setattr("quadric.torch.operator.is_plain", lambda *tensors: False)
    inputs = tensors((2, n), (n * (n + 1) // 2, 2))

    def f(x, P):
        return quadratic_form(x, P, form=form)

    def outputs(x, P):
        return _Transformable.apply(x, P, form, True)

    assert gradcheck(f, inputs, check_batched_grad=True)
    assert gradgradcheck(f, inputs, check_batched_grad=True)
    assert gradcheck(outputs, inputs)  # z and every V
    assert gradgradcheck(outputs, inputs)


@pytest.mark.parametrize("form", FORMS)
def test_only_what_is_wanted(small_blocks, form):
    x, P, dz = tensors((4, 7), (28, 2), (4, 2))
    both = torch.autograd.grad(quadratic_form(x, P, form=form), (x, P), dz)
    only_x = torch.autograd.grad(quadratic_form(x, P.detach(), form=form), x, dz)
    only_P = torch.autograd.grad(quadratic_form(x.detach(), P, form=form), P, dz)
    assert torch.equal(both[0], only_x[0])
    assert torch.equal(both[1], only_P[0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recompute", [False, True])
def test_functional_transforms(small_blocks, form, recompute):
    X, P = (t.detach() for t in tensors((5, 3, 7), (28, 2)))

    def loss(x, P):
        return quadratic_form(x, P, form=form, recompute=recompute).tanh().sum()

    def plain_loss(x, P):
        return torch.einsum("bi,kij,bj->bk", x, layout.unpack(P), x).tanh().sum()

    for transform in (
        lambda f: vmap(f, (0, None))(X, P),
        lambda f: vmap(grad(f, argnums=(0, 1)), (0, None))(X, P),  # gradients of each sample
        lambda f: grad(f, argnums=(0, 1))(X[0], P),
        lambda f: jacrev(jacrev(f))(X[0], P),
        lambda f: vmap(jacrev(f, argnums=1), (0, None))(X, P),
        lambda f: vmap(f, (None, 0))(X[0], torch.stack([P, 2 * P])),
    ):
        torch.testing.assert_close(transform(loss), transform(plain_loss), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_forward_mode_is_refused():
    x, P = (t.detach() for t in tensors((2, 3), (6, 2)))
    with pytest.raises(RuntimeError, match="jvp"):
        torch.func.jvp(lambda x: quadratic_form(x, P), (x,), (x,))


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_kept_when_recomputing(form):
    x, P = tensors((9, 140), (140 * 141 // 2, 3))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t.numel()) or t, lambda t: t
    ):
        quadratic_form(x, P, form=form, recompute=True)
    assert sorted(saved) == sorted([x.numel(), P.numel()])
    saved.clear()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t.numel()) or t, lambda t: t
    ):
        quadratic_form(x, P, form=form)
    assert sum(saved) > x.numel() + P.numel()


# -- the layout -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 256, 300])
def test_layout_round_trip(n):
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(3, n, n))
    Q = Q + Q.transpose(0, 2, 1)
    rows = torch.from_numpy(triangle.pack(Q))
    packed = layout.pack(rows)
    assert packed.shape == (n * (n + 1) // 2, 3)
    assert torch.equal(layout.to_triangle(packed), rows)
    assert torch.equal(layout.unpack(packed), torch.from_numpy(Q))
    assert torch.equal(packed[layout.diagonal(n)].T, torch.from_numpy(Q).diagonal(dim1=1, dim2=2))


def test_packed_rows_must_be_a_triangle():
    with pytest.raises(ValueError, match=r"n\(n\+1\)/2 rows for some n. Got 5"):
        functional.quadratic(torch.zeros(1, 2), torch.zeros(5, 1))


# -- the modules ------------------------------------------------------------------------------

MODULES = {
    "quadratic": lambda **f: Quadratic(5, 3, **f),
    "no bias": lambda **f: Quadratic(5, 3, bias=False, **f),
    "no linear": lambda **f: Quadratic(5, 3, linear=False, **f),
    "neither": lambda **f: Quadratic(5, 3, bias=False, linear=False, **f),
    "recomputed": lambda **f: Quadratic(5, 3, recompute=True, **f),
    "monomials": lambda **f: Quadratic(3, 50, **f),
    "blocks": lambda **f: Quadratic(130, 2, **f),
    "blocks, monomials": lambda **f: Quadratic(130, 64, **f),
    "reduced": lambda **f: Reduced(5, 3, **f),
    "reduced, no bias": lambda **f: Reduced(5, 3, bias=False, **f),
    "linear": lambda **f: Linear(5, 3, **f),
    "linear, no bias": lambda **f: Linear(5, 3, bias=False, **f),
}
SMALL = [name for name in MODULES if "blocks" not in name]


def module(name, dtype=torch.float64):
    torch.manual_seed(0)
    made = MODULES[name](dtype=dtype)
    with torch.no_grad():
        for p in made.parameters():
            p.normal_()
    return made


def with_inputs(layer, *shape, dtype=torch.float64):
    torch.manual_seed(1)
    return torch.randn(*shape, layer.in_features, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("name", SMALL)
def test_module_gradients(name):
    layer = module(name)
    names = [n for n, _ in layer.named_parameters()]

    def f(x, *parameters):
        return functional_call(layer, dict(zip(names, parameters, strict=True)), x)

    inputs = (with_inputs(layer, 2), *layer.parameters())
    assert gradcheck(f, inputs, check_batched_grad=True)
    assert gradgradcheck(f, inputs, check_batched_grad=True, fast_mode=name == "monomials")


@pytest.mark.parametrize("name", MODULES)
def test_against_the_core(name):
    layer = module(name)
    n, m = layer.in_features, layer.out_features
    zeros = {"W": (m, n), "b": (m,), "c": (m,)}
    held = {k: v.numpy() for k, v in layer.state_dict().items()}
    fields = quadric.layers.LAYERS[layer.kind].fields
    core = quadric.layers.LAYERS[layer.kind].from_packed(
        {k: held[k] if k in held else np.zeros(zeros[k]) for k in fields}
    )
    x = with_inputs(layer, 6)
    delta = torch.randn(6, m, dtype=torch.float64)
    z, cache = core.forward(x.detach().numpy())
    grads, dX = core.backward(delta.numpy(), cache)
    ours = layer(x)
    ours.backward(delta)
    np.testing.assert_allclose(ours.detach(), z, rtol=1e-12, atol=1e-12 * abs(z).max())
    np.testing.assert_allclose(x.grad, dX, rtol=1e-12, atol=1e-12 * abs(dX).max())
    gradients = {n: p.grad for n, p in layer.named_parameters()}
    if "packed" in gradients:
        gradients["Q"] = layout.to_triangle(gradients.pop("packed"))
    for key, gradient in gradients.items():
        wanted = grads.packed()[key]
        np.testing.assert_allclose(gradient, wanted, rtol=1e-12, atol=1e-12 * abs(wanted).max())


@pytest.mark.parametrize("name", MODULES)
def test_leading_dimensions(name):
    layer = module(name)
    x = with_inputs(layer, 2, 3)
    z = layer(x)
    assert z.shape == (2, 3, layer.out_features)
    torch.testing.assert_close(z[1, 2], layer(x[1, 2]), rtol=1e-12, atol=1e-10)
    empty = layer(x[:0])
    assert empty.shape == (0, 3, layer.out_features)
    empty.sum().backward()
    assert all(not p.grad.any() for p in layer.parameters())
    swapped = x.transpose(0, 1)  # not contiguous
    torch.testing.assert_close(layer(swapped), z.transpose(0, 1), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("name", MODULES)
def test_copies_pickles_and_files(name):
    layer = module(name)
    x = with_inputs(layer, 4)
    z = layer(x)
    assert torch.equal(copy.deepcopy(layer)(x), z)
    assert torch.equal(pickle.loads(pickle.dumps(layer))(x), z)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    held = torch.load(file, weights_only=True)
    for assign in (False, True):
        other = MODULES[name](dtype=torch.float64)
        assert not torch.equal(other(x), z)
        other.load_state_dict(held, assign=assign)
        assert torch.equal(other(x), z)
        assert all(p.requires_grad for p in other.parameters())


def test_state_dict_is_the_row_triangle():
    layer = module("blocks")
    held = torch.nn.Sequential(layer).state_dict()
    assert {k: tuple(v.shape) for k, v in held.items()} == {
        "0.Q": (2, 130 * 131 // 2), "0.W": (2, 130), "0.b": (2,),
    }  # fmt: skip
    np.testing.assert_array_equal(held["0.Q"], triangle.pack(layer.Q.detach().numpy()))


def test_loading_what_does_not_fit():
    layer = Quadratic(5, 3)
    good = layer.state_dict()
    with pytest.raises(RuntimeError, match=r'Missing key.*"Q"'):
        layer.load_state_dict({k: v for k, v in good.items() if k != "Q"})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"packed"'):
        layer.load_state_dict(good | {"packed": layer.packed.clone()})
    before = layer.packed.clone()
    with pytest.raises(RuntimeError, match=r"size mismatch for Q: .*\(3, 10\).*\(3, 15\)"):
        layer.load_state_dict(good | {"Q": torch.ones(3, 10)})
    assert torch.equal(layer.packed, before)
    result = layer.load_state_dict({"W": good["W"]}, strict=False)
    assert set(result.missing_keys) == {"Q", "b"}


def test_Q_is_symmetric_differentiable_and_assignable():
    layer = module("blocks")
    Q = layer.Q
    assert Q.shape == (2, 130, 130)
    assert torch.equal(Q, Q.transpose(1, 2))
    Q.sum().backward()
    assert layer.packed.grad.sum() == 2 * 130 * 130
    new = torch.randn(2, 130, 130, dtype=torch.float64)
    layer.Q = new
    torch.testing.assert_close(layer.Q.detach(), (new + new.transpose(1, 2)) / 2)
    with pytest.raises(ValueError, match=r"Q must have shape \(2, 130, 130\). Got \(130, 130\)"):
        layer.Q = new[0]


def test_counts_of_parameters():
    quadratic, bilinear = Quadratic(200, 7), torch.nn.Bilinear(200, 200, 7)
    assert sum(p.numel() for p in quadratic.parameters()) == 7 * (200 * 201 // 2 + 200 + 1)
    assert quadratic.packed.numel() < 0.503 * bilinear.weight.numel()
    assert sum(p.numel() for p in Reduced(200, 7).parameters()) == 7 * (2 * 200 + 2)
    optimizer = torch.optim.Adam(quadratic.parameters())
    quadratic(torch.randn(3, 200)).sum().backward()
    optimizer.step()
    state = sum(t.numel() for s in optimizer.state.values() for t in s.values() if t.numel() > 1)
    assert state == 2 * sum(p.numel() for p in quadratic.parameters())


def test_repr():
    assert repr(Quadratic(4, 2)) == (
        "Quadratic(in_features=4, out_features=2, bias=True, linear=True)"
    )
    assert repr(Reduced(4, 2, bias=False)) == "Reduced(in_features=4, out_features=2, bias=False)"


# -- initial values ---------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["glorot", "normal", "identity", "relinear"])
@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
def test_initial_values_are_those_of_the_core(kind, init):
    n, m = 80, 120
    layer = {"linear": Linear, "quadratic": Quadratic, "reduced": Reduced}[kind](n, m)
    layer.reset_parameters(init, generator=torch.Generator().manual_seed(3))
    drawn = draw_layer(kind, n, m, init=init, rng=np.random.default_rng(0), dtype=np.dtype("f4"))
    for name, wanted in drawn.arrays().items():
        ours = getattr(layer, name).detach().numpy()
        spread = float(wanted.std())
        bound = 5 * spread / np.sqrt(wanted.size)  # five standard errors of a mean
        assert float(ours.mean()) == pytest.approx(float(wanted.mean()), abs=2 * bound + 1e-12)
        assert float(ours.std()) == pytest.approx(spread, rel=0.2)
        if name == "Q":
            diagonals = [np.einsum("kii->ki", array) for array in (ours, wanted)]
            assert float(diagonals[0].std()) == pytest.approx(float(diagonals[1].std()), rel=0.1)


def test_without_W_the_variance_is_kept_too():
    torch.manual_seed(0)
    x = torch.randn(2000, 100)
    for layer in (Quadratic(100, 60), Quadratic(100, 60, linear=False), Reduced(100, 60)):
        assert layer(x).var().item() == pytest.approx(1, abs=0.1)


def test_initial_values_by_seed():
    def drawn(seed):
        layer = Quadratic(6, 2)
        layer.reset_parameters(generator=torch.Generator().manual_seed(seed))
        return layer.packed

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    torch.manual_seed(5)
    one = Quadratic(6, 2)
    torch.manual_seed(5)
    assert torch.equal(Quadratic(6, 2).packed, one.packed)


# -- torch's own machinery --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["quadratic", "blocks", "blocks, monomials", "reduced", "linear"])
def test_autocast(name, dtype):
    layer = module(name, dtype=torch.float32)
    with torch.no_grad():
        for p in layer.parameters():
            p.mul_(0.1)
    x = with_inputs(layer, 8, dtype=torch.float32)
    exact = layer(x)
    with torch.autocast("cpu", dtype):
        z = layer(x)
    assert z.dtype == dtype
    z.sum().backward()
    assert x.grad.dtype == torch.float32
    assert all(p.grad.dtype == torch.float32 for p in layer.parameters())
    scale = exact.detach().abs().max()
    torch.testing.assert_close(z.float(), exact, rtol=0, atol=0.03 * scale.item())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_parameters(dtype):
    layer = Quadratic(66, 3, dtype=dtype)
    z = layer(torch.randn(4, 66, dtype=dtype))
    z.sum().backward()
    assert z.dtype == layer.packed.grad.dtype == dtype


def test_large_inputs_in_float16():
    layer = Quadratic(4, 60, dtype=torch.float16)
    with torch.no_grad():
        layer.packed.zero_()
    assert torch.isfinite(layer(torch.full((1, 4), 300.0, dtype=torch.float16))).all()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize(
    "name", ["quadratic", "recomputed", "blocks", "blocks, monomials", "reduced"]
)
def test_compile(name):
    torch._dynamo.reset()
    layer = module(name)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = with_inputs(layer, 4)
    delta = torch.randn(4, layer.out_features, dtype=torch.float64)
    inputs = (x, *layer.parameters())
    wanted = torch.autograd.grad(layer(x), inputs, delta)
    z = compiled(x)
    torch.testing.assert_close(z, layer(x), rtol=1e-12, atol=1e-10)
    for ours, theirs in zip(torch.autograd.grad(z, inputs, delta), wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compile_to_machine_code():
    torch._dynamo.reset()
    layer = module("blocks")
    x = with_inputs(layer, 4)
    z = torch.compile(layer, fullgraph=True)(x)
    z.sum().backward()
    gradient = layer.packed.grad.clone()
    layer.zero_grad()
    layer(x).sum().backward()
    torch.testing.assert_close(z, layer(x), rtol=1e-11, atol=1e-10)
    torch.testing.assert_close(gradient, layer.packed.grad, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["quadratic", "blocks", "blocks, monomials", "reduced"])
def test_export(name, strict):
    layer = module(name)
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of its tracing
        program = torch.export.export(
            layer, (with_inputs(layer, 4),), dynamic_shapes=({0: batch},), strict=strict
        )
    x = with_inputs(layer, 9)
    torch.testing.assert_close(program.module()(x), layer(x), rtol=1e-12, atol=1e-10)


def test_an_ensemble_by_vmap():
    layers = [Quadratic(140, 3, dtype=torch.float64) for _ in range(4)]
    parameters, buffers = stack_module_state(layers)
    x = torch.randn(5, 140, dtype=torch.float64)

    def call(p, b):
        return functional_call(layers[0], (p, b), (x,))

    together = vmap(call)(parameters, buffers)
    for z, layer in zip(together, layers, strict=True):
        torch.testing.assert_close(z, layer(x), rtol=1e-12, atol=1e-10)


def test_meta_device_and_fake_tensors():
    from torch._subclasses import FakeTensorMode

    with torch.device("meta"):
        layer = Quadratic(140, 3)
        assert layer(torch.empty(4, 140)).shape == (4, 3)
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    assert torch.isfinite(layer(torch.ones(1, 140))).all()
    layout._cache.clear()
    with FakeTensorMode():
        assert Quadratic(67, 2)(torch.empty(4, 67)).shape == (4, 2)
    real = Quadratic(67, 2)(torch.ones(4, 67))  # nothing fake was kept
    assert type(real) is torch.Tensor


def test_inference_mode_first():
    layout._cache.clear()
    layer = Quadratic(9, 2)
    with torch.inference_mode():
        layer(torch.ones(1, 9))
    layer(torch.ones(1, 9)).sum().backward()  # no index tensor of inference mode was kept
    assert layer.packed.grad is not None


@pytest.mark.filterwarnings("ignore")  # torch's profiler
@pytest.mark.parametrize("shape", [(128, 32, 10), (128, 64, 64), (256, 128, 128), (1024, 64, 10)])
def test_peak_memory_is_below_that_of_einsum(shape):
    from benchmarks.torch_layers import peak_megabytes

    ours, theirs = (peak_megabytes(*shape, name) for name in ("quadric", "einsum"))
    assert 0 < ours <= theirs


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [Quadratic(4, 2), Reduced(4, 2)])
def test_errors_of_shape_and_dtype(layer):
    with pytest.raises(RuntimeError, match=r"shape \(\.\.\., 4\).*Got \(3, 5\) instead"):
        layer(torch.zeros(3, 5))
    with pytest.raises(RuntimeError, match=r"shape \(\.\.\., 4\).*Got \(\) instead"):
        layer(torch.zeros(()))
    with pytest.raises(RuntimeError, match=r"same dtype. Got torch.float64 and torch.float32"):
        layer(torch.zeros(3, 4, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"same dtype. Got torch.int64"):
        layer(torch.zeros(3, 4, dtype=torch.int64))
    with pytest.raises(RuntimeError, match=r"same device. Got meta and cpu"):
        layer(torch.zeros(3, 4, device="meta"))
    with pytest.raises(TypeError, match=r"x must be a torch.Tensor. Got list"):
        layer([[1.0, 2.0, 3.0, 4.0]])


def test_errors_of_construction():
    with pytest.raises(ValueError, match="in_features"):
        Quadratic(0, 3)
    with pytest.raises((TypeError, ValueError), match="out_features"):
        Reduced(3, 2.5)
    with pytest.raises(ValueError, match="init must be one of"):
        Quadratic(3, 2).reset_parameters("nonsense")
    with pytest.raises(ValueError, match=r"relinear.*bias=True"):
        Reduced(3, 2, bias=False).reset_parameters("relinear")


def test_functional_shapes():
    x, Q = torch.zeros(2, 3), torch.zeros(6, 4)
    assert functional.quadratic(x, Q, None, torch.ones(4)).eq(1).all()
    with pytest.raises(RuntimeError, match=r"expected W of shape \(4, 3\). Got \(3, 4\)"):
        functional.quadratic(x, Q, torch.zeros(3, 4))
    with pytest.raises(RuntimeError, match=r"expected c of shape \(4,\). Got \(3,\)"):
        functional.reduced(x, torch.zeros(4, 3), None, torch.zeros(4, 3), torch.zeros(3))
