"""Run the loops for z_k = x'Q_k x and its gradients, on arrays given by their addresses.

A team of threads shares the work of a loop. `_quadratic_form_loops` and `_loops_over_neurons` have
the two forms of each loop, and `_forms` chooses between them.
"""

import _thread
import contextlib
import ctypes
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any, ClassVar

import numpy as np

from quadric.kernels import _forms
from quadric.kernels._compiling import SharedLoop
from quadric.kernels._lanes import UNIT_BYTES
from quadric.kernels._loops_over_neurons import (
    input_gradient_over_neurons,
    packed_gradient_over_neurons,
    room_of_rows,
    room_over_neurons,
    rows_of_items,
    sums_of_rows,
    values_of_items,
)
from quadric.kernels._quadratic_form_loops import (
    APART,
    COLUMNS,
    DP,
    DX,
    UNITS,
    arguments_at,
    input_gradient_of_samples,
    packed_gradient_over_inputs,
    values_of_samples,
)

LANES = UNITS * UNIT_BYTES // 4  # in float32; in float64, there are half as many
COPY = 16
ROWS, SUMS = 8, 16  # the two steps of z for few items; further bits of `forms`


@SharedLoop
def values(like, ticket):
    """z, shape (B, m)."""
    given = arguments_at(like)
    if given.forms & ROWS:
        rows_of_items(given, ticket)
    elif given.forms & SUMS:
        sums_of_rows(given)
    elif given.forms & _forms.Z:
        values_of_items(given, ticket)
    else:
        values_of_samples(given, ticket)


@SharedLoop
def gradients(like, ticket):
    """dL/dx, shape (B, n), and dL/dP from dL/dz."""
    given = arguments_at(like)
    if given.counter[DX] != 0:
        if given.forms & _forms.DX:
            input_gradient_over_neurons(given, ticket)
        else:
            input_gradient_of_samples(given, ticket)
    if given.counter[DP] != 0:
        if given.forms & _forms.DP:
            packed_gradient_over_neurons(given, ticket)
        else:
            packed_gradient_over_inputs(given, ticket)


# A team of threads shares the work of a loop. It has up to `count()` threads, and `worth` is the
# number of multiplications for which a thread is worthwhile. `run` calls the function at an address
# from several threads, until all tickets are taken. The argument of the function is the address of
# `arguments`, which is ``arguments.buffer_info()[0]``.


@dataclass
class PythonThreads:
    """A team of Python threads.

    New threads are started for each call, which takes 50 to 250 µs. No thread outlives a call, so
    forking is safe.
    """

    count: Callable[[], int]
    worth: ClassVar[int] = 3 * 2**22  # they take about 500 µs

    def run(self, function: int, arguments: Any, tickets: int) -> None:
        """Call the function at the given address from as many threads as there are tickets."""
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)  # releases the GIL
        begun: list[None] = []
        ended: list[None] = []

        def take_part(end: Any) -> None:
            begun.append(None)
            call(arguments.buffer_info()[0])  # keeps the arguments alive for a thread that is late
            ended.append(None)
            end.release()

        ends = [_thread.allocate_lock() for _ in range(tickets - 1)]
        try:
            for end in ends:
                end.acquire()
                # a signal handler that raises an exception can block a threading.Thread forever
                _thread.start_new_thread(take_part, (end,))
            call(arguments.buffer_info()[0])
            for end in ends:
                end.acquire()
        except BaseException:  # an interrupt, or no more threads
            arguments[0] = tickets  # a thread that asks for a ticket now gets none
            while len(ended) < len(begun):  # they use the caller's memory
                with contextlib.suppress(BaseException):  # wait even if there are more interrupts
                    time.sleep(1e-4)
            raise


@dataclass
class OpenMPThreads:
    """A team of all OpenMP threads of this process, run through `parallel`, which is GOMP_parallel.

    Other threads would compete with them, because OpenMP's threads keep their cores busy for a
    while after finishing. All of them are used each time, because OpenMP ends and starts threads
    when their number changes. Threads without a share of the work return at once.
    """

    parallel: Any
    count: Callable[[], int]
    worth: ClassVar[int] = 2**18  # they take about 10 µs

    def run(self, function: int, arguments: Any, tickets: int) -> None:
        """Call the function at the given address from all OpenMP threads."""
        self.parallel(function, arguments.buffer_info()[0], 0, 0)


