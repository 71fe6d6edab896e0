"""How much memory a network needs to be trained, asked before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quadric.config import get_config

__all__ = ["available_bytes", "check_memory", "layer_parameters", "readable"]

SHARE = 0.8  # of what is available, by default


def layer_parameters(kind: str, n: int, m: int) -> int:
    """How many numbers a layer of m neurons with n inputs holds: of Q its triangle."""
    return {
        "linear": m * (n + 1),
        "quadratic": m * (n * (n + 1) // 2 + n + 1),
        "reduced": 2 * m * (n + 1),
    }[kind]


def check_memory(
    n_inputs: int, layers: Sequence[tuple[str, int]], itemsize: int, copies: float
) -> None:
    """Raise MemoryError if `copies` of all parameters exceed the limit; names the largest layer.

    Parameters
    ----------
    n_inputs : int
    layers : sequence of (kind, neurons)
    itemsize : int
        Bytes of a number.
    copies : float
        How often the parameters are held at the same time: themselves, their gradients, what
        the solver keeps.
    """
    numbers, n = [], n_inputs
    for kind, m in layers:
        numbers.append(layer_parameters(kind, n, m))
        n = m
    needed = int(sum(numbers) * itemsize * copies)
    if needed < 2**26:  # 64 MB: not worth asking the system
        return
    limit = get_config()["max_memory"]
    if limit is None:
        limit = int(SHARE * available_bytes())
    if needed <= limit:
        return
    worst = max(range(len(numbers)), key=numbers.__getitem__)
    kind, m = layers[worst]
    n = n_inputs if worst == 0 else layers[worst - 1][1]
    ways = (
        "Two ways out: make this layer 'reduced' (layer_kinds; 2n + 2 parameters a neuron instead "
        "of n(n+1)/2), or put a smaller layer in front of it (hidden_layer_sizes)."
        if kind == "quadratic"
        else "Make this layer smaller (hidden_layer_sizes), or select features first."
    )
    raise MemoryError(
        f"layer {worst} ({kind}, {n:,} inputs, {m:,} neurons) has {numbers[worst]:,} parameters; "
        f"training would need about {readable(needed)}, and the limit is {readable(limit)}. "
        f"{ways} The limit is set by quadric.set_config(max_memory=...)."
    )


def available_bytes() -> int:
    """What this process may still allocate: the system's free memory or its control group's."""
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    for limit_file, usage_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            limit = Path(limit_file).read_text().strip()
            usage = int(Path(usage_file).read_text())
        except (OSError, ValueError):
            continue
        if limit != "max" and int(limit) < 2**60:
            candidates.append(max(0, int(limit) - usage))
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
