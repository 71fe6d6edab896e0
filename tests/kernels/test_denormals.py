"""Denormal numbers count as zero in all compiled loops, whatever the mode of the calling thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from llvmlite import binding, ir

pytest.importorskip("torch")  # sets the mode

from quadric import Network, kernels
from quadric.core import ACTIVATIONS
from quadric.kernels import PythonThreads, _compiling, _denormals, _sgd
from tests.support.adversary import underflows
from tests.support.denormals import (
    flushes,
    flushing,
    is_denormal,
    some_denormal,
    without_denormals,
)

pytestmark = pytest.mark.skipif(
    _denormals.ARCHITECTURE not in _denormals.MODES,
    reason="the loops do not set the mode on this processor",
)
DTYPES = ("float32", "float64")


class Team(PythonThreads):
    """A team that uses all of its threads."""

    worth = 1

    def __init__(self, count):
        super().__init__(lambda: count)


def form_case(dtype, B=512, n=128, m=64):
    """Return X, P and dz with many denormal entries."""
    rng = np.random.default_rng(0)
    shapes = (B, n), (n * (n + 1) // 2, m), (B, m)
    X, P, dz = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    dz *= np.finfo(dtype).tiny
    return some_denormal(X, rng), some_denormal(P, rng), dz


def form_results(X, P, dz, threads=1):
    """Return z, dL/dx and dL/dP, computed by this many threads."""
    (B, n), m = X.shape, P.shape[1]
    z, dX, dP = np.empty_like(dz), np.empty_like(X), np.empty_like(P)
    team, given = Team(threads), (X.ctypes.data, P.ctypes.data)
    for loop, others in (
        (kernels.values, (z.ctypes.data, 0, 0)),
        (kernels.gradients, (dz.ctypes.data, dX.ctypes.data, dP.ctypes.data)),
    ):
        kernels.run_quadratic_form(loop, team, X.dtype, (B, n, m, n), (*given, *others))
    return [z, dX, dP]


def sgd_case(dtype):
    """Return X, some of whose columns are denormal, and targets."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 9)).astype(dtype)
    X[:, ::3] = some_denormal(X[:, ::3], rng, share=1)
    return X, (X[:, 1] > 0).astype(dtype)


def sgd_results(X, Y, first="quadratic"):
    """Return the parameters and the loss after two epochs of per-sample SGD."""
    layers = [(first, 5, "tanh"), ("quadratic", 3, "logistic"), ("reduced", 1, "logistic")]
    net = Network.create(X.shape[1], layers, rng=0, dtype=X.dtype)
    net.layers[0].W[:, ::3] = 0
    history = net.fit(X, Y, learning_rate=0.1, epochs=2)
    arrays = [array for layer in net.layers for array in layer.arrays().values()]
    return [*arrays, np.array(history.loss)]


def same_bits(left, right):
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


# ---- results -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_T2_the_form_has_the_same_bits_for_every_mode_and_number_of_threads(dtype):
    case = form_case(dtype)
    wanted = form_results(*map(without_denormals, case))
    assert all(array.any() for array in wanted)
    assert not any(is_denormal(array).any() for array in wanted)
    for on in (False, True):
        for threads in (1, 2, 3):
            with flushing(on):
                found = form_results(*case, threads)
            assert same_bits(found, wanted), (on, threads)


