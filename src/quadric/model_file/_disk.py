"""A model file written in one step, and a file opened with care."""

import errno
import os
from typing import BinaryIO

from quadric._utils import whole_files
from quadric.errors import ModelFileError


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all; the error says what was to be done."""
    try:
        whole_files.write_whole(path, content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot save the model: {error.strerror}. What was there before is untouched",
            os.fspath(path),
        ) from None


def open_regular(path: str | os.PathLike[str], name: str = "model file") -> BinaryIO:
    """The file, opened; a pipe or a device, which may never end, is refused."""
    try:
        return whole_files.open_regular(path)
    except IsADirectoryError:
        what = "a directory"
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        what = "a device or a pipe"
    raise ModelFileError(f"{os.fspath(path)} is {what}, not a {name}")
