"""Torch layers agree with einsum, the core and finite differences, and support torch's tools."""

import copy
import io
import pickle
import shutil
import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vmap

import quadric
from quadric.core import _quadratic_form as core
from quadric.core._initial_values import draw_layers
from quadric.torch import Linear, Quadratic, Reduced, _quadratic_form as loops, functional
from quadric.torch._quadratic_form import _kept_places, places, quadratic_form
from quadric.torch.functional import pack, unpack

# one input, one group of rows, one block of 128 inputs, a block and a row, and several blocks
SIZES = [(1, 1), (3, 2), (128, 3), (129, 2), (300, 4)]
WAYS = pytest.mark.parametrize("way", ["loops", "operations"], indirect=True)


@pytest.fixture
def way(request, monkeypatch):
    """Compute with the compiled loops or with torch operations."""
    if request.param == "operations":
        monkeypatch.setattr(loops, "for_loops", lambda *tensors: None)
    else:
        assert loops.for_loops(torch.ones(1, 1)) is not None
    return request.param


def tensors(*shapes, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


# ---- the operator --------------------------------------------------------------------------


def on_diagonal(n):
    """Return the packed rows with the entries on the diagonal."""
    i, j = np.triu_indices(n)
    return i == j


def by_einsum(x, P):
    return torch.einsum("bi,kij,bj->bk", x, unpack(P), x)


@WAYS
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("B", [0, 1, 7])
def test_quadratic_form_matches_einsum(B, n, m, way):
    x, P, dz = tensors((B, n), (n * (n + 1) // 2, m), (B, m))
    z, wanted = quadratic_form(x, P), by_einsum(x, P)
    torch.testing.assert_close(z, wanted, rtol=1e-12, atol=1e-11)
    got = torch.autograd.grad(z, (x, P), dz)
    for ours, theirs in zip(got, torch.autograd.grad(wanted, (x, P), dz), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@WAYS
@pytest.mark.parametrize("n", [1, 3, 7])
def test_derivatives_up_to_the_third_match_differences(n, way):
    def gradient(x, P):
        return torch.autograd.grad(quadratic_form(x, P).sin().sum(), (x, P), create_graph=True)

    inputs = tensors((2, n), (n * (n + 1) // 2, 2))
    modes = {"check_forward_ad": True, "check_batched_grad": True}
    assert gradcheck(quadratic_form, inputs, **modes, check_batched_forward_grad=True)
    assert gradgradcheck(quadratic_form, inputs, check_batched_grad=True)
    assert gradgradcheck(gradient, inputs)  # third derivatives


@WAYS
def test_only_the_gradients_that_are_needed_are_computed(way):
    x, P, dz = tensors((4, 7), (28, 2), (4, 2))
    both = torch.autograd.grad(quadratic_form(x, P), (x, P), dz)
    only_x = torch.autograd.grad(quadratic_form(x, P.detach()), x, dz)
    only_P = torch.autograd.grad(quadratic_form(x.detach(), P), P, dz)
    assert torch.equal(both[0], only_x[0])
    assert torch.equal(both[1], only_P[0])


X_AND_P = [t.detach() for t in tensors((5, 3, 7), (28, 2), seed=1)]
TRANSFORMS = {
    "vmap": lambda f, X, P: vmap(f, (0, None))(X, P),
    "gradients of each sample": lambda f, X, P: vmap(grad(f, argnums=(0, 1)), (0, None))(X, P),
    "grad": lambda f, X, P: grad(f, argnums=(0, 1))(X[0], P),
    "Hessian, backward twice": lambda f, X, P: jacrev(jacrev(f))(X[0], P),
    "Hessian, forward over backward": lambda f, X, P: hessian(f, argnums=(0, 1))(X[0], P),
    "Jacobian by x, forward": lambda f, X, P: jacfwd(f)(X[0], P),
    "Jacobian by P, forward": lambda f, X, P: jacfwd(f, argnums=1)(X[0], P),
    "jvp": lambda f, X, P: jvp(f, (X[0], P), (X[1], 2 * P)),
    "jvp of each sample": lambda f, X, P: vmap(lambda x: jvp(f, (x, P), (x, P)))(X),
    "third derivatives, mixed": lambda f, X, P: jacfwd(jacrev(grad(f)))(X[0], P),
    "vmap of jacrev": lambda f, X, P: vmap(jacrev(f, argnums=1), (0, None))(X, P),
    "vmap over P": lambda f, X, P: vmap(f, (None, 0))(X[0], torch.stack([P, 2 * P])),
    "vmap twice": lambda f, X, P: vmap(vmap(f, (None, 0)), (0, None))(X, torch.stack([P, 2 * P])),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_functional_transforms_match_einsum(transform):
    apply = TRANSFORMS[transform]
    found = apply(lambda x, P: quadratic_form(x, P).tanh().sum(), *X_AND_P)
    wanted = apply(lambda x, P: by_einsum(x, P).tanh().sum(), *X_AND_P)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@WAYS
def test_only_x_and_packed_are_saved_for_backward(way):
    x, P = tensors((9, 140), (140 * 141 // 2, 3))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t.data_ptr()) or t, lambda t: t
    ):
        quadratic_form(x, P)
    assert saved == [x.data_ptr(), P.data_ptr()]


# ---- the layout ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
def test_layout_matches_the_core(n):
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(3, n, n))
    Q = Q + Q.transpose(0, 2, 1)
    packed = torch.from_numpy(core.pack(Q))
    Q = torch.from_numpy(Q)
    assert packed.shape == (n * (n + 1) // 2, 3)
    assert torch.equal(pack(Q), packed)
    assert pack(Q).is_contiguous()
    assert torch.equal(unpack(packed), Q)
    assert torch.equal(packed[on_diagonal(n)].T, Q.diagonal(dim1=1, dim2=2))
    assert torch.equal(packed[places(n, packed.device)].reshape(n, n, 3), Q.permute(1, 2, 0))


def test_packed_rows_must_be_a_triangle():
    with pytest.raises(RuntimeError, match=r"expected packed of shape \(6, 1\). Got \(5, 1\)"):
        functional.quadratic(torch.zeros(1, 3), torch.zeros(5, 1))
    with pytest.raises(RuntimeError, match=r"shape \(n\(n\+1\)/2, m\). Got \(6, 1, 1\) instead"):
        functional.quadratic(torch.zeros(1, 3), torch.zeros(6, 1, 1))
    with pytest.raises(RuntimeError, match=r"shape \(\.\.\., 0\).*Got \(1, 3\) instead"):
        functional.quadratic(torch.zeros(1, 3), torch.zeros(0, 2))
    with pytest.raises(RuntimeError, match=r"shape \(\.\.\., 0\).*Got \(\) instead"):
        functional.quadratic(torch.zeros(()), torch.zeros(0, 2))
    with pytest.raises(RuntimeError, match=r"same dtype. Got torch.float64 and torch.float32"):
        functional.quadratic(torch.zeros(1, 3, dtype=torch.float64), torch.zeros(6, 1))
    with pytest.raises(ValueError, match=r"n\(n\+1\)/2 rows for some n. Got 5"):
        functional.unpack(torch.zeros(5, 1))


# ---- the modules ---------------------------------------------------------------------------

MODULES = {
    "quadratic": lambda **f: Quadratic(5, 3, **f),
    "no bias": lambda **f: Quadratic(5, 3, bias=False, **f),
    "no linear": lambda **f: Quadratic(5, 3, linear=False, **f),
    "neither": lambda **f: Quadratic(5, 3, bias=False, linear=False, **f),
    "many neurons": lambda **f: Quadratic(3, 50, **f),
    "wide": lambda **f: Quadratic(130, 2, **f),
    "wide, many neurons": lambda **f: Quadratic(130, 64, **f),
    "reduced": lambda **f: Reduced(5, 3, **f),
    "reduced, no bias": lambda **f: Reduced(5, 3, bias=False, **f),
    "linear": lambda **f: Linear(5, 3, **f),
    "linear, no bias": lambda **f: Linear(5, 3, bias=False, **f),
}
SMALL = [name for name in MODULES if "wide" not in name]


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


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("name", SMALL)
def test_gradients_of_the_modules_match_differences(name, way):
    layer = module(name)
    names = [n for n, _ in layer.named_parameters()]

    def f(x, *parameters):
        return functional_call(layer, dict(zip(names, parameters, strict=True)), x)

    inputs = (with_inputs(layer, 2), *layer.parameters())
    assert gradcheck(f, inputs, check_batched_grad=True)
    assert gradgradcheck(f, inputs, check_batched_grad=True, fast_mode=name == "many neurons")


@WAYS
@pytest.mark.parametrize("name", MODULES)
def test_the_modules_match_the_core(name, way):
    layer = module(name)
    n, m = layer.in_features, layer.out_features
    kind = quadric.core._layers.LAYERS[layer.kind]
    held = {key: tensor.numpy() for key, tensor in layer.state_dict().items()}
    core = kind.of(
        **{key: held.get(key, np.zeros(shape)) for key, shape in kind.shapes(n, m).items()}
    )
    x = with_inputs(layer, 6)
    delta = torch.randn(6, m, dtype=torch.float64)
    z, cache = core.forward(x.detach().numpy())
    grads, dX = core.backward(delta.numpy(), cache)
    ours = layer(x)
    ours.backward(delta)
    np.testing.assert_allclose(ours.detach(), z, rtol=1e-12, atol=1e-12 * abs(z).max())
    np.testing.assert_allclose(x.grad, dX, rtol=1e-12, atol=1e-12 * abs(dX).max())
    for key, parameter in layer.named_parameters():
        wanted = grads.arrays()[key]
        np.testing.assert_allclose(
            parameter.grad, wanted, rtol=1e-12, atol=1e-12 * abs(wanted).max()
        )


@WAYS
@pytest.mark.parametrize("name", MODULES)
def test_leading_dimensions_are_kept(name, way):
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
def test_copies_pickles_and_files_keep_the_numbers(name):
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


def test_state_dict_holds_the_parameters_themselves():
    layer = module("wide")
    held = torch.nn.Sequential(layer).state_dict()
    assert {k: tuple(v.shape) for k, v in held.items()} == {
        "0.packed": (130 * 131 // 2, 2),
        "0.W": (2, 130),
        "0.b": (2,),
    }
    np.testing.assert_array_equal(held["0.packed"], core.pack(layer.Q.detach().numpy()))
    held["0.packed"].zero_()
    assert not layer.packed.any()


def test_loading_parameters_of_another_shape_raises():
    layer = Quadratic(5, 3)
    good = layer.state_dict()
    with pytest.raises(RuntimeError, match=r'Missing key.*"packed"'):
        layer.load_state_dict({k: v for k, v in good.items() if k != "packed"})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"Q"'):
        layer.load_state_dict(good | {"Q": layer.Q})
    before = layer.packed.clone()
    with pytest.raises(RuntimeError, match=r"size mismatch for packed: .*\[10, 3\].*\[15, 3\]"):
        layer.load_state_dict(good | {"packed": torch.ones(10, 3)})
    assert torch.equal(layer.packed, before)
    result = layer.load_state_dict({"W": good["W"]}, strict=False)
    assert set(result.missing_keys) == {"packed", "b"}


def test_Q_is_symmetric_differentiable_and_assignable():
    layer = module("wide")
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


def test_the_number_of_parameters():
    quadratic, bilinear = Quadratic(200, 7), torch.nn.Bilinear(200, 200, 7)
    assert sum(p.numel() for p in quadratic.parameters()) == 7 * (200 * 201 // 2 + 200 + 1)
    assert quadratic.packed.numel() < 0.503 * bilinear.weight.numel()
    assert sum(p.numel() for p in Reduced(200, 7).parameters()) == 7 * (2 * 200 + 2)
    optimizer = torch.optim.Adam(quadratic.parameters())
    quadratic(torch.randn(3, 200)).sum().backward()
    optimizer.step()
    state = sum(t.numel() for s in optimizer.state.values() for t in s.values() if t.numel() > 1)
    assert state == 2 * sum(p.numel() for p in quadratic.parameters())


def test_the_representation_shows_sizes_and_options():
    assert repr(Quadratic(4, 2)) == (
        "Quadratic(in_features=4, out_features=2, bias=True, linear=True)"
    )
    assert repr(Reduced(4, 2, bias=False)) == "Reduced(in_features=4, out_features=2, bias=False)"


# ---- initial values ------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["glorot", "normal", "identity", "relinear"])
@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
def test_initial_values_match_the_core(kind, init):
    n, m = 80, 120
    layer = {"linear": Linear, "quadratic": Quadratic, "reduced": Reduced}[kind](n, m)
    layer.reset_parameters(init, generator=torch.Generator().manual_seed(3))
    rng, dtype = np.random.default_rng(0), np.dtype("f4")
    (drawn,) = draw_layers(n, [(kind, m)], init=init, rng=rng, dtype=dtype)
    for name, wanted in drawn.arrays().items():
        ours = getattr(layer, name).detach().numpy()
        spread = float(wanted.std())
        bound = 5 * spread / np.sqrt(wanted.size)  # five standard errors of a mean
        assert float(ours.mean()) == pytest.approx(float(wanted.mean()), abs=2 * bound + 1e-12)
        assert float(ours.std()) == pytest.approx(spread, rel=0.2)
        if name == "packed":
            diagonals = [array[on_diagonal(n)] for array in (ours, wanted)]
            assert float(diagonals[0].std()) == pytest.approx(float(diagonals[1].std()), rel=0.1)


def test_the_variance_is_also_kept_without_W():
    torch.manual_seed(0)
    x = torch.randn(2000, 100)
    for layer in (Quadratic(100, 60), Quadratic(100, 60, linear=False), Reduced(100, 60)):
        assert layer(x).var().item() == pytest.approx(1, abs=0.1)


def test_initial_values_follow_the_generator():
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


# ---- torch's tools -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["quadratic", "wide", "wide, many neurons", "reduced", "linear"])
def test_autocast_computes_in_half_precision(name, dtype):
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
def test_half_precision_values_and_gradients_are_close(dtype):
    layer = Quadratic(66, 3, dtype=dtype)
    x = torch.randn(4, 66, dtype=dtype)
    z = layer(x)
    z.sum().backward()
    assert z.dtype == layer.packed.grad.dtype == dtype
    exact = copy.deepcopy(layer).double()
    wanted = exact(x.double())
    wanted.sum().backward()
    for ours, true in ((z, wanted), (layer.packed.grad, exact.packed.grad)):
        atol = 0.03 * true.detach().abs().max().item()
        torch.testing.assert_close(ours.double(), true, rtol=0, atol=atol)


def test_large_inputs_in_float16_stay_finite():
    layer = Quadratic(4, 60, dtype=torch.float16)
    with torch.no_grad():
        layer.packed.zero_()
    assert torch.isfinite(layer(torch.full((1, 4), 300.0, dtype=torch.float16))).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["quadratic", "neither", "wide", "wide, many neurons", "reduced"])
def test_compiled_modules_match_eager_ones(name):
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_modules_compile_to_machine_code():
    torch._dynamo.reset()
    layer = module("wide")
    x = with_inputs(layer, 4)
    z = torch.compile(layer, fullgraph=True)(x)
    z.sum().backward()
    gradient = layer.packed.grad.clone()
    layer.zero_grad()
    layer(x).sum().backward()
    torch.testing.assert_close(z, layer(x), rtol=1e-11, atol=1e-10)
    torch.testing.assert_close(gradient, layer.packed.grad, rtol=1e-11, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["quadratic", "wide", "wide, many neurons", "reduced"])
def test_exported_modules_match_eager_ones(name, strict):
    layer = module(name)
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings(action="ignore"):  # warnings of torch's tracing
        program = torch.export.export(
            layer, (with_inputs(layer, 4),), dynamic_shapes=({0: batch},), strict=strict
        )
    x = with_inputs(layer, 9)
    torch.testing.assert_close(program.module()(x), layer(x), rtol=1e-12, atol=1e-10)


def test_vmap_over_an_ensemble_matches_a_loop():
    layers = [Quadratic(140, 3, dtype=torch.float64) for _ in range(4)]
    parameters, buffers = stack_module_state(layers)
    x = torch.randn(5, 140, dtype=torch.float64)

    def call(p, b):
        return functional_call(layers[0], (p, b), (x,))

    together = vmap(call)(parameters, buffers)
    for z, layer in zip(together, layers, strict=True):
        torch.testing.assert_close(z, layer(x), rtol=1e-12, atol=1e-10)


def test_meta_and_fake_tensors_have_the_right_shape():
    from torch._subclasses import FakeTensorMode

    with torch.device("meta"):
        layer = Quadratic(140, 3)
        z = layer(torch.empty(4, 140))
        z.sum().backward()
    assert z.shape == (4, 3)
    assert layer.packed.grad.is_meta
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    assert torch.isfinite(layer(torch.ones(1, 140))).all()
    _kept_places.cache_clear()
    with FakeTensorMode():
        assert Quadratic(67, 2)(torch.empty(4, 67)).shape == (4, 2)
    real = Quadratic(67, 2)(torch.ones(4, 67))  # no fake tensor was cached
    assert type(real) is torch.Tensor


def test_training_works_after_a_first_call_in_inference_mode():
    _kept_places.cache_clear()
    layer = Quadratic(9, 2)
    with torch.inference_mode():
        layer(torch.ones(1, 9))
    layer(torch.ones(1, 9)).sum().backward()  # no index tensor of inference mode was cached
    assert layer.packed.grad is not None


@pytest.mark.filterwarnings("ignore")  # torch's profiler
@pytest.mark.parametrize("shape", [(1, 784, 10), (128, 32, 10), (128, 64, 64), (1024, 64, 10)])
def test_peak_memory_is_at_most_that_of_every_rival(shape):
    from benchmarks.torch_layers import contenders, peak_megabytes

    found = {name: peak_megabytes(*held, *shape) for name, held in contenders(*shape).items()}
    ours = found.pop("quadric")
    assert 0 < ours <= min(found.values())


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [Quadratic(4, 2), Reduced(4, 2)])
def test_wrong_shapes_and_dtypes_raise(layer):
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


def test_wrong_arguments_of_the_layers_raise():
    with pytest.raises(ValueError, match="in_features"):
        Quadratic(0, 3)
    with pytest.raises((TypeError, ValueError), match="out_features"):
        Reduced(3, 2.5)
    with pytest.raises(ValueError, match="init must be one of"):
        Quadratic(3, 2).reset_parameters("nonsense")
    with pytest.raises(ValueError, match=r"relinear.*bias=True"):
        Reduced(3, 2, bias=False).reset_parameters("relinear")


def test_wrong_shapes_of_the_functions_raise():
    x, Q = torch.zeros(2, 3), torch.zeros(6, 4)
    assert functional.quadratic(x, Q, None, torch.ones(4)).eq(1).all()
    with pytest.raises(RuntimeError, match=r"expected W of shape \(4, 3\). Got \(3, 4\)"):
        functional.quadratic(x, Q, torch.zeros(3, 4))
    with pytest.raises(RuntimeError, match=r"expected c of shape \(4,\). Got \(3,\)"):
        functional.reduced(x, torch.zeros(4, 3), None, torch.zeros(4, 3), torch.zeros(3))
