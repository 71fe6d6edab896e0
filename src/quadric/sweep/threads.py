"""One BLAS thread while runs are under way, whichever of them ends first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_limits: list[Any] = []  # one for each that is within; the first knows what was set before


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it BLAS has one thread: the runs use the cores, and a product has one result.

    The setting holds for the whole process. So it is put back by the last of all threads that
    leave, and not by each, which would undo it for those still within.
    """
    with _lock:
        # even where it is set already: some builds of BLAS keep the number for each thread
        _limits.append(_controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            # whoever leaves takes back the latest limit; the first is taken back last of all
            _limits.pop().restore_original_limits()
