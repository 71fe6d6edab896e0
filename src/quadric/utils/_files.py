"""Atomic writes, locks, and replacing a file that is in use, on every system.

A file is complete or absent, even if the process or the machine crashes. A lock is on one byte of a
file, or on the whole file on Linux. It is released when the file is closed or the process is
killed.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FULL_DISK = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
HOUR = 3600  # older temporary files were left behind by a process that was killed
SHARING_VIOLATIONS = (5, 32)  # Windows error codes: access denied, used by another process
PATIENCE = 2.0  # seconds to wait for a program that has the file open, such as a virus scanner


def write_whole(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    follow_links: bool = True,
    new: bool = False,
    tag: str = "",
) -> None:
    """Write a file atomically; see `replacing` for the options."""
    with replacing(path, follow_links=follow_links, new=new, tag=tag) as stream:
        stream.write(content)


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, follow_links: bool = True, new: bool = False, tag: str = ""
) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` if the context exits without an exception.

    After an exception, the file at `path` is unchanged. A replaced file keeps its mode.

    Parameters
    ----------
    path : str or path
        File to write. If it is a link, the file that it points to is replaced.
    follow_links : bool
        If False, a link raises PermissionError.
    new : bool
        If True, anything that exists at `path` raises FileExistsError.
    tag : str
        Eight hexadecimal digits by which `remove_leftovers` recognizes the temporary file.
    """
    target = Path(os.path.realpath(path) if follow_links and not new else os.path.abspath(path))
    mode = None if new else _mode_of(target)
    remove_leftovers(target, age=HOUR)
    temporary = temporary_name(target, tag)
    try:
        with open(temporary, "xb") as stream:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # the content must reach the disk before the new name
        if new:
            _rename_to_new(temporary, target)
        else:
            replace(temporary, target)
    except OSError as error:
        name_target(error, temporary, path)
        raise
    finally:
        with contextlib.suppress(OSError):  # it was renamed, or removed as a leftover
            os.unlink(temporary)


def name_target(
    error: OSError, temporary: str | os.PathLike[str], target: str | os.PathLike[str]
) -> None:
    """Let an error about a temporary file, or about a full disk, name the file to write instead."""
    unnamed = error.filename is None and error.errno in FULL_DISK
    if unnamed or os.fspath(error.filename or "").startswith(os.fspath(temporary)):
        error.filename, error.filename2 = os.fspath(target), None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; raise OSError for directories, devices and pipes."""
    _check_regular(os.stat(path).st_mode, path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    try:
        _check_regular(os.fstat(handle).st_mode, path)  # the file may have been replaced
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def temporary_name(target: Path, tag: str = "") -> Path:
    """Return a unique name in the target's directory, short even if the target's name is long."""
    token = tag + secrets.token_hex((16 - len(tag)) // 2)
    return target.with_name(f".quadric-{_digest(target)}-{token}.part")


def remove_leftovers(target: Path, tag: str = "", age: float = 0.0) -> None:
    """Remove the temporary files for a target and tag that are at least `age` seconds old.

    A temporary file that is already linked to its final name is removed regardless of its age.
    """
    for path, status in leftovers(target, tag):
        old = status.st_nlink > 1 or time.time() - status.st_mtime >= age
        if stat.S_ISREG(status.st_mode) and old:
            with contextlib.suppress(OSError):
                path.unlink()


def leftovers(target: Path, tag: str = "") -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the temporary files for a target and tag, each with its status."""
    digits = "[0-9a-f]" * (16 - len(tag))
    for path in list(target.parent.glob(f".quadric-{_digest(target)}-{tag}{digits}.part")):
        with contextlib.suppress(OSError):
            yield path, path.lstat()


def _digest(target: Path) -> str:
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]


def _rename_to_new(temporary: Path, target: Path) -> None:
    """Give a file a new name, in addition if possible, unless the target exists."""
    try:
        os.link(temporary, target)
    except OSError:  # the target exists, or the file system does not support hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(temporary, target)


def _mode_of(target: Path) -> int | None:
    """Return the mode of the file to replace, which must be a writable regular file."""
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
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "a device or a pipe, not a file"
        raise PermissionError(errno.EPERM, f"it is {kind}", os.fspath(path))


def lock(handle: int, byte: int, *, release: bool = False) -> None:
    """Lock a file for this process, or raise OSError if another process has locked it.

    On Linux, `flock` locks the whole file and does not interact with other kinds of locks. Release
    a lock before closing the file: Windows does not specify when it releases the locks of a handle
    that is closed. On other systems, closing releases them, so that nothing is left to do.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, byte, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK if release else msvcrt.LK_NBLCK, 1)
    elif not release:
        import fcntl  # cannot be imported while the interpreter exits

        operation = fcntl.LOCK_EX | fcntl.LOCK_NB
        if sys.platform == "linux":
            fcntl.flock(handle, operation)
        else:
            fcntl.lockf(handle, operation, 1, byte)


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename a file or directory as `os.replace` does.

    Windows refuses this while another program has one of the two open. The call is then repeated
    for up to two seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(source, target)
        except PermissionError as error:
            in_use = getattr(error, "winerror", None) in SHARING_VIOLATIONS
            if not in_use or time.monotonic() > deadline:
                raise
        time.sleep(0.02)
