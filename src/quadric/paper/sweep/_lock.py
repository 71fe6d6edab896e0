"""A lock for one writing process at a time, released by the system when the process ends."""

import contextlib
import os
import re
import sys
import threading
from pathlib import Path

from quadric.errors import StoreError

FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
BYTE = 2**62  # SQLite locks bytes from 2**30 on; no store is this long

_held: set[tuple[int, int]] = set()  # device and inode of the files locked by this process
_guard = threading.Lock()


class Lock:
    """Hold the lock of the existing file `path`, or raise StoreError.

    Notes
    -----
    The lock is a system lock on the store itself: it works under every name of the file, needs no
    other file, and ends with a killed process. On Linux it is a `flock`, which does not interact
    with SQLite's own locks. On other Unix systems it would, so the lock is a record lock on a byte
    that SQLite does not use. On Windows there is no lock: two sweeps on one store would do the same
    work twice, but the table stays correct, because a stored run is never replaced.

    Closing any descriptor of a file drops all record locks of the process on it, including
    SQLite's. So the descriptor is closed after the store's connection, and no second one is opened
    while one is held. SQLite keeps its descriptors open while it holds a lock, that is, once the
    store is connected for writing; `renew` then takes this lock again.
    """

    def __init__(self, path: Path, purpose: str) -> None:
        self._path, self._purpose = path, purpose
        with _guard:
            self._file_id = _file_id(os.stat(path))
            if self._file_id in _held:
                raise self._in_use("this process")
            self._file = os.open(path, FLAGS)
            try:
                self.renew()
                if _file_id(os.fstat(self._file)) != self._file_id:
                    raise StoreError(f"{purpose} was replaced just now. Run the command again.")
            except BaseException:
                os.close(self._file)
                raise
            _held.add(self._file_id)

    def renew(self) -> None:
        """Take the lock, or confirm it; raise StoreError if another process holds it."""
        try:
            _lock(self._file)
        except (BlockingIOError, PermissionError):  # which one depends on the system
            raise self._in_use(_holder(self._file_id)) from None

    def is_in_place(self) -> bool:
        """Return whether the path still leads to the locked file."""
        try:
            return _file_id(os.stat(self._path)) == self._file_id
        except OSError:
            return False

    def release(self) -> None:
        with _guard:
            os.close(self._file)
            _held.discard(self._file_id)

    def _in_use(self, holder: str) -> StoreError:
        return StoreError(
            f"{self._purpose} is in use by {holder}. Wait until it has finished or stop it, then "
            "run the same command again: finished runs are kept."
        )


def _file_id(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _lock(file: int) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    if sys.platform == "linux":
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, BYTE)


def _holder(file_id: tuple[int, int]) -> str:
    """Name the process that holds the lock, from Linux's list of locks.

    A line reads '1: FLOCK ADVISORY WRITE <process> <device>:<inode> ...'.
    """
    device, inode = file_id
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    line = re.compile(rf"^\S+ +FLOCK +\S+ +\S+ +([1-9]\d*) +{place} ", re.M)
    with contextlib.suppress(OSError):
        if found := line.search(Path("/proc/locks").read_text()):
            return f"process {found[1]}"
    return "another process"
