"""A file written in one step, and a file opened with care."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from pathlib import Path
from typing import BinaryIO

from quadric.errors import ModelFileError

__all__ = ["open_regular", "write"]

HOUR = 3600


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, however the process or the machine may end.

    Where `path` is a link, the file that it leads to is replaced; a file's mode is kept.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = _mode_of(target)
        _sweep(target)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        try:
            with open(temporary, "xb") as stream:
                if mode is not None:
                    os.fchmod(stream.fileno(), mode)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())  # the bytes before the name
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot save the model: {error.strerror}. What was there before is untouched",
            os.fspath(path),
        ) from None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, opened; a pipe or a device, which may never end, is refused."""
    if stat.S_ISDIR(mode := os.stat(path).st_mode):
        raise ModelFileError(f"{os.fspath(path)} is a directory, not a model file")
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"{os.fspath(path)} is a device or a pipe, not a model file")
    return open(path, "rb")


def _mode_of(target: Path) -> int | None:
    """The mode of the file to be replaced, which must be one that we may write."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "there is a directory of that name")
    if not stat.S_ISREG(mode):
        raise PermissionError(errno.EPERM, "it is a device or a pipe, not a file")
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the file is read-only")
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