def run_quadratic_form(
    loop: SharedLoop,
    team: PythonThreads | OpenMPThreads,
    dtype: np.dtype[Any],
    sizes: tuple[int, int, int, int],
    addresses: Sequence[int],
) -> None:
    """Run a loop of the quadratic form.

    Parameters
    ----------
    loop : `values` or `gradients`
        `values` writes z. `gradients` reads dL/dz from z, and writes dL/dx and dL/dP. It needs at
        least one sample.
    team : PythonThreads or OpenMPThreads
        The threads that share the work.
    dtype : dtype
        The dtype of all arrays.
    sizes : B, n, m and stride
        There are B samples of n numbers each, `stride` numbers apart, and m neurons.
    addresses : x, P, z, dx and dP
        All arrays except x are contiguous: P and dP of shape (n(n+1)/2, m), z of shape (B, m), and
        dx of shape (B, n). A gradient whose address is 0 is not computed.
    """
    B, n, m, stride = sizes
    call, function, forms, parts, group, room, size, work = _plan(loop, dtype, B, n, m)
    worth, ranges = team.worth, 1
    tickets = 1 if work < 2 * worth else min(team.count(), work // worth)
    if tickets > 1 and loop is values:
        if forms & _forms.Z and parts < tickets * COLUMNS:
            forms = ROWS
            size = -(-room_of_rows(B, n, m) * dtype.itemsize // (tickets * UNIT_BYTES)) * UNIT_BYTES
        elif forms & _forms.Z:
            tickets = min(tickets, parts)
        else:
            ranges = max(1, min(m, tickets // parts))
            tickets = ranges * min(tickets, parts)
    elif tickets > 1:
        tickets = max(1, min(tickets, max(parts, n) if addresses[4] else parts))
    memory, start = _scratch.kept  # `memory` must stay alive during the call
    if memory.size < tickets * size:
        memory, start = _scratch.keep(_aligned(tickets * size))
    shape = B, n, m, stride, group, room
    arguments = array("q", (0, tickets, *shape, start, *addresses, forms, ranges))
    if tickets == 1:
        call(arguments.buffer_info()[0])
        return
    # while threads use the memory, this one may run a signal handler that calls a loop
    _scratch.kept = NOTHING
    team.run(function, arguments, tickets)
    if forms == ROWS:
        arguments = array("q", (0, 1, *shape, start, *addresses, SUMS, ranges))
        call(arguments.buffer_info()[0])
    _scratch.keep((memory, start))


@lru_cache(maxsize=256)  # so that calls for small batches take less time
def _plan(loop: SharedLoop, dtype: np.dtype[Any], B: int, n: int, m: int) -> tuple[Any, ...]:
    """Return what depends only on these arguments.

    These are the compiled loop, its address, the forms, the number of parts into which z or dL/dx
    can be divided, the number of rows in a group, the memory of a ticket, in numbers and bytes, and
    the work, in multiplications; a number of x or z that is copied counts as COPY of them.
    """
    lanes = UNIT_BYTES // dtype.itemsize
    forms = _forms.forms(B, n, m, lanes)
    parts = -(-B // (UNITS * lanes))  # samples that fill the lanes
    if forms & (_forms.Z if loop is values else _forms.DX):
        parts = B * -(-m // lanes) if loop is values else B
    # dL/dP needs the most: panels, columns of x, dz and D, and sums. Whole blocks stay aligned.
    needed = (n + LANES) * APART + (n + m + COLUMNS) * APART + COLUMNS * LANES
    if forms:
        needed = max(needed, room_over_neurons(B if forms & ~_forms.DP else 0, n, m, lanes))
    room = -(-needed // LANES) * LANES
    call, function = loop.compiled_for(dtype)
    group, work = COLUMNS // gcd(COLUMNS, m), B * (n * (n + 1) // 2 * m + COPY * (n + m))
    return call, function, forms, parts, group, room, room * dtype.itemsize, work


def _aligned(size: int) -> tuple[Any, int]:
    """Return an aligned array of `size` bytes, and its address."""
    memory = np.empty(size + UNIT_BYTES, np.uint8)
    skipped = -memory.ctypes.data % UNIT_BYTES
    return memory[skipped : skipped + size], memory.ctypes.data + skipped


NOTHING = _aligned(0)


class _Scratch(threading.local):
    """The memory that the calls of a thread use one after the other.

    For small batches, getting new memory from the system would take longer than the loops.
    """

    kept = NOTHING
    most = 2**22  # bytes; larger memory is not kept

    def keep(self, memory: tuple[Any, int]) -> tuple[Any, int]:
        """Return the memory, which is kept for the next call if it is not too large."""
        if memory[0].size <= self.most:
            self.kept = memory
        return memory


_scratch = _Scratch()
