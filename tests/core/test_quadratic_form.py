"""x'Qx of NumPy batches and its gradients, from packed triangles."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from threadpoolctl import threadpool_limits

from quadric.core import _quadratic_form as quadratic_form
from quadric.core._quadratic_form import gradients, values
from quadric.kernels import PythonThreads

TOLERANCE = {np.dtype("float32"): 1e-5, np.dtype("float64"): 1e-13}


def draw(B, n, m, dtype="float64", seed=0):
    """Return X, packed and dL/dz."""
    rng = np.random.default_rng(seed)
    shapes = (B, n), (n * (n + 1) // 2, m), (B, m)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def computed(X, packed, dz):
    return values(X, packed), *gradients(X, packed, dz)


def by_einsum(X, packed, dz):
    """Return the same in float64, computed from full matrices."""
    X, packed, dz = (array.astype(np.float64) for array in (X, packed, dz))
    Q, (rows, columns) = quadratic_form.unpack(packed), np.triu_indices(X.shape[1])
    z = np.einsum("bi,kij,bj->bk", X, Q, X, optimize=True)
    dX = 2 * np.einsum("bk,kij,bj->bi", dz, Q, X, optimize=True)
    M = X[:, rows] * X[:, columns] * np.where(rows == columns, 1, 2)
    return z, dX, M.T @ dz


def assert_close(found, wanted, tolerance):
    for ours, true in zip(found, wanted, strict=True):
        assert ours.shape == true.shape
        scale = np.abs(true).max(initial=0)
        np.testing.assert_allclose(ours, true, rtol=0, atol=tolerance * scale)


@pytest.mark.slow
@given(
    B=st.integers(0, 300),
    n=st.integers(1, 40),
    m=st.integers(1, 20),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80)
def test_values_and_gradients_match_einsum(B, n, m, dtype, seed):
    arrays = draw(B, n, m, dtype, seed)
    found = computed(*arrays)
    assert all(array.dtype == dtype for array in found)
    assert_close(found, by_einsum(*arrays), TOLERANCE[np.dtype(dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [127, 128, 129, 300])
def test_more_inputs_than_a_block_of_columns(n, dtype):
    arrays = draw(150, n, 3, dtype)
    assert_close(computed(*arrays), by_einsum(*arrays), TOLERANCE[np.dtype(dtype)])


def views_of_the_same_numbers(X):
    B, n = X.shape
    wide = np.full((B, n + 5), np.nan, X.dtype)
    wide[:, 2:-3] = X
    apart = np.full((2 * B, n), np.nan, X.dtype)
    apart[::2] = X
    spread = np.full((B, 2 * n), np.nan, X.dtype)
    spread[:, ::2] = X
    records = np.zeros(B, [("tag", "u1"), ("numbers", X.dtype, (n,))])
    records["numbers"] = X
    return {
        "columns of a wider array": wide[:, 2:-3],
        "every other row": apart[::2],
        "every other column": spread[:, ::2],
        "transposed": np.asfortranarray(X),
        "rows backwards": X[::-1].copy()[::-1],
        "columns backwards": X[:, ::-1].copy()[:, ::-1],
        "not aligned": records["numbers"],
        "other byte order": X.astype(X.dtype.newbyteorder()),
        "read-only": np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    }


@pytest.mark.parametrize("kind", views_of_the_same_numbers(np.ones((2, 2))))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_with_other_memory_layouts(kind, dtype):
    arrays = draw(40, 6, 5, dtype)
    views = [views_of_the_same_numbers(array)[kind] for array in arrays]
    assert all(np.array_equal(view, array) for view, array in zip(views, arrays, strict=True))
    for ours, true in zip(computed(*views), computed(*arrays), strict=True):
        assert ours.dtype == true.dtype == dtype
        assert np.array_equal(ours, true)


def test_one_row_for_all_samples():
    X, packed, _ = draw(1, 6, 5)
    z = values(np.broadcast_to(X, (40, 6)), packed)
    assert np.array_equal(z, np.broadcast_to(values(X, packed), (40, 5)))


def test_the_result_has_the_common_dtype_of_the_arguments():
    X, packed, dz = draw(7, 3, 2, "float32")
    exact = computed(X.astype(float), packed.astype(float), dz.astype(float))
    for ours, true in zip(computed(X, packed.astype(float), dz.astype(float)), exact, strict=True):
        assert ours.dtype == np.float64
        assert np.array_equal(ours, true)
    whole = np.arange(12).reshape(4, 3)
    assert np.array_equal(values(whole, packed), values(whole.astype(float), packed))
    half = X.astype(np.float16)
    assert values(half, packed).dtype == np.float32
    assert np.array_equal(values(half, packed), values(half.astype(np.float32), packed))


@given(
    B=st.integers(1, 300),
    n=st.integers(1, 40),
    m=st.integers(1, 12),
    count=st.integers(2, 7),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40)
def test_results_do_not_depend_on_the_number_of_threads(B, n, m, count, seed):
    arrays = draw(B, n, m, "float32", seed)
    alone = computed(*arrays)
    with pytest.MonkeyPatch.context() as patch:
        team = PythonThreads(lambda: count)
        team.worth = 1
        patch.setattr(quadratic_form, "_team", lambda: team)
        together = computed(*arrays)
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_as_many_threads_as_numpy_uses(monkeypatch):
    """The limits of threadpoolctl are respected, and the result is bit-identical."""
    tickets, run = [], PythonThreads.run

    def counted(self, function, arguments, count):
        tickets.append(count)
        run(self, function, arguments, count)

    monkeypatch.setattr(PythonThreads, "run", counted)
    arrays = draw(600, 100, 10)  # 30 million multiplications, enough for 7 threads
    results = {}
    for count in (1, 2):
        with threadpool_limits(count):
            assert quadratic_form._team().count() == count
            results[count] = computed(*arrays)
    assert tickets == [2, 2]  # a single thread needs no team
    assert all(np.array_equal(a, b) for a, b in zip(results[1], results[2], strict=True))


INTERRUPTED = """
import signal
import numpy as np
from quadric.core import _quadratic_form as form

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

team = form.kernels.PythonThreads(lambda: 4)
team.worth = 1
form._team = lambda: team
rng = np.random.default_rng(0)
X, packed = rng.normal(size=(400, 40)), rng.normal(size=(820, 30))
true = form.values(X, packed)
signal.signal(signal.SIGALRM, interrupt)
interrupts = 0
while interrupts < 200:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 2e-3))
        while True:
            form.values(X, packed)
    except Interrupt:
        interrupts += 1
    assert np.array_equal(form.values(X, packed), true)
print("survived")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_interrupted_calls_leave_no_thread_that_uses_their_memory():
    """Otherwise the process would crash, or a later result would be wrong."""
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert found.stdout == "survived\n", found.stderr


def test_a_gradient_of_another_shape_is_an_error():
    X, packed, dz = draw(6, 4, 3)
    with pytest.raises(ValueError, match=r"dz must have shape \(6, 3\). Got \(6, 2\) instead."):
        gradients(X, packed, dz[:, :2])


def test_values_that_are_not_finite():
    """They affect only their own samples, except for dL/dpacked, which sums over all."""
    X, packed, dz = draw(40, 6, 5)
    z, dX, _ = computed(X, packed, dz)
    X[3, 2], X[17, 0] = np.nan, np.inf
    found_z, found_dX, found_gradient = computed(X, packed, dz)
    good = np.delete(np.arange(40), [3, 17])
    assert np.array_equal(found_z[good], z[good])
    assert np.array_equal(found_dX[good], dX[good])
    assert not np.isfinite(found_z[[3, 17]]).any()
    assert not np.isfinite(found_gradient).all()


def test_an_empty_batch_has_a_gradient_of_zeros():
    z, dX, gradient = computed(*draw(0, 3, 2, "float32"))
    assert z.shape == (0, 2)
    assert dX.shape == (0, 3)
    assert gradient.shape == (6, 2)
    assert gradient.dtype == np.float32
    assert not gradient.any()


def test_arrays_are_not_changed():
    arrays = draw(20, 5, 4)
    before = [array.copy() for array in arrays]
    computed(*arrays)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


@pytest.mark.slow
def test_disabled_compilation_is_an_error():
    script = (
        "import numpy as np\n"
        "from quadric.core._quadratic_form import values\n"
        "values(np.ones((1, 1)), np.ones((1, 1)))\n"
    )
    environment = dict(os.environ) | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 1
    assert "Unset NUMBA_DISABLE_JIT." in run.stderr
