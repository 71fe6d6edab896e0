"""Files that are there whole or not at all, however the process or the machine may end."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing", "write_whole"]

HOUR = 3600


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path` in one step; OSError where that is not possible."""
    with replacing(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, under another name; it takes the place of `path` at the end.

    If anything is raised before, what was at `path` stays as it was. Where `path` is a link, the
    file that it leads to is replaced; a file's mode is kept.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    _sweep(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as stream:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # the bytes before the name
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode_of(target: Path) -> int | None:
    """The mode of the file to be replaced, which must be one that we may write."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "there is a directory of that name", str(target))
    if not stat.S_ISREG(mode):
        raise PermissionError(errno.EPERM, "it is a device or a pipe, not a file", str(target))
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    return stat.S_IMODE(mode)


def _sweep(target: Path) -> None:
    """Remove what killed processes left behind; not what others may be writing just now."""
    prefix, suffix = f".{target.name}.", ".part"
    with contextlib.suppress(OSError):
        for left in os.scandir(target.parent):
            middle = left.name.removeprefix(prefix).removesuffix(suffix)
            if left.name == f"{prefix}{middle}{suffix}" and len(middle) == 16:
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > HOUR:
                        os.unlink(left.path)
