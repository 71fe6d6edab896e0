"""Compile the kernels, and cache them for the next process."""

import contextlib
import ctypes
import functools
import hashlib
import pickle
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from llvmlite import binding
from numba import types
from numba.core.caching import FunctionCache

# `nnan` and `ninf` are omitted: with them, a compiled isfinite would always be true.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

OPTIONS: Any = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
# for functions that only other compiled functions call
INTERNAL: Any = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
block = numba.njit(**INTERNAL)
inline = numba.njit(forceinline=True, **INTERNAL)

ALLOWED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]

FORBIDDEN = (
    "numba must compile this function, but NUMBA_DISABLE_JIT is set. Unset NUMBA_DISABLE_JIT."
)

# Raised by numba if a cache is damaged or cannot be written. The function is then compiled for this
# process only, and a damaged cache is emptied. (numba saves a function before running it, so
# nothing has run yet.)
CACHE_ERRORS = (
    OSError,
    EOFError,
    ImportError,
    AttributeError,
    ValueError,
    MemoryError,
    pickle.UnpicklingError,
)


@functools.cache
def _sources() -> str:
    """Return a digest of all files in this package, because functions call others across files."""
    files = sorted(Path(__file__).parent.iterdir())
    texts = [file.read_bytes() for file in files if file.suffix == ".py"]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


def for_cache(function: FunctionType, signature: str) -> FunctionType:
    """Return a copy of the function whose name in numba's cache is unique to this version.

    On its own, numba stores all signatures of a function, for all processors, in files that
    processes write without a lock. A process may then load code that another has written for a
    different signature or processor. Moreover, numba detects changes only in the function's own
    file, by modification time and size.
    """
    machine = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    digest = hashlib.sha256(repr((_sources(), machine, signature)).encode()).hexdigest()
    named = FunctionType(function.__code__, function.__globals__, function.__name__)
    named.__doc__, named.__module__ = function.__doc__, function.__module__
    named.__qualname__ = f"{function.__qualname__}-{digest[:16]}"
    return named


def discard_damaged(error: Exception, function: FunctionType, signature: str) -> None:
    """Empty the cache of a function after an error, so that the next process fills it again.

    A cache that cannot be read or written is left as it is.
    """
    if not isinstance(error, OSError):
        with contextlib.suppress(RuntimeError, *CACHE_ERRORS):
            FunctionCache(for_cache(function, signature)).flush()


class EntryPoint:
    """A compiled function that takes arrays, numbers, and named tuples of these."""

    def __init__(self, function):
        self.function = function
        self.uncached = numba.njit(**OPTIONS)(function)
        self.compiled = {}  # functions by dtypes

    def __call__(self, *arguments):
        if not ALLOWED:
            raise RuntimeError(FORBIDDEN)
        dtypes = tuple(
            [
                getattr(value, "dtype", None)
                for argument in arguments
                for value in (argument if isinstance(argument, tuple) else (argument,))
            ]
        )
        compiled = self.compiled.get(dtypes)
        if compiled is None:
            compiled = self.compiled[dtypes] = self._compile(dtypes)
        try:
            return compiled(*arguments)
        except CACHE_ERRORS as error:
            if compiled is self.uncached:
                raise
            discard_damaged(error, self.function, str(dtypes))
            self.compiled[dtypes] = self.uncached
            return self.uncached(*arguments)

    def _compile(self, dtypes):
        try:
            named = for_cache(self.function, str(dtypes))
            return numba.njit(cache=True, **OPTIONS)(named)
        except (RuntimeError, OSError):  # no writable cache directory, or no source file
            return self.uncached


class SharedLoop:
    """A compiled loop that several threads run at once, using tickets to share the work.

    All threads call the same function with the same address. An array of int64 begins there, with a
    counter from which the threads take tickets, the number of tickets, and the other arguments of
    the loop. The type of the address determines the dtype of the numbers.
    """

    def __init__(self, function):
        self.function = function
        self.compiled = {}  # functions by dtype

    def compiled_for(self, dtype):
        """Return the function for a dtype, and its address."""
        if dtype not in self.compiled:
            self.compiled[dtype] = self._compile(dtype)
        return self.compiled[dtype]

    def _compile(self, dtype):
        signature = types.void(types.CPointer(numba.from_dtype(dtype)))
        options = {"fastmath": FASTMATH, "error_model": "numpy"}
        try:
            named = for_cache(self.function, str(signature))
            compiled = numba.cfunc(signature, cache=True, **options)(named)
        except (RuntimeError, *CACHE_ERRORS) as error:
            discard_damaged(error, self.function, str(signature))
            compiled = numba.cfunc(signature, **options)(self.function)
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address), compiled.address
