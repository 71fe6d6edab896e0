"""z_k = x'Q_k x and its gradients for a batch, on arrays given by their addresses.

`_quadratic_form_loops` contains and describes the loops.
"""

from collections.abc import Callable
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from quadric.kernels import _quadratic_form_loops as loops
from quadric.kernels._lanes import UNIT_BYTES
from quadric.kernels._quadratic_form_loops import APART, COLUMNS, J_BLOCK, UNITS, WIDTH


class Batch(NamedTuple):
    """B samples of n numbers each, for m neurons.

    `x` is the address of the first sample, and consecutive samples are `stride` numbers apart. All
    other addresses passed to the functions are those of contiguous arrays of the same dtype: P and
    dP of shape (n(n+1)/2, m), z and dz of shape (B, m), and dx of shape (B, n). At most `threads`
    threads share the work. ``run(function, arguments)`` makes all of them call the function at the
    address `function`.
    """

    dtype: np.dtype[Any]
    B: int
    n: int
    m: int
    x: int
    stride: int
    threads: int
    run: Callable[[int, Any], None]

    @property
    def lanes(self) -> int:
        return UNITS * UNIT_BYTES // self.dtype.itemsize


def write_values(batch: Batch, P: int, z: int) -> None:
    """Write z_k = x'Q_k x."""
    room = (batch.n + batch.m + 1) * WIDTH + COLUMNS * (batch.lanes + J_BLOCK)
    _run(loops.values, batch, -(-batch.B // batch.lanes), room, P, z, 0)


def write_input_gradient(batch: Batch, P: int, dz: int, dx: int) -> None:
    """Write dL/dx."""
    room = (2 * batch.n + batch.m) * WIDTH + COLUMNS * (batch.lanes + J_BLOCK)
    _run(loops.input_gradient, batch, -(-batch.B // batch.lanes), room, P, dz, dx)


def write_packed_gradient(batch: Batch, dz: int, dP: int) -> None:
    """Write dL/dP; there must be at least one sample."""
    room = (2 * (batch.n + batch.lanes) + batch.m + COLUMNS) * APART + COLUMNS * batch.lanes
    _run(loops.packed_gradient, batch, batch.n, room, dP, dz, 0)


def _run(loop: Any, batch: Batch, parts: int, room: int, *addresses: int) -> None:
    """Run the loop, shared among at most `parts` threads, each with memory for `room` numbers."""
    dtype, B, n, m, x, stride, threads, run = batch
    tickets = max(1, min(parts, threads))
    unit = UNIT_BYTES // dtype.itemsize
    room = -(-room // unit) * unit
    memory = np.empty(tickets * room + unit, dtype)
    aligned = -(-memory.ctypes.data // UNIT_BYTES) * UNIT_BYTES
    group = COLUMNS // gcd(COLUMNS, m)
    loop(dtype, run, tickets, B, n, m, stride, group, room, aligned, x, *addresses)
