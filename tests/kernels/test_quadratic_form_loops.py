"""The compiled loops of the quadratic form are correct and write nothing outside their arrays."""

import ctypes
import mmap
import threading

import numpy as np
import pytest

from quadric import kernels
from quadric.core import _quadratic_form as core
from quadric.kernels import PythonThreads, _forms, _quadratic_form as loops

PAGE = mmap.PAGESIZE
MARK = 0xA5
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Guarded:
    """An array next to a protected page, with marked memory on the other side."""

    def __init__(self, numbers, *, at_the_end):
        size = numbers.nbytes
        inner = -(-size // PAGE) * PAGE
        memory = mmap.mmap(-1, inner + 2 * PAGE)
        start = PAGE + (inner - size if at_the_end else 0)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        everything = np.frombuffer(memory, np.uint8)
        everything[:] = MARK
        self.outside = everything[PAGE:start], everything[start + size : -PAGE]
        self.numbers = everything[start : start + size].view(numbers.dtype)
        self.numbers[:] = numbers.reshape(-1)
        self.address = base + start
        for page in (base, base + PAGE + inner):
            assert libc.mprotect(page, PAGE, 0) == 0

    def untouched_outside(self):
        return all((part == MARK).all() for part in self.outside)


class GuardedNumPy:
    """A replacement for NumPy in the module of the loops; it guards the memory of each call.

    The module allocates one unit more than it needs, to align the rest. This class omits the unit,
    because guarded memory is aligned.
    """

    uint8 = np.uint8

    def __init__(self, *, at_the_end):
        self.at_the_end, self.allocated = at_the_end, []

    def empty(self, count, dtype):
        size = count - loops.UNIT_BYTES
        memory = Guarded(np.full(size, 0xFF, dtype), at_the_end=self.at_the_end)  # NaN
        assert memory.address % loops.UNIT_BYTES == 0
        self.allocated.append(memory)
        return memory.numbers


class Team(PythonThreads):
    """A team with at most as many threads as tickets, all of which get work."""

    worth = 1

    def __init__(self, count):
        super().__init__(lambda: count)


def run_loop(loop, team, *arguments):
    """Run a loop with the threads of a team."""
    loops.run_quadratic_form(loop, team, *arguments)


SAMPLES = [0, 1, 7, 15, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 257, 385, 513, 600]
INPUTS = [127, 128, 129, 131, 250, 255, 256, 257, 263, 300]  # across blocks of J_BLOCK


def random_case(rng):
    B, kind = int(rng.choice(SAMPLES)), rng.random()
    n = int(rng.integers(1, 14) if kind < 0.5 else rng.integers(1, 128))
    m = int(rng.integers(1, 8) if rng.random() < 0.7 else rng.integers(1, 40))
    if kind > 0.8:
        n, m = int(rng.choice(INPUTS)), int(rng.integers(1, 8))
    if B * n * n * m > 3e7:
        B %= 40
    # complete rows, columns of a wider array, one row for all samples
    stride = int(rng.choice([n, n, n + 1, n + 7, 0]))
    return B, n, m, stride, int(rng.choice([1, 2, 3, 5, 17]))


@pytest.fixture
def forced(monkeypatch):
    """A function that makes neurons the lanes of the given results."""

    def force(forms):
        monkeypatch.setattr(_forms, "forms", lambda *shape: forms)
        loops._plan.cache_clear()

    yield force
    loops._plan.cache_clear()


def check(rng):
    """Check one random case of both loops: agreement with einsum, no writes outside."""
    dtype = str(rng.choice(["float32", "float64"]))
    B, n, m, stride, tickets = random_case(rng)
    pairs = n * (n + 1) // 2
    at_the_end = bool(rng.random() < 0.5)
    numpy = GuardedNumPy(at_the_end=at_the_end)

    def guarded(numbers):
        return Guarded(numbers.astype(dtype), at_the_end=at_the_end)

    x = guarded(rng.normal(size=(B - 1) * stride + n if B else 0))
    P, dz = guarded(rng.normal(size=(pairs, m))), guarded(rng.normal(size=(B, m)))
    z, dx, dP = (guarded(np.full(size, np.nan)) for size in ((B, m), (B, n), (pairs, m)))
    given = [(buffer, buffer.numbers.copy()) for buffer in (x, P, dz)]

    team = Team(tickets)
    sizes, given_to_all = (B, n, m, stride), (x.address, P.address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "np", numpy)
        patch.setattr(loops, "_scratch", loops._Scratch())
        patch.setattr(loops._Scratch, "most", -1)  # each call gets new memory
        for loop, addresses in (
            (kernels.values, (z.address, 0, 0)),
            (kernels.gradients, (dz.address, dx.address, 0)),
            (kernels.gradients, (dz.address, 0, dP.address)),
            (kernels.gradients, (dz.address, dx.address, dP.address)),
        )[: 4 if B else 1]:
            run_loop(loop, team, np.dtype(dtype), sizes, (*given_to_all, *addresses))
    assert len(numpy.allocated) == (4 if B else 1)
    assert all(buffer.untouched_outside() for buffer in (x, P, dz, z, dx, dP, *numpy.allocated))
    assert all(np.array_equal(buffer.numbers, before) for buffer, before in given)

    at = stride * np.arange(B)[:, None] + np.arange(n)
    numbers = x.numbers[at], P.numbers.reshape(pairs, m), dz.numbers.reshape(B, m)
    numbers = [array.astype(float) for array in numbers]
    wanted, sizes = exact(*numbers), exact(*map(np.abs, numbers))  # the sums and their magnitudes
    tolerance = 1e-6 if dtype == "float32" else 2e-15
    for found, true, size in zip((z, dx, dP), wanted, sizes, strict=True):
        if B:
            assert (np.abs(found.numbers - true.reshape(-1)) <= tolerance * size.reshape(-1)).all()


def exact(X, P, D):
    """Return z, dx and dP."""
    (B, n), m = X.shape, P.shape[1]
    rows, columns = np.triu_indices(n)
    Q = np.zeros((n, n, m))
    Q[rows, columns] = Q[columns, rows] = P
    V = (X @ Q.reshape(n, n * m)).reshape(B, n, m)
    monomials = X[:, rows] * X[:, columns] * np.where(rows == columns, 1, 2)
    return np.einsum("bik,bi->bk", V, X), 2 * np.einsum("bik,bk->bi", V, D), monomials.T @ D


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.full)])
def test_loops_match_einsum_and_write_nothing_outside(count, forced):
    rng = np.random.default_rng(0)
    for number in range(count):
        forced(number % 8)  # every combination of the forms
        check(rng)


