"""The number of BLAS threads, which is a process-wide setting."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

Setting = tuple[Any, int]  # a BLAS library and its number of threads

_lock = threading.Lock()
_loops = threading.local()  # has `threads`, their number, within `threads_for_loops`
_saved: list[list[Setting]] = []  # one entry per active context; the first is the original setting


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within the context.

    Several threads may be inside such a context at the same time. The last one to leave restores
    the original setting.
    """
    with _lock:
        # set again in every context, because some BLAS builds have one setting per thread
        _saved.append([(library, library.num_threads or 1) for library in _libraries()])
        _set((library, 1) for library, _ in _saved[-1])
    try:
        yield
    finally:
        with _lock:
            # pop the latest entry, whichever context ends, so that the original setting comes last
            _set(_saved.pop())


@contextmanager
def threads_for_loops() -> Iterator[None]:
    """Give the threads of BLAS to the compiled loops of this thread, and limit BLAS to one.

    BLAS keeps its threads busy for some milliseconds after a product, during which the loops would
    share a core with them.
    """
    count = loop_threads()
    if count == 1 or hasattr(_loops, "threads"):
        yield
        return
    _loops.threads = count
    try:
        with one_blas_thread():
            yield
    finally:
        del _loops.threads


def loop_threads() -> int:
    """Return the number of threads that compiled loops use: by default, as many as BLAS."""
    return getattr(_loops, "threads", 0) or blas_threads()


def blas_threads() -> int:
    """Return the number of threads that a matrix product currently uses."""
    return min((library.num_threads or 1 for library in _libraries()), default=1)


def _set(settings: Iterable[Setting]) -> None:
    for library, number in settings:
        # Since version 3.8, threadpoolctl accepts changes only from the thread that made the first
        # change, but another thread may be the last to leave.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


def _libraries() -> Any:
    """Return NumPy's BLAS and, once it is loaded, SciPy's own."""
    return _find_libraries("scipy.linalg" in sys.modules)


@cache
def _find_libraries(scipy_is_loaded: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers
