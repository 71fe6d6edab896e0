"""The compiled loop agrees with the reference and the mini-batch path, and keeps its guarantees."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

import quadric
from quadric import DivergenceError, Network, kernels
from quadric.core import Stack
from quadric.kernels import _sgd as sgd
from quadric.training import Options, Samples, TrainingState, _steppers
from quadric.training._divergence import Watch
from quadric.training._run import FailedEpochError
from quadric.training._steppers import MiniBatch, PerSample
from quadric.training._train import run_epochs
from tests.support.networks import (
    ENDS,
    HIDDEN,
    KINDS,
    has_reference,
    make_network,
    max_difference,
    reference_training,
    stacks,
    targets,
)
from tests.support.processes import output_of


def sparse_rows(rng, n_samples=50, n=6):
    X = rng.normal(size=(n_samples, n))
    X[rng.random(X.shape) < 0.5] = 0
    return X


def fit_by_batches(net, X, Y, loss, *, rng, offset=None, sample_weight=None, **options):
    """Train through the mini-batch path, with batches of one sample."""
    samples, options = Samples(X, Y, sample_weight, offset), Options(**options)
    stack, state = Stack(net.layers, net.activations, loss), TrainingState()
    state.begin(samples, options)
    stepper = MiniBatch(stack, samples, options, state)
    watch = Watch(stack, samples, options, state, stepper.l2)
    run_epochs(stepper, lambda: stepper, watch, rng=rng)
    return state.history


def per_sample(net, X, Y):
    """Run the compiled loop on unchecked samples."""
    stack = Stack(net.layers, net.activations, "binary_cross_entropy")
    return PerSample(stack, Samples(X, Y), Options(), TrainingState())


# ---- the same parameters as two other implementations --------------------------------------


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize("form", ["dense", "csr", "csr with offset"])
@pytest.mark.parametrize(("loss", "last"), ENDS[:3])
@pytest.mark.parametrize("kinds", stacks(2))
def test_500_steps_in_three_implementations(kinds, loss, last, form, l2):
    rng = np.random.default_rng(1)
    S, offset = sparse_rows(rng), np.full(6, -0.3) if "offset" in form else None
    Y = targets(loss, 50, 3, rng)
    given_X = S if form == "dense" else sparse.csr_array(S)
    dense_X = S if offset is None else S + offset
    net = make_network(kinds, "logistic", last, n=6, widths=(5, 3), seed=2)

    engine = net.copy()
    options = {"epochs": 10, "learning_rate": 0.02, "shuffle": False, "l2": l2, "offset": offset}
    engine.fit(given_X, Y, loss, **options)
    batches = net.copy()
    fit_by_batches(batches, S, Y, loss, rng=np.random.default_rng(0), **options)
    assert max_difference(engine, net) > 1e-3  # the network has learned something
    assert max_difference(engine, batches) < 1e-9
    if has_reference(kinds):
        reference = reference_training(net, dense_X, Y, loss, 0.02, epochs=10, l2=l2)
        assert max_difference(engine, reference) < 1e-9


ANY_NETWORK = {
    "kinds": st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    "widths": st.lists(st.integers(1, 40), min_size=3, max_size=3),
    "n": st.integers(1, 40),
    "hidden": st.sampled_from(HIDDEN),
    "end": st.sampled_from(ENDS),
    "form": st.sampled_from(["dense", "csr"]),
    "offset": st.sampled_from([None, -0.5, "vector"]),
    "l2": st.sampled_from([0.0, 0.01]),
    "clip": st.sampled_from([None, 0.5]),
    "weighted": st.booleans(),
    "seed": st.integers(0, 2**32),
}


@pytest.mark.slow
@settings(max_examples=80)
@given(**ANY_NETWORK)
def test_any_network_matches_the_mini_batch_path(**case):
    assert_matches_the_mini_batch_path(**case)


@pytest.mark.full
@settings(max_examples=5000, derandomize=False)
@given(**ANY_NETWORK)
def test_5000_networks_match_the_mini_batch_path(**case):
    assert_matches_the_mini_batch_path(**case)


def assert_matches_the_mini_batch_path(
    kinds, widths, n, hidden, end, form, offset, l2, clip, weighted, seed
):
    loss, last = end
    rng = np.random.default_rng(seed)
    X = sparse_rows(rng, 8, n) / np.sqrt(n)
    activations = [hidden] * (len(kinds) - 1) + [last]
    net = Network.create(
        n, list(zip(kinds, widths, activations, strict=False)), scale=0.5, rng=seed
    )
    for layer in net.layers:
        layer.b = 0.1 * rng.normal(size=layer.n_outputs)
    Y = targets(loss, 8, net.n_outputs, rng)
    shift = rng.normal(size=n) if offset == "vector" else offset
    if shift is not None:
        shift = shift / np.sqrt(n)  # inputs of about unit length, so that nothing diverges
    weights = rng.integers(0, 3, 8).astype(float) if weighted else None
    run = {"epochs": 2, "learning_rate": 1e-3, "l2": l2, "clip": clip, "sample_weight": weights}
    batches, row = net.copy(), None if shift is None else np.broadcast_to(shift, n)
    expected = fit_by_batches(
        batches, X, Y, loss, offset=row, rng=np.random.default_rng(3), shuffle=True, **run
    )
    given_X = X if form == "dense" else sparse.csr_array(X)
    history = net.fit(given_X, Y, loss, offset=shift, rng=np.random.default_rng(3), **run)
    size = max(float(np.abs(a).max()) for layer in net.layers for a in layer.arrays().values())
    assert max_difference(net, batches) < 1e-11 * max(1.0, size)
    np.testing.assert_allclose(history.loss, expected.loss, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_follows_float64(kind):
    rng = np.random.default_rng(4)
    X, Y = sparse_rows(rng, 200, 20), targets("binary_cross_entropy", 200, 10, rng)
    net = make_network(("linear", kind), "logistic", "logistic", n=20, widths=(15, 10))
    single = net.astype("float32")
    net.fit(X, Y, epochs=3)
    single.fit(X, Y, epochs=3)
    assert all(array.dtype == np.float32 for array in single.layers[1].arrays().values())
    assert 0 < max_difference(net, single) < 2e-5


# ---- the loss ------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 64, 700])
@pytest.mark.parametrize(("loss", "last"), ENDS[:3])
def test_reported_loss_is_the_mean_before_each_step(loss, last, m):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(30, 4)), targets(loss, 30, m, rng)
    net = make_network(["linear"], "tanh", last, n=4, widths=(m,))
    start, _ = net.gradients(X, Y, loss)
    history = net.fit(X, Y, loss, learning_rate=1e-14, epochs=1)
    assert history.loss[0] == pytest.approx(start, rel=1e-10)


def test_exponential_is_accurate_to_the_last_digits():
    # with W = 0 and b = z, the activation is sigmoid(z)
    for dtype, tolerance in (("float64", 4e-16), ("float32", 3e-7)):
        for z in (-700.0, -80.0, -30.0, -1.0, -1e-3, 0.0, 1e-3, 0.7, 5.0, 30.0, 80.0, 700.0):
            net = Network.create(1, [("linear", 1, "logistic")], dtype=dtype, rng=0)
            net.layers[0].W, net.layers[0].b = [[0.0]], [z]
            stepper = per_sample(net, np.zeros((1, 1), dtype), np.zeros((1, 1), dtype))
            stepper.run_epoch(np.array([0]), 0.5)
            a = float(stepper.packed.work[stepper.packed.table[0]["a"]])
            wanted = 1 / (1 + np.exp(-np.float64(z))) if z > -700 else 0.0
            assert abs(a - wanted) <= tolerance * max(wanted, 1e-30), (dtype, z)


# ---- sample weights, rates, clipping -------------------------------------------------------


def test_weight_scales_the_step_and_zero_skips_the_sample():
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(5, 3)), targets("squared_error", 5, 2, rng)
    net = make_network(("reduced", "quadratic"), "tanh", "identity")
    one, other = net.copy(), net.copy()
    one.fit(X[:1], Y[:1], learning_rate=0.03, epochs=1, l2=0.1)
    other.fit(
        X[:2], Y[:2], learning_rate=0.01, epochs=1, l2=0.1, sample_weight=[3, 0], shuffle=False
    )
    assert max_difference(one, other) < 1e-16
    # a sample that would diverge is skipped as well
    X[1] = 1e200
    other = net.copy()
    other.fit(X[:2], Y[:2], learning_rate=0.03, epochs=1, l2=0.1, sample_weight=[1, 0])
    assert max_difference(one, other) < 1e-16


def test_penalty_survives_extreme_shrinking():
    # 1 - rate * l2 * weight is negative, zero or tiny: the scale must be applied to the weights
    rng = np.random.default_rng(7)
    X, Y = sparse_rows(rng, 40, 6), targets("binary_cross_entropy", 40, 2, rng)
    net = make_network(("linear", "quadratic"), "tanh", "logistic", n=6)
    weights = rng.choice([0.5, 1.0, 1.5, 1.0 - 1e-9], 40)
    batches = net.copy()
    run = {"learning_rate": 0.1, "epochs": 2, "l2": 10.0, "sample_weight": weights}
    order = {"shuffle": False, "rng": np.random.default_rng(0)}
    fit_by_batches(batches, X, Y, "binary_cross_entropy", **run, **order)
    net.fit(X, Y, shuffle=False, **run)
    assert max_difference(net, batches) < 1e-12


def test_many_steps_of_penalty_do_not_underflow():
    X, Y = np.zeros((2000, 3)), np.full((2000, 1), 0.5)
    net = Network.create(3, [("quadratic", 1, "logistic")], dtype="float32", rng=0)
    start = net.layers[0].W.copy()
    net.fit(X, Y, learning_rate=0.1, l2=0.5, epochs=1)  # 0.95**2000 is about 1e-45
    assert np.abs(net.layers[0].W).max() <= np.abs(start).max() * 1e-37
    assert np.isfinite(net.layers[0].Q).all()


def test_inverse_scaling_lowers_the_rate_with_the_samples_seen():
    rng = np.random.default_rng(8)
    X, Y = rng.normal(size=(4, 3)), targets("squared_error", 4, 2, rng)
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,))
    scheduled, by_hand = net.copy(), net.copy()
    scheduled.fit(X, Y, learning_rate=0.05, power_t=0.5, epochs=3, shuffle=False)
    for samples_seen in (0, 4, 8):
        rate = 0.05 / (samples_seen + 1) ** 0.5
        by_hand.fit(X, Y, learning_rate=rate, epochs=1, shuffle=False)
    assert max_difference(scheduled, by_hand) == 0.0


def test_clip_bounds_the_step():
    rng = np.random.default_rng(9)
    X, Y = 5 * rng.normal(size=(1, 4)), 100 * np.ones((1, 2))
    net = make_network(("reduced", "quadratic"), "tanh", "identity", n=4)
    before = net.copy()
    net.fit(X, Y, learning_rate=1.0, clip=0.25, epochs=1)
    moved = 0.0
    for old, new in zip(before.layers, net.layers, strict=True):
        for a, b in zip(old.arrays().values(), new.arrays().values(), strict=True):
            moved += float(((a - b) ** 2).sum())
    assert np.sqrt(moved) == pytest.approx(0.25, rel=1e-9)


# ---- divergence ----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kinds", stacks(2))
def test_compiled_loop_stops_at_a_bad_number(kinds, dtype, bad):
    """Call the compiled loop directly, without the checks of `Network.fit`."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(9, 3)).astype(dtype)
    X[4, 1] = bad
    Y = targets("binary_cross_entropy", 9, 2, rng).astype(dtype)
    net = make_network(kinds, "logistic", "logistic", dtype=dtype)
    stepper = per_sample(net, X, Y)
    with pytest.raises(FailedEpochError) as caught:
        stepper.run_epoch(np.arange(9)[::-1].copy(), 0.01)
    assert (caught.value.sample, caught.value.layer) == (4, 0)