def test_the_choice_of_the_form_does_not_change_the_bits_of_z_and_dP(forced):
    """Hence predictions do not depend on the number of rows, and gradients not on the choice."""
    rng = np.random.default_rng(5)
    for B, n, m in ((1, 300, 10), (7, 129, 33), (300, 20, 3), (40, 64, 16), (257, 5, 70)):
        for dtype in ("float32", "float64"):
            shapes = (B, n), (n * (n + 1) // 2, m), (B, m)
            X, P, dz = (rng.normal(size=shape).astype(dtype) for shape in shapes)
            results = []
            for forms in (0, _forms.Z | _forms.DX | _forms.DP):
                forced(forms)
                dx, dP = core.gradients(X, P, dz)
                results.append((core.values(X, P), dP, dx))
            (z, dP, dx), (other_z, other_dP, other_dx) = results
            assert np.array_equal(z, other_z)
            assert np.array_equal(dP, other_dP)
            scale = np.abs(dx).max() * np.finfo(dtype).eps
            assert 0 < np.abs(dx - other_dx).max() < 1000 * scale  # other sums, so a second form


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("forms", [0, _forms.Z], ids=["samples", "neurons"])
def test_the_number_of_threads_does_not_change_the_bits_of_z(dtype, forms, forced):
    """The threads share samples, neurons, items, or the rows of Q."""
    forced(forms)
    rng = np.random.default_rng(7)
    shared = set()
    for B, n, m in ((1, 300, 10), (1, 9, 1), (2, 140, 40), (16, 130, 4), (33, 20, 7), (70, 30, 2)):
        X = rng.normal(size=(B, n)).astype(dtype)
        P = rng.normal(size=(n * (n + 1) // 2, m)).astype(dtype)
        found = []
        for count in (1, 2, 3, 5, 17):
            z = np.empty((B, m), dtype)

            class Noting(Team):
                def run(self, function, arguments, tickets):
                    shared.add((arguments[-2], arguments[-1] > 1))
                    super().run(function, arguments, tickets)

            addresses = X.ctypes.data, P.ctypes.data, z.ctypes.data, 0, 0
            run_loop(kernels.values, Noting(count), X.dtype, (B, n, m, n), addresses)
            found.append(z)
        assert all(np.array_equal(found[0], other) for other in found[1:])
    wanted = {(_forms.Z, False), (loops.ROWS, False)} if forms else {(0, False), (0, True)}
    assert shared == wanted


def test_predictions_do_not_depend_on_the_number_of_rows():
    rng = np.random.default_rng(6)
    for n, m in ((300, 10), (64, 64), (30, 1)):
        X = rng.normal(size=(50, n)).astype("float32")
        P = rng.normal(size=(n * (n + 1) // 2, m)).astype("float32")
        together = core.values(X, P)
        for B in (1, 2, 5, 9, 33):
            assert np.array_equal(core.values(X[:B], P), together[:B])


def test_torch_T5_few_rows_use_neurons_as_lanes():
    assert _forms.forms(1, 784, 10, 16) == _forms.Z | _forms.DX | _forms.DP
    assert _forms.forms(256, 128, 128, 16) == _forms.DP
    assert _forms.forms(1024, 64, 10, 16) == 0


def test_each_gradient_can_be_left_out():
    rng = np.random.default_rng(1)
    B, n, m = 40, 7, 5
    X, P, dz = (rng.normal(size=shape) for shape in ((B, n), (28, m), (B, m)))
    _, *wanted = exact(X, P, dz)
    for which in ((True, False), (False, True)):
        found = np.zeros((B, n)), np.zeros((28, m))
        addresses = [array.ctypes.data for array in (X, P, dz)]
        addresses += [array.ctypes.data * asked for array, asked in zip(found, which, strict=True)]
        run_loop(kernels.gradients, Team(2), X.dtype, (B, n, m, n), addresses)
        for array, true, asked in zip(found, wanted, which, strict=True):
            np.testing.assert_allclose(array, true * asked, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loop", ["z", "dx", "dP", "dx and dP"])
def test_work_is_shared(loop, forced):
    """The number of tickets is limited by threads, work, and parts.

    The parts are rows for dP, and tiles of samples for dx. For z, tiles and neurons are divided.
    """
    asked = []

    class Counting(Team):
        def run(self, function, arguments, tickets):
            asked.append(tickets)
            super().run(function, arguments, tickets)
            assert arguments[0] == 2 * tickets  # each thread asked for one more

    B, n, m = 50, 9, 2
    arrays = [np.ones(shape) for shape in ((B, n), (45, m), (B, m), (B, n), (45, m))]
    names = ["x", "P", "z", "dx", "dP"]
    always = ["x", "P", "z"]
    addresses = [
        array.ctypes.data if name in (*always, *loop.split(" and ")) else 0
        for name, array in zip(names, arrays, strict=True)
    ]
    work = B * (45 * m + loops.COPY * (n + m))

    def run(count, worth=1):
        team = Counting(count)
        team.worth = worth
        which = kernels.values if loop == "z" else kernels.gradients
        run_loop(which, team, np.dtype("float64"), (B, n, m, n), addresses)

    forced(0)
    tiles = -(-B * 8 // (loops.UNITS * loops.UNIT_BYTES))
    assert tiles < n
    run(3)
    run(40)
    run(40, worth=work // 2)
    run(40, worth=work)  # with one ticket, no thread is started
    run(1)
    assert asked == [3, {"z": tiles * m, "dx": tiles}.get(loop, n), 2]


def run_values(count, B=40, n=7, m=5):
    """Run the loop with this many threads, and return whether z is correct."""
    rng = np.random.default_rng(2)
    X, P = rng.normal(size=(B, n)), rng.normal(size=(n * (n + 1) // 2, m))
    z = np.empty((B, m))
    addresses = X.ctypes.data, P.ctypes.data, z.ctypes.data, 0, 0
    run_loop(kernels.values, Team(count), X.dtype, (B, n, m, n), addresses)
    return np.allclose(z, exact(X, P, np.zeros((B, m)))[0], rtol=1e-10)


def test_only_small_memory_is_kept_and_each_thread_has_its_own(monkeypatch):
    monkeypatch.setattr(loops, "_scratch", loops._Scratch())
    assert run_values(1)
    memory, address = kept = loops._scratch.kept
    assert memory.ctypes.data == address
    assert address % loops.UNIT_BYTES == 0
    assert run_values(1)
    assert run_values(1, B=3, n=2)
    assert loops._scratch.kept is kept  # the same memory was used again
    assert run_values(1, n=1500, B=2, m=1)
    assert loops._scratch.kept is kept  # larger memory is not kept
    others = []
    thread = threading.Thread(target=lambda: others.append(loops._scratch.kept))
    thread.start()
    thread.join()
    assert others == [loops.NOTHING]


def test_a_loop_that_a_signal_handler_runs_has_its_own_memory(monkeypatch):
    """A handler may run while other threads use the memory of an interrupted call."""
    monkeypatch.setattr(loops, "_scratch", loops._Scratch())
    assert run_values(1)
    used = []

    class Interrupted(Team):
        def run(self, function, arguments, tickets):
            used.append(arguments[8])
            assert run_values(1)  # as in a handler
            used.append(loops._scratch.kept[1])
            super().run(function, arguments, tickets)

    monkeypatch.setattr("tests.kernels.test_quadratic_form_loops.Team", Interrupted)
    assert run_values(2)
    assert len(set(used)) == 2


def test_the_guards_detect_writes_outside():
    guarded = Guarded(np.zeros(5), at_the_end=True)
    assert guarded.untouched_outside()
    ctypes.memset(guarded.address - 1, 0, 1)
    assert not guarded.untouched_outside()
