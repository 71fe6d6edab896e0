"""One BLAS thread while somebody needs that, whichever of them ends first."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

Setting = tuple[Any, int]  # a library, and its number of threads

_lock = threading.Lock()
_before: list[list[Setting]] = []  # one for each that is within; the first is what was set before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it BLAS has one thread.

    The setting holds for the whole process. So it is put back by the last of all threads that
    leave, and not by each, which would undo it for those still within.
    """
    with _lock:
        # even where it is set already: some builds of BLAS keep the number for each thread
        _before.append([(library, library.num_threads or 1) for library in _libraries()])
        _set((library, 1) for library, _ in _before[-1])
    try:
        yield
    finally:
        with _lock:
            # whoever leaves takes back the latest setting; the first is taken back last of all
            _set(_before.pop())


def blas_threads() -> int:
    """The number of threads that a product by BLAS uses at the moment."""
    return min((library.num_threads or 1 for library in _libraries()), default=1)


def _set(settings: Iterable[Setting]) -> None:
    for library, number in settings:
        # From 3.8 on, threadpoolctl ignores all threads but the one that was first to set a number,
        # and the last to leave here may be another.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


def _libraries() -> Any:
    """NumPy's BLAS and, once it is loaded, SciPy's own."""
    return _found("scipy.linalg" in sys.modules)


@cache
def _found(with_scipy: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers
