"""Files that are there whole or not at all, however the process or the machine may end."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

HOUR = 3600


def write_whole(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    follow_links: bool = True,
    new: bool = False,
    tag: str = "",
) -> None:
    """Put `content` at `path` in one step; OSError where that is not possible."""
    with replacing(path, follow_links=follow_links, new=new, tag=tag) as stream:
        stream.write(content)


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, follow_links: bool = True, new: bool = False, tag: str = ""
) -> Iterator[BinaryIO]:
    """A file to write to, under another name; it takes the place of `path` at the end.

    If anything is raised before, what was at `path` stays as it was. Where `path` is a link, the
    file that it leads to is replaced; a file's mode is kept.

    Parameters
    ----------
    path : str or path
    follow_links : bool
        If false, a link is an error.
    new : bool
        If true, nothing is replaced: FileExistsError if there is anything at `path`.
    tag : str
        Eight hexadecimal digits that `remove_leftovers` knows the temporary file by.
    """
    target = Path(os.path.realpath(path) if follow_links and not new else os.path.abspath(path))
    mode = None if new else _mode_of(target)
    _sweep(target)
    temporary = temporary_name(target, tag)
    try:
        with open(temporary, "xb") as stream:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # the bytes before the name
        if new:
            _put_new(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def open_regular(path: str | os.PathLike[str], *, follow_links: bool = True) -> BinaryIO:
    """The file, opened to be read; OSError for a directory, or a pipe, which may never end."""
    _check_regular(os.stat(path, follow_symlinks=follow_links).st_mode, path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags)
    try:
        _check_regular(os.fstat(handle).st_mode, path)  # another may have taken its place
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def temporary_name(target: Path, tag: str = "") -> Path:
    """A name beside the target that no other file has, and short, however long the target's."""
    token = tag + secrets.token_hex((16 - len(tag)) // 2)
    return target.with_name(f".quadric-{_mark(target)}-{token}.part")


def remove_leftovers(target: Path, tag: str = "", age: float = 0.0) -> None:
    """Remove temporary files of this target and tag that were not written to for `age` seconds."""
    ours = re.compile(rf"\.quadric-{_mark(target)}-{tag}[0-9a-f]{{{16 - len(tag)}}}\.part")
    with contextlib.suppress(OSError):
        for left in os.scandir(target.parent):
            if ours.fullmatch(left.name) and left.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if time.time() - left.stat(follow_symlinks=False).st_mtime >= age:
                        os.unlink(left.path)


def _sweep(target: Path) -> None:
    """Remove what killed processes left behind; not what others may be writing just now."""
    remove_leftovers(target, age=HOUR)


def _mark(target: Path) -> str:
    """Which target a temporary file belongs to."""
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]


def _put_new(temporary: Path, target: Path) -> None:
    """Give the file its name, if no other has it."""
    try:
        os.link(temporary, target)  # fails if there is anything of that name
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(temporary, target)
    else:
        os.unlink(temporary)


def _mode_of(target: Path) -> int | None:
    """The mode of the file to be replaced, which must be one that we may write."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    _check_regular(mode, target)
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    return stat.S_IMODE(mode)


def _check_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", os.fspath(path))
    if stat.S_ISLNK(mode):
        raise PermissionError(errno.EPERM, "it is a link", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise PermissionError(errno.EPERM, "it is a device or a pipe, not a file", os.fspath(path))
