"""A model file written in one step, and a file opened with care."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from quadric.errors import ModelFileError
from quadric.whole_files import write_whole

__all__ = ["open_regular", "write"]


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all; the error says what was to be done."""
    try:
        write_whole(path, content)
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
