"""How much memory this process may use: the user's limit, or most of what the system leaves."""

from pathlib import Path

from quadric._utils.control_groups import remaining_bytes
from quadric.config import get_config
from quadric.errors import MemoryLimitError

SHARE = 0.8  # of what is available, by default
NOT_WORTH_ASKING = 2**26  # bytes: without a limit of the user's, the system is not asked


def check_limit(needed: float, what: str, ways: str) -> None:
    """Raise MemoryLimitError if so many bytes exceed the limit; `ways` are ways out."""
    limit = get_config()["max_memory"]
    if limit is None:
        if needed < NOT_WORTH_ASKING:
            return
        limit = int(SHARE * available_bytes())
    if needed > limit:
        raise MemoryLimitError(
            f"{what} would need about {readable(needed)}, and the limit is {readable(limit)}.",
            f"{ways} The limit is set by quadric.set_config(max_memory=...).",
            needed=int(needed),
            limit=limit,
        )


def available_bytes() -> int:
    """What this process may still allocate.

    The least of what the system has free, what its control groups leave it, and its own limit.
    """
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    left = remaining_bytes()
    if left is not None:
        candidates.append(left)
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            candidates.append(max(0, soft - used))
    except (ImportError, OSError, ValueError):
        pass
    return min(candidates) if candidates else 8 * 2**30


def readable(size: float) -> str:
    """A number of bytes for people.

    >>> readable(3_000_000_000)
    '2.8 GB'
    """
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