def test_compiled_loop_names_the_layer_of_a_bad_number():
    net = make_network(("linear", "quadratic"), "identity", "logistic")
    net.layers[1].arrays()["packed"][-1, 1] = np.inf
    stepper = per_sample(net, np.ones((3, 3)), np.ones((3, 2)))
    with pytest.raises(FailedEpochError) as caught:
        stepper.run_epoch(np.arange(3), 0.01)
    assert (caught.value.sample, caught.value.layer) == (0, 1)


@pytest.mark.parametrize("options", [{}, {"batch_size": 5}, {"solver": "adam"}])
def test_divergence_restores_the_last_finished_epoch(options):
    rng = np.random.default_rng(11)
    X, Y = rng.normal(size=(20, 3)), 10 * targets("squared_error", 20, 2, rng)
    rate = 0.3 if options.get("solver") != "adam" else 1e200
    net = make_network(("quadratic", "quadratic"), "identity", "identity")
    with pytest.raises(DivergenceError) as caught:
        net.fit(X, Y, learning_rate=rate, epochs=50, rng=0, **options)
    error = caught.value
    assert error.learning_rate == rate
    assert error.history.epochs == error.epoch
    assert f"epoch {error.epoch}" in str(error)
    assert "learning_rate" in str(error)
    again = make_network(("quadratic", "quadratic"), "identity", "identity")
    again.fit(X, Y, learning_rate=rate, epochs=error.epoch, rng=0, **options)
    assert max_difference(net, again) == 0.0


