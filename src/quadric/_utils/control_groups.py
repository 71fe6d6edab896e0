"""How much memory the control groups of this process leave it (Linux, cgroup versions 1 and 2)."""

import re
from pathlib import Path, PurePosixPath

UNLIMITED = 2**60  # version 1 has a huge number instead of "max"
# limit, usage, and what of the usage is cache that the system takes back when it needs to
FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def remaining_bytes(root: Path = Path("/")) -> int | None:
    """The least that the process's own group, or any group above it, leaves; None without limits.

    Parameters
    ----------
    root : Path
        Where /proc and the mounted groups are looked for.
    """
    left = [_left(group) for group in groups(root)]
    return min((one for one in left if one is not None), default=None)


def groups(root: Path = Path("/")) -> list[Path]:
    """The directories of the process's memory groups, each followed by those above it."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in memberships:  # 4:memory:/path in version 1, 0::/path in version 2
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        old = "memory" in controllers.split(",")
        if path.startswith("/") and (old or (number == "0" and not controllers)):
            found += _below(root, _mount(mounts, old), path)
    return found


def _mount(mounts: list[str], old: bool) -> tuple[str, str] | None:
    """The group that is mounted, and where: fields 4 and 5 of mountinfo."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3:
            continue
        memory = kind[0] == "cgroup" and "memory" in kind[2].split(",")
        if memory if old else kind[0] == "cgroup2":
            return _unescaped(fields[3]), _unescaped(fields[4])
    return None


def _below(root: Path, mount: tuple[str, str] | None, path: str) -> list[Path]:
    """The directory of the group `path` and those above it, as far as they are mounted."""
    if mount is None:
        return []
    top, where = mount
    directory = root / where.lstrip("/")
    inside = PurePosixPath(path)
    # a container may see its own group as the root, or groups outside of what is mounted
    parts = inside.relative_to(top).parts if inside.is_relative_to(top) else ()
    parts = () if ".." in parts else tuple(part for part in parts if part != "/")
    return [directory.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _left(group: Path) -> int | None:
    for limit_file, usage_file, cache in FILES:
        try:
            text = (group / limit_file).read_text().strip()
            limit = UNLIMITED if text == "max" else int(text)
            if limit < UNLIMITED:
                usage = int((group / usage_file).read_text())
                return max(0, limit - usage + _cache(group, cache))
        except (OSError, ValueError):
            continue
    return None


def _cache(group: Path, name: str) -> int:
    try:
        lines = (group / "memory.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))
    except (OSError, StopIteration, LookupError, ValueError):
        return 0


def _unescaped(field: str) -> str:
    """A path of mountinfo, in which blanks are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
