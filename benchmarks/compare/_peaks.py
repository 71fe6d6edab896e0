"""The machine's peaks, measured: multiply-adds in registers, and bytes from caches and memory."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from benchmarks.timing import best_seconds
from quadric.kernels._compiling import OPTIONS
from quadric.kernels._lanes import load, multiply_add, pointer, store, zeros
from quadric.kernels._quadratic_form_loops import UNITS

KIB, MIB = 1024, 1024**2
# smaller than L1 (32 KiB), larger than L1 but smaller than L2, larger than all caches
PLACES = {"L1": 16 * KIB, "L2": 160 * KIB, "memory": 256 * MIB}
ROUNDS = 9


@numba.njit(**OPTIONS)
def _multiply_adds(numbers, steps):
    """Twelve products per step, of blocks that stay in registers, in six chains."""
    at = pointer(numbers)
    x, y = load(at, 0, zeros(at, UNITS)), load(at, 16, zeros(at, UNITS))
    a = b = c = d = e = f = x
    for _ in range(steps):
        a, b, c = multiply_add(a, x, y), multiply_add(b, x, y), multiply_add(c, x, y)
        d, e, f = multiply_add(d, x, y), multiply_add(e, x, y), multiply_add(f, x, y)
        a, b, c = multiply_add(a, x, y), multiply_add(b, x, y), multiply_add(c, x, y)
        d, e, f = multiply_add(d, x, y), multiply_add(e, x, y), multiply_add(f, x, y)
    store(at, 0, (a + b + c) + (d + e + f))


@numba.njit(**OPTIONS)
def _read(numbers, passes):
    """Add all numbers to four sums, `passes` times."""
    at = pointer(numbers)
    s = t = u = v = zeros(at, 1)
    for _ in range(passes):
        for p in range(0, numbers.size, 64):
            s, t = s + load(at, p, s), t + load(at, p + 16, s)
            u, v = u + load(at, p + 32, s), v + load(at, p + 48, s)
    store(at, 0, (s + t) + (u + v))


@numba.njit(**OPTIONS)
def _update(numbers, passes):
    """Load, multiply, add and store all numbers, as a step of SGD updates the weights."""
    at = pointer(numbers)
    x = zeros(at, 1)
    for _ in range(passes):
        for p in range(0, numbers.size, 64):
            store(at, p, multiply_add(load(at, p, x), x, load(at, p, x)))
            store(at, p + 16, multiply_add(load(at, p + 16, x), x, load(at, p + 16, x)))
            store(at, p + 32, multiply_add(load(at, p + 32, x), x, load(at, p + 32, x)))
            store(at, p + 48, multiply_add(load(at, p + 48, x), x, load(at, p + 48, x)))


def peaks() -> dict[str, float]:
    """Return the highest rates of one core: floating-point operations and bytes per second."""
    small = np.zeros(64, np.float32)
    steps = 100_000
    block = 16 * UNITS  # float32 numbers
    found = {"FLOP/s": 2 * 12 * block * steps / _best(lambda: _multiply_adds(small, steps))}
    for place, size in PLACES.items():
        numbers = _aligned(size // 4)
        passes = max(1, 64 * MIB // size)
        found[f"{place}, read"] = size * passes / _best(lambda a=numbers, p=passes: _read(a, p))
        moved = 2 * size * passes  # every number is loaded and stored
        found[f"{place}, update"] = moved / _best(lambda a=numbers, p=passes: _update(a, p))
    return found


def _aligned(count: int) -> np.ndarray:
    """Ones that begin at a cache line; zeros would share one page of memory."""
    numbers = np.ones(count + 16, np.float32)
    skip = -numbers.ctypes.data % 64 // 4
    return numbers[skip : skip + count]


def _best(run: Callable[[], object]) -> float:
    return best_seconds({"": run}, rounds=ROUNDS)[""]
