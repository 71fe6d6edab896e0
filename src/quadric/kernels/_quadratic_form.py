"""Run the loops for z_k = x'Q_k x and its gradients, on arrays given by their addresses.

`_quadratic_form_loops` contains and describes the loops.
"""

import ctypes
import struct
import threading
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from quadric.kernels._compiling import SharedLoop
from quadric.kernels._lanes import UNIT_BYTES
from quadric.kernels._quadratic_form_loops import APART, COLUMNS, UNITS, gradients, values

__all__ = ["gradients", "run", "values"]

LANES = UNITS * UNIT_BYTES // 4  # in float32; in float64, there are half as many
REST = COLUMNS * (APART + LANES) + LANES  # what the loops use besides tiles and panels


def run(
    loop: SharedLoop,
    team: Any,
    dtype: np.dtype[Any],
    B: int,
    n: int,
    m: int,
    stride: int,
    x: int,
    P: int,
    z: int,
    dx: int = 0,
    dP: int = 0,
) -> None:
    """Run a loop for B samples of n numbers each and m neurons.

    Parameters
    ----------
    loop : `values` or `gradients`
        `values` writes z. `gradients` reads dL/dz from z, and writes dL/dx and dL/dP. It needs at
        least one sample.
    team : object
        ``team.threads_for(work)`` is the number of threads for this many multiplications, and
        ``team.run(function, arguments, tickets)`` makes that many threads call the function at this
        address with the arguments.
    dtype, B, n, m : dtype and ints
        The dtype of all arrays and the sizes.
    stride, x : int
        Consecutive samples are `stride` numbers apart. The first is at the address `x`.
    P, z, dx, dP : int
        The addresses of contiguous arrays: P and dP of shape (n(n+1)/2, m), z of shape (B, m), and
        dx of shape (B, n). A gradient whose address is 0 is not computed.
    """
    call, function, group, room, size = _plan(loop, dtype, n, m)
    tickets = team.threads_for(B * n * (n + 1) // 2 * m)
    if tickets > 1:
        tiles = -(-B * dtype.itemsize // (UNITS * UNIT_BYTES))  # samples that fill the lanes
        tickets = max(1, min(tickets, max(tiles, n) if dP else tiles))
    memory, start = _scratch.kept  # `memory` must stay alive during the call
    if memory.size < tickets * size:
        memory, start = _scratch.memory(tickets * size)
    arguments = ARGUMENTS.from_buffer_copy(
        _as_bytes(0, tickets, B, n, m, stride, group, room, start, x, P, z, dx, dP)
    )
    if tickets == 1:
        call(arguments)
    else:
        team.run(function, arguments, tickets)


ARGUMENTS = ctypes.c_int64 * 14
_as_bytes = struct.Struct("14q").pack


@lru_cache(maxsize=128)  # saves more than half of the time that a call takes before its loop
def _plan(loop: SharedLoop, dtype: np.dtype[Any], n: int, m: int) -> tuple[Any, ...]:
    """Return the compiled loop and its address, the rows in a group, and a ticket's memory."""
    # enough for the tiles or panels of every loop; multiples of LANES keep the memory aligned
    room = ((2 * n + m + LANES) * APART + REST) // LANES * LANES
    return *loop.compiled_for(dtype), COLUMNS // gcd(COLUMNS, m), room, room * dtype.itemsize


class _Scratch(threading.local):
    """The memory that the calls of a thread use one after the other.

    For small batches, getting new memory from the system would take longer than the loops.
    """

    most = 2**22  # bytes; larger memory is not kept

    def __init__(self) -> None:
        self.kept = _aligned(0)

    def memory(self, size: int) -> tuple[Any, int]:
        """Return an aligned array of `size` bytes, and its address."""
        memory = _aligned(size)
        if size <= self.most:
            self.kept = memory
        return memory


def _aligned(size: int) -> tuple[Any, int]:
    memory = np.empty(size + UNIT_BYTES, np.uint8)
    skipped = -memory.ctypes.data % UNIT_BYTES
    return memory[skipped : skipped + size], memory.ctypes.data + skipped


_scratch = _Scratch()