def test_divergence_in_the_last_step_is_detected():
    # the only step overflows the weights, and no later sample would detect it
    net = make_network(["linear"], "tanh", "identity", widths=(2,))
    before = net.copy()
    with pytest.raises(DivergenceError):
        net.fit(np.full((1, 3), 1e200), np.full((1, 2), 1e200), learning_rate=1.0, epochs=1)
    assert max_difference(net, before) == 0.0


# ---- same seed, same bits ------------------------------------------------------------------


def test_same_bits_on_one_thread_and_on_many():
    rng = np.random.default_rng(12)
    X, Y = sparse_rows(rng, 300, 20), targets("cross_entropy", 300, 5, rng)

    def train(seed):
        net = Network.create(
            20, [("linear", 12, "tanh"), ("quadratic", 5, "softmax")], rng=seed, dtype="float32"
        )
        net.fit(X, Y, epochs=5, rng=seed, l2=1e-3)
        return net

    alone = [train(seed) for seed in range(6)]
    together = [None] * 6

    def work(seed):
        together[seed] = train(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        assert max_difference(one, other) == 0.0
    assert max_difference(alone[0], alone[1]) > 0


def test_other_threads_run_during_the_compiled_loop(monkeypatch):
    """Only the compiled loop can let the other thread run before `finished` is set."""
    rng = np.random.default_rng(13)
    net = make_network(("linear", "quadratic"), "tanh", "logistic", n=20, widths=(30, 2))
    X, Y = rng.normal(size=(5000, 20)), targets("binary_cross_entropy", 5000, 2, rng)
    stepper, compiled, during = per_sample(net, X, Y), sgd.sgd_epoch, []

    def watched(*arguments):
        begin, finished = threading.Event(), threading.Event()

        def look():
            begin.wait(60)
            during.append(not finished.is_set())

        thread = threading.Thread(target=look)
        thread.start()
        begin.set()
        result = compiled(*arguments)
        finished.set()
        thread.join()
        return result

    stepper.run_epoch(np.arange(2), 1e-4)  # compiles, or loads from the cache
    monkeypatch.setattr(kernels, "sgd_epoch", watched)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # a thread that holds the GIL is not interrupted
    try:
        for _ in range(50):  # on a busy machine the other thread may start too late
            stepper.run_epoch(np.arange(5000), 1e-4)
            if any(during):
                break
    finally:
        sys.setswitchinterval(interval)
    assert any(during)


def signatures():
    return [dispatcher.signatures for dispatcher in sgd.sgd_epoch.compiled.values()]


def test_one_compilation_for_read_only_and_writable_input():
    rng = np.random.default_rng(14)
    X, Y = rng.normal(size=(6, 3)), targets("binary_cross_entropy", 6, 2, rng)
    net = make_network(("linear", "quadratic"), "tanh", "logistic")
    net.fit(X, Y, epochs=1)
    compiled = signatures()
    X.flags.writeable = Y.flags.writeable = False
    net.fit(X, Y, epochs=1)
    net.fit(np.asfortranarray(X), Y, epochs=1)
    net.fit(sparse.csr_array(X), Y, epochs=1, offset=0.5, sample_weight=np.ones(6))
    deep = make_network(("quadratic", "reduced", "linear"), "relu", "softmax", widths=(9, 40, 2))
    deep.fit(X, np.eye(2)[rng.integers(0, 2, 6)], epochs=1, clip=1.0, l2=0.1)
    assert signatures() == compiled


# calls the function that compiles fastest
COUNT = (
    "import numpy as np\n"
    "from quadric.kernels import _sgd as rows\n"
    "counts = np.zeros(2, dtype=np.int64)\n"
    "rows.count_nonzeros(np.array([0.0, 1.0, 2.0, 3.0]), 2, counts)\n"
    "print(counts.tolist())\n"
)


@pytest.mark.slow
def test_compiles_without_a_writable_cache():
    """If numba finds no directory for its cache, the loop is compiled without a cache."""
    script = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"  # no writable place, even for root
        f"{COUNT}"
        "entry = rows.count_nonzeros\n"
        "print(list(entry.compiled.values()) == [entry.uncached])\n"
    )
    assert output_of(script, PYTHONWARNINGS="error") == "[1, 2]\nTrue\n"


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "no room"])
def test_a_damaged_or_full_cache_causes_no_failure(damage, tmp_path):
    environment = dict(os.environ) | {"NUMBA_CACHE_DIR": str(tmp_path), "SCRIPT": COUNT}

    def run(limit=""):
        result = subprocess.run(
            ["bash", "-c", f'{limit} exec {sys.executable} -c "$SCRIPT"'],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout == "[1, 2]\n"
        return [path for path in tmp_path.rglob("*.nbc") if path.stat().st_size > 1024]

    if damage == "no room":
        assert not run("ulimit -f 1;")
        return
    files = run()
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:100])
    run()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "nowhere to write"])
