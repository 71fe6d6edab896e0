"""How the kernels are compiled, and kept for the next process."""

from __future__ import annotations

import ctypes
import pickle
import zlib
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types

from quadric.kernels import lanes

# No `nnan`, no `ninf`: with them a compiled isfinite is always true.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}


OPTIONS: Any = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
ONLY_CALLED_FROM_HERE: Any = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
block = numba.njit(**ONLY_CALLED_FROM_HERE)
inline = numba.njit(forceinline=True, **ONLY_CALLED_FROM_HERE)

# No directory to write to, a full disk or a damaged file is no reason to fail: the function is then
# compiled for this process alone. (numba saves before it runs, so nothing has run by then.)
CACHE_ERRORS = (OSError, EOFError, ImportError, AttributeError, pickle.UnpicklingError)

# numba's cache notices an edit in the file of the cached function, and in no other. So the name
# that a function has there tells the versions of the files on which all of them rest.
FOUNDATIONS = "".join(
    f"-{zlib.crc32(Path(file).read_bytes()):08x}" for file in (lanes.__file__, __file__)
)


class EntryPoint:
    """A compiled function that others call with arrays and numbers."""

    def __init__(self, function):
        function.__qualname__ += FOUNDATIONS
        self.uncached = numba.njit(**OPTIONS)(function)
        try:
            self.compiled = numba.njit(cache=True, **OPTIONS)(function)
        except RuntimeError:  # numba found no directory
            self.compiled = self.uncached

    def __call__(self, *arguments):
        try:
            return self.compiled(*arguments)
        except CACHE_ERRORS:
            if self.compiled is self.uncached:
                raise
            self.compiled = self.uncached
            return self.compiled(*arguments)


ARGUMENTS = ctypes.c_int64 * 12  # as many as the loop with the most of them takes


class SharedLoop:
    """A compiled loop that several threads run at once, sharing the work by tickets.

    All of them call the same function with the same address. What stands there is int64: a counter
    from which they take tickets, the number of tickets, and what else the loop needs. The type of
    the address tells it the dtype of its numbers.
    """

    def __init__(self, function):
        function.__qualname__ += FOUNDATIONS
        self.function = function
        self.compiled = {}

    def __call__(self, dtype, team, tickets, *numbers):
        """Run it: `team(address, arguments, tickets, 0)` has that many threads call the address."""
        if dtype not in self.compiled:
            self.compiled[dtype] = self._compile(dtype)
        call, address = self.compiled[dtype]
        arguments = ARGUMENTS(0, tickets, *numbers)
        if tickets == 1:
            call(arguments)
        else:
            team(address, arguments, tickets, 0)

    def _compile(self, dtype):
        signature = types.void(types.CPointer(numba.from_dtype(np.dtype(dtype))))
        options = {"fastmath": FASTMATH, "error_model": "numpy"}
        try:
            compiled = numba.cfunc(signature, cache=True, **options)(self.function)
        except (RuntimeError, *CACHE_ERRORS):
            compiled = numba.cfunc(signature, **options)(self.function)
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address), compiled.address
