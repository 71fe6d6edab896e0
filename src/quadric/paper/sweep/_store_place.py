"""The place of a store: which file it is, and what is beside it.

SQLite keeps a log (`-wal`) and its index (`-shm`) beside the file while it is in use, and those of
a killed process until the next one. It takes any file of such a name for its own.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from pathlib import Path

from quadric._utils.whole_files import HOUR
from quadric.errors import StoreError
from quadric.paper.sweep._store_errors import in_the_way, no_store

SUFFIXES = ("-journal", "-wal", "-shm")  # of the files that SQLite may keep beside one
LOGS = (b"", *(bytes.fromhex(f"377f068{end}002de218") for end in "23"))  # how a log begins


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def check_place_is_free(path: Path) -> None:
    """For a new store. If another process has made one meanwhile, the files are that one's."""
    for other in (beside(path, suffix) for suffix in SUFFIXES):
        if os.path.lexists(other) and not os.path.lexists(path):
            raise in_the_way(other)


def check_place(path: Path) -> None:
    """Look at the file and those beside it before SQLite opens, and might change, them."""
    info = os.stat(path)
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")
    if info.st_size == 0:
        raise no_store(path)  # SQLite would remove a log beside it, even for reading only
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if info.st_nlink > 1:
        own = sum(same for _, same in _leftovers(path))  # counted first: they may be removed now
        names = os.stat(path).st_nlink - own
        if names > 1:
            raise StoreError(
                f"the store {path} has {names} names (hard links), under which SQLite would not "
                "find its log. Remove the others, or make a copy and give that."
            )
    for suffix, belongs in zip(SUFFIXES, (_never, _is_log, _is_index), strict=True):
        other = beside(path, suffix)
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(other)
            if not (stat.S_ISREG(found.st_mode) and belongs(other, found.st_size)):
                raise in_the_way(other)


def _never(file: Path, size: int) -> bool:
    return False  # a store has a log from its beginning, and so never a journal


def _is_log(file: Path, size: int) -> bool:
    with file.open("rb") as stream:
        return stream.read(8) in LOGS


def _is_index(file: Path, size: int) -> bool:
    # by its size, which grows in such steps: to open and close it would drop SQLite's locks on it
    return size < 4 or size % 4096 == 0


def new_file(path: Path) -> Path:
    """An empty file beside `path`, under a name that nobody else has."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(new, flags, 0o644))
    return new


def remove_unfinished_stores(path: Path) -> None:
    """Remove what `new_file` made in killed processes; not what others may be making just now."""
    for left, same in _leftovers(path):
        with contextlib.suppress(OSError):
            if same or time.time() - os.lstat(left).st_mtime > HOUR:
                os.unlink(left)


def _leftovers(path: Path) -> list[tuple[str, bool]]:
    """What has the name of a `new_file`, and whether it is the store itself."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.new(-wal|-shm|-journal)?")
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            if pattern.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    same = os.path.samestat(os.lstat(entry.path), os.stat(path))
                    found.append((entry.path, same))
    return found
