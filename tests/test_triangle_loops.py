"""The compiled loops over triangles, called by address: right, and not a byte outside."""

import ctypes
import mmap

import numpy as np
import pytest

from quadric.kernels import triangles

torch = pytest.importorskip("torch")
from quadric.torch import compiled  # noqa: E402

PAGE = mmap.PAGESIZE
MARK = 0xA5
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Guarded:
    """Numbers flush with a page that cannot be touched, and marked memory on the other side."""

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


def random_case(rng):
    B = int(rng.choice([0, 1, 7, 16, 17, 31, 32, 33, 64, 65, 255, 256, 257, 513, 600]))
    n = int(rng.integers(1, 12) if rng.random() < 0.7 else rng.integers(1, 130))
    m = int(rng.integers(1, 7) if rng.random() < 0.7 else rng.integers(1, 40))
    if B * n * n * m > 2e7:
        B %= 40
    stride = int(
        rng.choice([n, n, n + 1, n + 7, 0])
    )  # whole rows, columns of a wider array, one row
    return B, n, m, stride, int(rng.choice([1, 2, 3, 5, 17]))


def check(rng):
    """One random case of all three loops: the numbers of einsum, and nothing beside them."""
    dtype = str(rng.choice(["float32", "float64"]))
    B, n, m, stride, tickets = random_case(rng)
    pairs = n * (n + 1) // 2
    item, at_the_end = np.dtype(dtype).itemsize, bool(rng.random() < 0.5)

    def guarded(numbers):
        return Guarded(numbers.astype(dtype), at_the_end=at_the_end)

    x = guarded(rng.normal(size=(B - 1) * stride + n if B else 0))
    T, dz = guarded(rng.normal(size=(pairs, m))), guarded(rng.normal(size=(B, m)))
    z, dx, dT = (guarded(np.full(size, np.nan)) for size in ((B, m), (B, n), (pairs, m)))
    given = [(buffer, buffer.numbers.copy()) for buffer in (x, T, dz)]
    buffers = [x, T, dz, z, dx, dT]

    def run(loop, width, room, *tensors):
        memory = guarded(np.full(tickets * room, np.nan))
        buffers.append(memory)
        addresses = [buffer.address for buffer in (*tensors, memory)]
        loop(dtype, compiled._team, tickets, B, n, m, stride, width, room, *addresses)

    width = triangles.tile(item)
    run(triangles.forward, width, triangles.forward_room(n, m, width), x, T, z)
    run(triangles.backward_x, width, triangles.backward_x_room(n, m, width), x, T, dz, dx)
    if B:
        width = triangles.backward_T_width(B, item)
        run(triangles.backward_T, width, triangles.backward_T_room(n, m, width), x, dz, dT)
    assert all(buffer.untouched_outside() for buffer in buffers)
    assert all(np.array_equal(buffer.numbers, before) for buffer, before in given)

    at = stride * np.arange(B)[:, None] + np.arange(n)
    numbers = x.numbers[at], T.numbers.reshape(pairs, m), dz.numbers.reshape(B, m)
    numbers = [array.astype(float) for array in numbers]
    wanted, sizes = exact(*numbers), exact(*map(np.abs, numbers))  # the sums, and of what sizes
    tolerance = 1e-6 if dtype == "float32" else 2e-15
    for found, true, size in zip((z, dx, dT), wanted, sizes, strict=True):
        if B:
            assert (np.abs(found.numbers - true.reshape(-1)) <= tolerance * size.reshape(-1)).all()


def exact(X, T, D):
    """z, dx and dT."""
    rows, columns = np.triu_indices(X.shape[1])
    Q = np.zeros((T.shape[1], X.shape[1], X.shape[1]))
    Q[:, rows, columns] = Q[:, columns, rows] = T.T
    V = np.einsum("kij,bj->bki", Q, X)
    monomials = X[:, rows] * X[:, columns] * np.where(rows == columns, 1, 2)
    return np.einsum("bki,bi->bk", V, X), 2 * np.einsum("bki,bk->bi", V, D), monomials.T @ D


@pytest.mark.skipif(compiled._team is None, reason="no OpenMP of GNU's kind")
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.full)])
def test_numbers_and_memory(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        check(rng)


def test_the_guards_would_notice():
    guarded = Guarded(np.zeros(5), at_the_end=True)
    assert guarded.untouched_outside()
    ctypes.memset(guarded.address - 1, 0, 1)
    assert not guarded.untouched_outside()
