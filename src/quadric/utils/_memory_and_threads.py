"""The machine: memory that this process may use, and the number of BLAS threads.

The memory is limited by the user's setting or, by default, to most of what is available. The number
of BLAS threads is a process-wide setting.
"""

import os
import platform
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from quadric.config import get_config
from quadric.errors import MemoryLimitError

SHARE = 0.8  # default limit, as a share of the available memory
ALWAYS_ALLOWED = 2**26  # bytes that are allowed without querying the system, which takes time
# limit, usage and the reclaimable part of the usage, for control groups v2 and v1
CONTROL_GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def check_limit(needed: float, item: str, ways: str) -> None:
    """Raise MemoryLimitError if `item` needs more bytes than the limit.

    `ways` lists ways to use less memory.
    """
    limit = get_config()["max_memory"]
    if limit is None:
        if needed < ALWAYS_ALLOWED:
            return
        limit = int(SHARE * available_bytes())
    if needed > limit:
        raise MemoryLimitError(
            f"{item} would need about {readable(needed)}, and the limit is {readable(limit)}.",
            f"{ways} The limit is set by quadric.set_config(max_memory=...).",
            needed=int(needed),
            limit=limit,
        )


def available_bytes() -> int:
    """Return how much memory this process may still allocate.

    This is the minimum of the system's available memory and what remains within the limits of the
    control groups and of the address space. On macOS it is the installed memory.
    """
    sizes = [_system_bytes(), control_group_bytes()]
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = _number(Path("/proc/self/statm"))
        if limit != resource.RLIM_INFINITY and pages is not None:
            sizes.append(max(0, limit - pages * resource.getpagesize()))
    return min((size for size in sizes if size is not None), default=8 * 2**30)


def _system_bytes() -> int | None:
    """Return the system's available memory; on macOS its installed memory; None if unknown."""
    if sys.platform == "win32":
        # MEMORYSTATUSEX: two 32-bit numbers, the first of which is its size, then seven of 64 bits
        import ctypes

        status = (ctypes.c_uint64 * 8)(ctypes.sizeof(ctypes.c_uint64 * 8))
        known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return status[2] if known else None
    kilobytes = _number(Path("/proc/meminfo"), r"^MemAvailable:\s+(\d+)")
    if kilobytes is not None:
        return 1024 * kilobytes
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # unknown to this system
        return None


def control_group_bytes(root: Path = Path("/")) -> int | None:
    """Return the memory left in this process's control group and its parents; None if unlimited.

    `root` is the directory that contains /proc and /sys.
    """
    sizes = [_left_in_group(group) for group in control_groups(root)]
    return min((size for size in sizes if size is not None), default=None)


def control_groups(root: Path = Path("/")) -> list[Path]:
    """Return the directories of this process's control groups, each followed by its parents."""
    groups: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        # 4:cpu,memory:/path in version 1, 0::/path in version 2
        match = re.fullmatch(r"(?:0:|\d+:(?:[^:]*,)?(memory)(?:,[^:]*)?):/(.*)", line)
        if match:
            top = root / "sys/fs/cgroup" / (match[1] or "")
            # In a container, the group's path may lead outside the mounted directory.
            parts = [] if ".." in match[2] else match[2].split("/")
            groups += [top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return groups


def _left_in_group(group: Path) -> int | None:
    for limit_file, usage_file, inactive in CONTROL_GROUP_FILES:
        limit, usage = _number(group / limit_file), _number(group / usage_file)
        if limit is not None and usage is not None:
            reclaimable = _number(group / "memory.stat", rf"^{inactive} (\d+)") or 0
            return max(0, limit - usage + reclaimable)
    return None


def _number(file: Path, pattern: str = r"^(\d+)") -> int | None:
    """Return the first number in a file that matches `pattern`; None if there is none."""
    match = re.search(pattern, _text(file), re.MULTILINE)
    return int(match[1]) if match else None


def _text(file: Path) -> str:
    """Return the text of a file, or an empty string if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def readable(size: float) -> str:
    """Format a number of bytes.

    >>> readable(3_000_000_000)
    '2.8 GB'
    """
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


# ---------------------------------------------------------------------- threads of BLAS


_lock = threading.Lock()
_loops = threading.local()  # has `threads`, their number, within `threads_for_loops`
# The BLAS libraries and their numbers of threads before each active context. The first entry is
# the original setting.
_saved: list[list[tuple[Any, int]]] = []


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


def _set(settings: Iterable[tuple[Any, int]]) -> None:
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


@cache
def processor_name() -> str:
    """Return the name of this computer's processor."""
    linux = Path("/proc/cpuinfo")
    listed = linux.read_text(encoding="utf-8") if linux.exists() else ""
    model = re.search(r"^model name\s*:(.*)$", listed, re.M)
    return model[1].strip() if model else platform.processor() or platform.machine() or "unknown"
