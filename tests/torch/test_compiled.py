"""The compiled loops of the torch layers, and cases in which they must not be used."""

import contextlib
import ctypes

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from quadric.kernels import OpenMPThreads, PythonThreads
from quadric.kernels._lanes import UNIT_BYTES
from quadric.kernels._quadratic_form_loops import UNITS
from quadric.torch import Quadratic, _quadratic_form as loops
from quadric.torch._quadratic_form import _kept_places, quadratic_form
from quadric.torch.functional import unpack
from tests.support.processes import output_of


def tensors(*shapes, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


def results(x, P, dz):
    z = quadratic_form(x, P)
    return z.detach(), *torch.autograd.grad(z, (x, P), dz)


def assert_close(found, wanted):
    for ours, true in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-12, atol=1e-12)


@pytest.fixture
def threads(monkeypatch):
    """Return a function that sets the number of threads and gives work to each of them."""
    before = torch.get_num_threads()
    monkeypatch.setattr(OpenMPThreads, "worth", 1)
    yield torch.set_num_threads
    torch.set_num_threads(before)


def team_of_openmp():
    team = loops._team()
    if not isinstance(team, OpenMPThreads):
        pytest.skip("torch does not use GNU OpenMP")
    return team


# full and partial tiles of samples and inputs; full and partial groups of 1, 2, 3 and 6 rows;
# several blocks of 128 inputs, 128 samples forward and 256 backward
SHAPES = [
    (1, 1, 1),
    (2, 2, 3),
    (31, 3, 4),
    (33, 5, 5),
    (16, 64, 1),
    (64, 63, 8),
    (255, 7, 9),
    (257, 8, 6),
    (600, 6, 10),
    (3, 64, 33),
    (129, 128, 2),
    (40, 131, 7),
    (300, 263, 3),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loops_match_einsum(shape, dtype):
    B, n, m = shape
    x, P, dz = tensors((B, n), (n * (n + 1) // 2, m), (B, m), dtype=dtype)
    exact = [t.detach().double().requires_grad_() for t in (x, P, dz)]
    z = torch.einsum("bi,kij,bj->bk", exact[0], unpack(exact[1]), exact[0])
    wanted = z.detach(), *torch.autograd.grad(z, exact[:2], exact[2])
    tolerance = 1e-13 if dtype == torch.float64 else 1e-5
    for found, true in zip(results(x, P, dz), wanted, strict=True):
        assert found.dtype == dtype
        scale = true.abs().max().item()
        torch.testing.assert_close(found.double(), true, rtol=0, atol=tolerance * scale)


@pytest.mark.slow
@given(
    B=st.integers(65, 160),
    n=st.integers(1, 20),
    m=st.integers(1, 12),
    count=st.integers(2, 5),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_results_do_not_depend_on_the_number_of_threads(B, n, m, count, seed):
    x, P, dz = tensors((B, n), (n * (n + 1) // 2, m), (B, m), dtype=torch.float32, seed=seed)
    before, worth = torch.get_num_threads(), OpenMPThreads.worth
    try:
        torch.set_num_threads(1)
        one = results(x, P, dz)
        torch.set_num_threads(count)
        OpenMPThreads.worth = 1
        several = results(x, P, dz)
    finally:
        torch.set_num_threads(before)
        OpenMPThreads.worth = worth
    assert all(torch.equal(a, b) for a, b in zip(one, several, strict=True))


def test_all_threads_take_part(threads, monkeypatch):
    team, asked = team_of_openmp(), []
    parallel = team.parallel

    def count(function, address, *default):
        arguments = (ctypes.c_int64 * 2).from_address(address)
        asked.append((arguments[1], *default))
        parallel(function, address, *default)
        # every thread, including that of the last share, has asked for one more
        assert arguments[0] >= arguments[1] + 1

    monkeypatch.setattr(team, "parallel", count)
    threads(3)
    results(*tensors((64, 6), (21, 2), (64, 2)))  # 4 tiles (or 8)
    results(*tensors((17, 2), (3, 2), (17, 2)))  # 3 tiles, or 2: no more tickets than these
    # the team always has torch's size; with another size, OpenMP would restart its threads
    few = min(3, -(-17 * 8 // (UNITS * UNIT_BYTES)))
    assert asked == [(3, 0, 0)] * 2 + [(few, 0, 0)] * 2


def test_small_work_uses_one_thread(monkeypatch):
    team = team_of_openmp()
    monkeypatch.setattr(team, "parallel", None)  # a call would fail
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    results(*tensors((64, 6), (21, 2), (64, 2)))


def test_the_loops_work_without_openmp(threads, monkeypatch):
    """Python's threads are used instead."""
    inputs = tensors((64, 30), (465, 8), (64, 8))
    wanted = results(*inputs)
    run, tickets = PythonThreads.run, []

    def counted(self, function, arguments, count):
        tickets.append(count)
        run(self, function, arguments, count)

    team = PythonThreads(lambda: 3)
    monkeypatch.setattr(PythonThreads, "run", counted)
    monkeypatch.setattr(PythonThreads, "worth", 1)
    monkeypatch.setattr(loops, "_team", lambda: team)
    assert all(torch.equal(a, b) for a, b in zip(results(*inputs), wanted, strict=True))
    assert tickets == [3, 3]


def test_python_threads_without_openmp(monkeypatch):
    def refuse(name):
        raise OSError

    monkeypatch.setattr(loops.ctypes, "CDLL", refuse)
    team = loops._team.__wrapped__()
    assert isinstance(team, PythonThreads)
    assert team.count() == torch.get_num_threads()


def views_of_the_same_numbers(x):
    wide = torch.full((x.shape[0], x.shape[1] + 5), torch.nan, dtype=x.dtype)
    wide[:, 2:-3] = x
    spread = torch.full((x.shape[0], 2 * x.shape[1]), torch.nan, dtype=x.dtype)
    spread[:, ::2] = x
    return {
        "columns": wide[:, 2:-3],
        "every other column": spread[:, ::2],
        "transposed": x.t().contiguous().t(),
        "negative": torch._neg_view(-x),  # as in conj().imag
    }


@pytest.mark.parametrize("kind", ["columns", "every other column", "transposed", "negative"])
def test_strided_and_offset_tensors_give_the_same_numbers(kind):
    x, P, dz = (t.detach() for t in tensors((40, 6), (21, 5), (40, 5)))
    inputs = views_of_the_same_numbers(x)[kind], views_of_the_same_numbers(P)[kind]
    assert all(torch.equal(view, plain) for view, plain in zip(inputs, (x, P), strict=True))
    wanted = results(x.requires_grad_(), P.requires_grad_(), dz)
    found = results(
        *(view.requires_grad_() for view in inputs), views_of_the_same_numbers(dz)[kind]
    )
    assert_close(found, wanted)


def test_an_expanded_row_gives_the_same_numbers():
    x, P = tensors((1, 6), (21, 5))
    z = quadratic_form(x.expand(40, 6), P)
    assert z.shape == (40, 5)
    assert torch.equal(z, quadratic_form(x, P).expand(40, 5))
    z.sum().backward()  # dL/dz is one number, expanded to all entries
    one = torch.autograd.grad(quadratic_form(x, P), (x, P), torch.full((1, 5), 40.0).double())
    assert_close((x.grad, P.grad), one)


def test_layers_without_neurons_give_empty_results():
    x, P, dz = tensors((4, 3), (6, 0), (4, 0))
    z, dx, dP = results(x, P, dz)
    assert z.shape == (4, 0)
    assert dP.shape == (6, 0)
    assert torch.equal(dx, torch.zeros_like(x))


def test_values_that_are_not_finite():
    """Such values affect only their own samples, except in dL/dQ, which sums over all samples."""
    x, P, dz = tensors((40, 6), (21, 5), (40, 5))
    z, dx, _ = results(x, P, dz)
    bad = torch.zeros(40, dtype=torch.bool)
    bad[[3, 17]] = True
    with torch.no_grad():
        x[3, 2], x[17, 0] = torch.nan, torch.inf
    found_z, found_dx, found_dP = results(x, P, dz)
    assert torch.equal(found_z[~bad], z[~bad])
    assert torch.equal(found_dx[~bad], dx[~bad])
    assert not found_z[bad].isfinite().any()
    assert not found_dP.isfinite().all()


def test_large_values_match_einsum():
    x, P = tensors((8, 3), (6, 2), dtype=torch.float32)
    with torch.no_grad():
        x.copy_(torch.eye(3).repeat(3, 1)[:8] * 1.8e20)
        P.fill_(1e-2)
    z = quadratic_form(x, P)  # x'x overflows, x'Qx does not
    torch.testing.assert_close(z, torch.full((8, 2), 3.24e38), rtol=1e-5, atol=0)


# ---- tracers and transforms, which cannot see into the loops -------------------------------


@pytest.mark.filterwarnings("ignore")  # of torch.jit: shapes become constants
@pytest.mark.parametrize("n", [5, 140])
def test_traced_functions_match_eager_ones(n):
    layer, (x, other) = Quadratic(n, 3).double(), (t.detach() for t in tensors((4, n), (9, n)))
    traced = torch.jit.trace(layer, x)
    torch.testing.assert_close(traced(other), layer(other), rtol=1e-12, atol=1e-12)
    found, wanted = (torch.autograd.grad(f(other).sum(), layer.packed) for f in (traced, layer))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_make_fx_graphs_match_eager_functions():
    from torch.fx.experimental.proxy_tensor import make_fx

    x, other, P = (t.detach() for t in tensors((4, 5), (4, 5), (15, 3)))
    graph = make_fx(lambda x: quadratic_form(x, P))(x)
    torch.testing.assert_close(graph(other), quadratic_form(other, P), rtol=1e-12, atol=1e-12)


def test_operations_can_be_counted():
    x, P, dz = tensors((4, 5), (15, 3), (4, 3))
    with FlopCounterMode(display=False) as counter:
        quadratic_form(x, P).backward(dz)
    assert counter.get_total_flops() == 4 * 2 * 4 * 15 * 3  # z, dx (twice) and dP


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("which", ["x", "P", "both"])
def test_forward_mode_derivatives_are_kept(which):
    x, P, *directions = (t.detach() for t in tensors((4, 5), (15, 3), (4, 5), (15, 3)))
    moves = [which in (name, "both") for name in "xP"]
    dx, dP = (d * does for d, does in zip(directions, moves, strict=True))
    with forward_ad.dual_level(), torch.no_grad():
        x_dual = forward_ad.make_dual(x, dx) if moves[0] else x
        P_dual = forward_ad.make_dual(P, dP) if moves[1] else P
        tangent = forward_ad.unpack_dual(quadratic_form(x_dual, P_dual)).tangent
    step = 1e-6
    ahead, behind = (quadratic_form(x + h * dx, P + h * dP) for h in (step, -step))
    torch.testing.assert_close(tangent, (ahead - behind) / (2 * step), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("forward_watched", [False, True])
def test_a_mode_in_one_pass_of_a_checkpoint(forward_watched):
    """Both implementations must save the same tensors."""
    layer, (x,) = Quadratic(140, 3).double(), tensors((4, 140))
    watched, free = FlopCounterMode(display=False), contextlib.nullcontext()
    with watched if forward_watched else free:
        z = checkpoint(layer, x, use_reentrant=False)
    with free if forward_watched else watched:
        z.sum().backward()
    wanted = torch.autograd.grad(layer(x).sum(), (x, layer.packed))
    assert_close((x.grad, layer.packed.grad), wanted)


def test_parameters_outside_a_transform_are_constants():
    layer, (x,) = Quadratic(5, 3).double(), tensors((4, 5))
    W = layer.W.detach()
    found = torch.func.grad(lambda W: functional_call(layer, {"W": W}, (x,)).sum())(W)
    torch.testing.assert_close(found, x.detach().sum(0).expand(3, 5), rtol=1e-12, atol=1e-12)
    many = torch.func.vmap(lambda s: s * layer(x))(torch.ones(2).double())
    torch.testing.assert_close(many, layer(x).expand(2, 4, 3), rtol=1e-12, atol=1e-12)


def test_fake_tensors_work_after_real_ones():
    x, P = (t.detach() for t in tensors((4, 5), (15, 3)))
    quadratic_form(x, P)
    unpack(P)  # caches an index tensor
    with FakeTensorMode():
        fake = quadratic_form(torch.empty(4, 5), torch.empty(15, 3))
        assert unpack(torch.empty(15, 3)).shape == (3, 5, 5)
    assert fake.shape == (4, 3)


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "inference", "fake", "trace"])
@pytest.mark.filterwarnings("ignore")  # of torch.jit, which is deprecated
def test_cached_indices_belong_to_no_transform(transform):
    """Indices may be cached in any transform, and must then work in all others."""
    x, P, dz = tensors((4, 5), (15, 3), (4, 3))
    wanted = torch.einsum("bi,kij,bj->bk", x, unpack(P), x).detach()
    _kept_places.cache_clear()
    x, P = x.detach(), P.detach()
    if transform == "grad":
        torch.func.grad(lambda P: quadratic_form(x, P).sum())(P)
    elif transform == "vmap":
        torch.func.vmap(lambda x: quadratic_form(x[None], P))(x)
    elif transform == "jvp":
        torch.func.jvp(lambda x: quadratic_form(x, P), (x,), (x,))
    elif transform == "inference":
        with torch.inference_mode():
            unpack(P)
    elif transform == "fake":
        with FakeTensorMode():
            unpack(torch.empty(15, 3))
    else:
        torch.jit.trace(lambda x: quadratic_form(x, P), x)
    P.requires_grad_()
    z = torch.einsum("bi,kij,bj->bk", x, unpack(P), x)
    assert type(unpack(P)) is torch.Tensor
    torch.testing.assert_close(z.detach(), wanted, rtol=1e-12, atol=1e-12)
    z.backward(dz)
    found = torch.func.vmap(lambda x: quadratic_form(x[None], P)[0])(x)
    torch.testing.assert_close(found.detach(), wanted, rtol=1e-12, atol=1e-12)


def test_sparse_inputs_are_computed_with_torch_operations():
    x, P = (t.detach() for t in tensors((4, 5), (15, 3)))
    torch.testing.assert_close(quadratic_form(x.to_sparse(), P), quadratic_form(x, P))


def test_gradients_of_zeros_without_memory():
    x, P = tensors((4, 5), (15, 3))
    z = quadratic_form(x, P)
    dx, dP = torch.autograd.grad(z, (x, P), torch._efficientzerotensor((4, 3), dtype=x.dtype))
    assert not dx.any()
    assert not dP.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.float(), r"the dtype of x, .* Got shape .* and torch.float(32|64)\."),
        (lambda t: t[:-1], r"expected (P of shape \(15, 3\)|dz of shape \(3, 3\)) and .* Got"),
        (lambda t: t[:, :-1], r"expected (P of shape \(10, 3\)|dz of shape \(4, 2\)) and .* Got"),
    ],
)
@pytest.mark.parametrize("name", ["x", "P"])
def test_saved_tensors_that_are_unpacked_as_others(name, change, message):
    """The result is an error, not an access to invalid memory."""
    x, P, dz = tensors((4, 5), (15, 3), (4, 3))
    z = with_unpacked(x if name == "x" else P, change, x, P)
    with pytest.raises(RuntimeError, match=message):
        z.backward(dz)


def with_unpacked(changed, change, x, P):
    """Return z of a graph in which one of the saved tensors is changed when it is unpacked."""
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: t, lambda t: change(t) if t.shape == changed.shape else t
    ):
        return quadratic_form(x, P)


def test_saved_tensors_that_are_unpacked_without_memory():
    x, P, dz = tensors((4, 5), (15, 3), (4, 3))
    z = with_unpacked(x, lambda t: t.to("meta"), x, P)
    with pytest.raises(RuntimeError, match="meta"):
        z.backward(dz)
    z = quadratic_form(x, P)
    P.untyped_storage().resize_(0)  # as FSDP frees parameters
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        z.backward(dz)


def test_saved_tensors_that_are_unpacked_with_the_other_sign():
    x, P, dz = tensors((4, 5), (15, 3), (4, 3))
    wanted = results(x, P, dz)[1:]
    z = with_unpacked(P, lambda t: torch._neg_view(-t), x, P)
    assert_close(torch.autograd.grad(z, (x, P), dz), wanted)


# ---- numba and its cache -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("forbidden", [False, pytest.param(True, marks=pytest.mark.full)])
def test_numba_is_imported_when_first_used_and_can_be_disabled(forbidden):
    script = (
        "import sys, torch\n"
        "from quadric.torch import Quadratic\n"
        "print('numba' in sys.modules)\n"
        "layer = Quadratic(2, 1)\n"
        "layer(torch.ones(3, 2)).sum().backward()\n"
        "print(layer.packed.grad.tolist())\n"
    )
    printed = output_of(script, NUMBA_DISABLE_JIT=str(int(forbidden)))
    assert printed == "False\n[[3.0], [6.0], [3.0]]\n"
