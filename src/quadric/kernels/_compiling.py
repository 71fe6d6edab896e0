"""Compile the kernels, and cache them for the next process."""

import contextlib
import ctypes
import functools
import hashlib
import pickle
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
from llvmlite import binding
from numba import types
from numba.core.caching import FunctionCache

from quadric.kernels._announcement import announce
from quadric.kernels._denormals import call_flushed
from quadric.kernels._lanes import integers, take_ticket

# `nnan` and `ninf` are omitted: with them, a compiled isfinite would always be true.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

OPTIONS: Any = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
# for functions that only other compiled functions call
INTERNAL: Any = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
block = numba.njit(**INTERNAL)
inline = numba.njit(forceinline=True, **INTERNAL)
# without fastmath, for functions that bound their own rounding errors
strict = numba.njit(**INTERNAL | {"fastmath": False})

JIT_ALLOWED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]

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
    facts = _sources(), machine, function.__module__, signature
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()
    return _renamed(function, f"-{digest[:16]}", function.__code__, function.__globals__)


def _renamed(function: FunctionType, suffix: str, code: CodeType, names: Any) -> FunctionType:
    """Return code with the name of a function, to which a suffix is added, and its docstring."""
    other = FunctionType(code, names, function.__name__)
    other.__doc__, other.__module__ = function.__doc__, function.__module__
    other.__qualname__ = function.__qualname__ + suffix
    return other


def announce_unless_cached(function: FunctionType) -> None:
    """Announce the compilation of a function of `for_cache`, unless its code is in the cache."""
    try:
        directory = Path(FunctionCache(function).cache_path)
        cached = any(directory.glob(f"*.{function.__qualname__}-*.nbc"))
    except (RuntimeError, *CACHE_ERRORS):  # no cache
        cached = False
    if not cached:
        announce()


# ---- loops -------------------------------------------------------------------------------------

# Each loop has its own copy of these functions, in which the global variable `loop` is the compiled
# loop, because numba's cache does not find functions with closures.


def _run_flushed(*arguments):
    return call_flushed(loop, arguments)  # noqa: F821


def _run_flushed_at(address):
    call_flushed(loop, (address,))  # noqa: F821


def _take_tickets(address):
    """Take tickets until none is left, and run the loop for each."""
    counter = integers(address)
    ticket = take_ticket(counter)
    while ticket < counter[1]:
        loop(address, ticket)  # noqa: F821
        ticket = take_ticket(counter)


def _with_loop(template: Any, loop: Any, function: FunctionType, suffix: str = "") -> FunctionType:
    """Return the loop's own copy of a function, named after the function that contains the loop.

    Names must differ, because code from the cache may define the same names as new code. numba
    names the file in its cache after the file of the function.
    """
    code = template.__code__.replace(co_filename=function.__code__.co_filename)
    return _renamed(function, suffix, code, globals() | {"loop": loop})


def discard_damaged(error: Exception, function: FunctionType, signature: str) -> None:
    """Empty the cache of a function after an error, so that the next process fills it again.

    A cache that cannot be read or written is left as it is.
    """
    if not isinstance(error, OSError):
        with contextlib.suppress(RuntimeError, *CACHE_ERRORS):
            FunctionCache(for_cache(function, signature)).flush()


class EntryPoint:
    """A compiled function that takes arrays, numbers, and named tuples of these.

    It flushes denormal numbers to zero.
    """

    def __init__(self, function, compiler=block):
        self.function = _with_loop(_run_flushed, compiler(function), function)
        self.uncached = numba.njit(**OPTIONS)(self.function)
        self.compiled = {}  # functions by dtypes

    def __call__(self, *arguments):
        if not JIT_ALLOWED:
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
            function = for_cache(self.function, str(dtypes))
            announce_unless_cached(function)
            return numba.njit(cache=True, **OPTIONS)(function)
        except (RuntimeError, OSError):  # no writable cache directory, or no source file
            return self.uncached


def strict_entry_point(function):
    """Return the entry point of a function that is compiled without fastmath."""
    return EntryPoint(function, strict)


class SharedLoop:
    """A compiled loop that several threads run at once, using tickets to share the work.

    All threads call the same function with the same address. An array of int64 begins there, with a
    counter from which the threads take tickets, the number of tickets, and the other arguments of
    the loop. The type of the address determines the dtype of the numbers. The loop is a function of
    this address and of a ticket. It flushes denormal numbers to zero in each of the threads.
    """

    def __init__(self, function):
        tickets = block(_with_loop(_take_tickets, inline(function), function, ".tickets"))
        self.function = _with_loop(_run_flushed_at, tickets, function)

    @functools.cache  # noqa: B019 (there are few loops, which are never deleted)
    def compiled_for(self, dtype):
        """Return the function for a dtype, and its address."""
        if not JIT_ALLOWED:
            raise RuntimeError(FORBIDDEN)
        signature = types.void(types.CPointer(numba.from_dtype(dtype)))
        options = {"fastmath": FASTMATH, "error_model": "numpy"}
        try:
            function = for_cache(self.function, str(signature))
            announce_unless_cached(function)
            compiled = numba.cfunc(signature, cache=True, **options)(function)
        except (RuntimeError, *CACHE_ERRORS) as error:
            discard_damaged(error, self.function, str(signature))
            compiled = numba.cfunc(signature, **options)(self.function)
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address), compiled.address
