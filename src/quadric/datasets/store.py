"""Writing files so that whatever happens, a file is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

from quadric.datasets.directories import Contents

__all__ = ["write", "write_all"]

HOUR = 3600


def write_all(directory: Path, contents: Contents) -> None:
    """Write every file; OSError where the directory does not allow it."""
    directory.mkdir(parents=True, exist_ok=True)
    _sweep(directory)
    for name, content in contents.items():
        write(directory / name, content)


def write(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, however the process or the machine may end."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # the bytes before the name
        os.chmod(temporary, 0o644)  # mkstemp's files are for the owner only
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _sweep(directory: Path) -> None:
    """Remove what killed processes left behind; not what others may be writing just now."""
    for left in directory.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > HOUR:
                left.unlink()
