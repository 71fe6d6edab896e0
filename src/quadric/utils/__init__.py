"""Helpers for the library and for programs built on it: memory, threads, text and files.

`notebook` writes what a notebook shows. The package imports only `config` and `errors`, and not
NumPy.
"""

from quadric.utils._extras import require
from quadric.utils._files import (
    HOUR,
    leftovers,
    lock,
    name_target,
    open_regular,
    remove_leftovers,
    replace,
    replacing,
    temporary_name,
    write_whole,
)
from quadric.utils._memory_and_threads import (
    SHARE,
    available_bytes,
    blas_threads,
    check_limit,
    loop_threads,
    one_blas_thread,
    processor_name,
    readable,
    threads_for_loops,
)
from quadric.utils._text import (
    counted,
    first_applying,
    listed,
    rounded,
    rounded_down,
    shown,
    spaced,
    visible,
)

__all__ = [
    "HOUR",
    "SHARE",
    "available_bytes",
    "blas_threads",
    "check_limit",
    "counted",
    "first_applying",
    "leftovers",
    "listed",
    "lock",
    "loop_threads",
    "name_target",
    "one_blas_thread",
    "open_regular",
    "processor_name",
    "readable",
    "remove_leftovers",
    "replace",
    "replacing",
    "require",
    "rounded",
    "rounded_down",
    "shown",
    "spaced",
    "temporary_name",
    "threads_for_loops",
    "visible",
    "write_whole",
]