@pytest.mark.parametrize("first", ["linear", "quadratic", "reduced"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_T2_per_sample_sgd_has_the_same_bits_for_every_mode(dtype, first):
    X, Y = sgd_case(dtype)
    wanted = sgd_results(without_denormals(X), Y, first)
    for on in (False, True):
        with flushing(on):
            found = sgd_results(X, Y, first)
        assert same_bits(found, wanted), on


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_T2_compressed_rows_have_no_denormal_entries(dtype, on):
    rng = np.random.default_rng(2)
    X = some_denormal(rng.normal(size=(7, 45)).astype(dtype), rng, share=0.5)
    counts = np.zeros(len(X), np.int64)
    wanted = without_denormals(X)
    with flushing(on):
        _sgd.count_nonzeros(X.reshape(-1), X.shape[1], counts)
        assert np.array_equal(counts, np.count_nonzero(wanted, axis=1))
        indptr = np.concatenate([[0], counts.cumsum()])
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        _sgd.compress_rows(X.reshape(-1), X.shape[1], indptr, indices, values)
    assert np.array_equal(indices, np.nonzero(wanted)[1])
    assert np.array_equal(values, wanted[wanted != 0])


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_T2_activations_of_denormal_numbers(dtype, on):
    z = some_denormal(np.zeros(37, dtype), np.random.default_rng(3), share=1)
    with flushing(on):
        assert not ACTIVATIONS["tanh"].function(z).view(f"u{z.itemsize}").any()
        assert (ACTIVATIONS["logistic"].function(z) == 0.5).all()


@pytest.mark.parametrize("n", [1, 5, 130])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_T2_flushing_changes_z_by_no_more_than_underflows_counts(dtype, n):
    rng = np.random.default_rng(4)
    limits, m = np.finfo(dtype), 3
    t, scale = limits.tiny, float(limits.tiny) ** 0.5
    X = (rng.choice([-1, 1], (64, n)) * rng.uniform(0.1, 1, (64, n)) * scale).astype(dtype)
    P = rng.normal(size=(n * (n + 1) // 2, m)).astype(dtype)
    found = form_results(X, P, np.zeros((64, m), dtype))[0]
    exact, size = (scaled_form(X, P, scale, f) for f in (np.asarray, np.abs))  # in units of t
    a, b = underflows(n)
    flushed = a + b * (np.abs(X.astype(np.longdouble)).sum(axis=1, keepdims=True))
    rounded = 1.01 * kernels.roundings(n) * limits.eps / 2 * size
    error = np.abs(found.astype(np.longdouble) / t - exact)
    assert (error <= rounded + flushed).all()
    assert (error > rounded).any()  # something was flushed


def scaled_form(X, P, scale, f):
    """Return the form of f(X) / scale and f(P) with the precision of longdouble."""
    X, P = f(X.astype(np.longdouble) / scale), f(P.astype(np.longdouble))
    rows, columns = np.triu_indices(X.shape[1])
    return (X[:, rows] * X[:, columns] * np.where(rows == columns, 1, 2)) @ P


# ---- the mode ------------------------------------------------------------------------------


@_compiling.EntryPoint
def double_or_fail(numbers, fails):
    """A loop that may raise an exception."""
    for i in range(numbers.size):
        numbers[i] *= 2
    if fails:
        raise ValueError("on purpose")


def calls():
    """Return one call of each compiled loop."""
    X, Y = sgd_case("float32")
    form = form_case("float32", 40, 7, 5)
    return {
        "form": lambda: form_results(*form, threads=2),
        "sgd": lambda: sgd_results(X, Y),
        "count": lambda: _sgd.count_nonzeros(X.reshape(-1), 9, np.zeros(len(X), np.int64)),
        "tanh": lambda: ACTIVATIONS["tanh"].function(X),
        "stopped": lambda: stopped_epoch(X, Y),
        "failed": failed_loop,
    }


def stopped_epoch(X, Y):
    """Stop at the first sample, because z is not finite."""
    net = Network.create(X.shape[1], [("linear", 1, "logistic")], rng=0, dtype=X.dtype)
    with pytest.raises(ValueError, match=r"overflow|finite|diverged"):
        net.fit(np.full_like(X, 3e38), Y, learning_rate=1e30, epochs=1)


def failed_loop():
    numbers = np.full(3, 1e-40, np.float32)
    with pytest.raises(ValueError, match="on purpose"):
        double_or_fail.uncached(numbers, True)
    assert not numbers.view(np.uint32).any()  # flushed before the exception


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("name", ["form", "sgd", "count", "tanh", "stopped", "failed"])
def test_torch_T2_a_loop_leaves_the_mode_of_its_thread_unchanged(name, on):
    def modes():
        with flushing(on):
            calls()[name]()
            return flushes()

    assert modes() == on
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(modes).result() == on


def assembly(architecture):
    """Return machine code for the architecture that changes the mode and restores it."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    triple = f"{architecture}-unknown-linux-gnu"
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM does not compile for {architecture}")
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    restore = _denormals.set_mode(builder, architecture)
    restore()
    builder.ret_void()
    return target.create_target_machine().emit_assembly(binding.parse_assembly(str(module)))


def test_torch_T2_the_mode_is_set_and_restored_on_other_processors():
    arm = assembly("aarch64").lower()
    assert [arm.count(word) for word in ("mrs", "msr", "#0x1000000")] == [1, 2, 1]
    assert assembly("x86_64").count("ldmxcsr") == 2
    assert _denormals.set_mode(None, "riscv64")() is None