def test_a_damaged_or_missing_cache_of_a_shared_loop_causes_no_failure(damage, tmp_path):
    """The elementwise loop compiles fastest; all shared loops are cached in the same way."""
    script = (
        "import numpy as np, numba.core.caching as c\n"
        + ("c.CacheImpl._locator_classes = []\n" if damage == "nowhere to write" else "")
        + "from quadric.kernels import apply_elementwise as apply\n"
        "print(apply('logistic', np.zeros(3)).tolist())\n"
    )

    def run():
        return output_of(script, NUMBA_CACHE_DIR=str(tmp_path))

    assert run() == "[0.5, 0.5, 0.5]\n"
    files = [path for path in tmp_path.rglob("*.nb*") if "_activations_and_losses" in path.name]
    assert bool(files) == (damage == "truncated")
    if damage == "truncated":
        for path in files:
            path.write_bytes(path.read_bytes()[:100])
        assert run() == "[0.5, 0.5, 0.5]\n"


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("edited", ["_lanes", "_compiling", "_layout", "_blocks", "_sgd"])
def test_the_cache_detects_an_edit_of_any_kernel_file(edited, tmp_path):
    """numba itself checks only the modification time and size of the function's own file."""
    package = Path(quadric.__file__).parent
    shutil.copytree(package, tmp_path / "quadric", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "from quadric.kernels import _compiling as compiling, _sgd as sgd\n"
        "for entry in (sgd.sgd_epoch, sgd.count_nonzeros):\n"
        "    print(compiling.for_cache(entry.function, 'f4').__qualname__)\n"
        "    print(compiling.for_cache(entry.function, 'f8').__qualname__)\n"
    )

    def names():
        return output_of(script, PYTHONPATH=str(tmp_path)).split()

    before = names()
    assert len(set(before)) == 4  # also by dtype
    file = tmp_path / "quadric" / "kernels" / f"{edited}.py"
    text, when = file.read_text(), file.stat()
    file.write_text(text[:3] + text[3].swapcase() + text[4:])  # the first letter of its docstring
    os.utime(file, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert file.stat().st_size == when.st_size
    assert not set(before) & set(names())


# ---- sparse and unusual input --------------------------------------------------------------


def test_csr_with_strided_indices_equals_dense():
    rng = np.random.default_rng(15)
    D = sparse_rows(rng, 20, 6)
    C = sparse.csr_array(D)
    wide = np.full(2 * C.nnz, 5, np.int32)
    wide[::2] = C.indices
    starts = np.full(2 * len(C.indptr), 3)
    starts[::2] = C.indptr
    S = sparse.csr_array((C.data, wide[::2], starts[::2]), shape=C.shape)
    Y = targets("binary_cross_entropy", 20, 2, rng)
    one = make_network(("linear", "quadratic"), "tanh", "logistic", n=6)
    other = one.copy()
    one.fit(S, Y)
    other.fit(D, Y)
    assert max_difference(one, other) < 1e-14


@pytest.mark.parametrize("bad", [6, 7, -1, 100_000_000])
def test_csr_with_columns_out_of_range_is_refused(bad):
    X = sparse.csr_array(np.eye(6))
    X.indices = X.indices.copy()
    X.indices[3] = bad
    net = make_network(("linear", "quadratic"), "tanh", "logistic", n=6)
    before = net.copy()
    with pytest.raises(ValueError, match="X must be a valid CSR matrix"):
        net.fit(X, np.ones((6, 2)))
    assert max_difference(net, before) == 0.0


def test_csr_with_duplicates_and_a_false_flag_equals_dense():
    X = sparse.csr_array((np.ones(6000), np.tile(np.arange(6), 1000), [0, 6000]), shape=(1, 6))
    X.has_canonical_format = True
    net = make_network(("linear", "quadratic"), "tanh", "logistic", n=6)
    other = net.copy()
    net.fit(X, np.ones((1, 2)), learning_rate=1e-6)
    other.fit(np.full((1, 6), 1000.0), np.ones((1, 2)), learning_rate=1e-6)
    assert max_difference(net, other) < 1e-12


def test_dense_rows_that_are_mostly_zeros_are_compressed_exactly(monkeypatch):
    from quadric.training._steppers import _compress

    monkeypatch.setattr(_steppers, "WORTH_COMPRESSING", 0)
    rng = np.random.default_rng(16)
    for n in (1, 7, 16, 33, 100):
        for dtype in (np.float32, np.float64):
            X = (rng.normal(size=(40, n)) * (rng.random((40, n)) < 0.3)).astype(dtype)
            X[3] = 0
            compressed = _compress(X)
            assert sparse.issparse(compressed)
            compressed.check_format()
            assert np.array_equal(compressed.toarray(), X)
            full = rng.normal(size=(5, n)).astype(dtype)
            assert _compress(full) is full


@pytest.mark.parametrize("mean", [100.0, 1000.0])
def test_a_large_offset_on_dense_data_loses_no_precision(mean):
    rng = np.random.default_rng(17)
    X = (mean + rng.normal(size=(50, 4))).astype(np.float32)
    Y = targets("binary_cross_entropy", 50, 2, rng)
    one = make_network(("linear", "quadratic"), "tanh", "logistic", n=4, dtype="float32")
    other = one.copy()
    one.fit(X, Y, offset=-mean)
    other.fit(X - np.float32(mean), Y)
    assert max_difference(one, other) == 0.0


def test_a_loss_that_overflows_stops_training():
    net = make_network(["linear"], "tanh", "identity", widths=(2,))
    with pytest.raises(DivergenceError) as caught:
        net.fit(np.zeros((3, 3)), np.full((3, 2), 1e160), learning_rate=1e-300, epochs=1)
    assert caught.value.layer == 0
    assert caught.value.sample is not None
