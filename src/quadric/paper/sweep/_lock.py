"""One process at a time: a lock that dies with the process that holds it."""

import os
import sys
import threading
from pathlib import Path

from quadric.errors import StoreError

FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
BYTE = 2**62  # SQLite locks bytes from 2**30 on, and no store is as long as this

_held: set[tuple[int, int]] = set()  # device and number of the files that this process has locked
_guard = threading.Lock()


class Lock:
    """Hold the lock of the existing file `path`, or raise StoreError.

    Notes
    -----
    It is a lock of the system on the store itself, so that all names of the file meet the same
    lock, no other file is needed, and a killed process leaves nothing behind. On Linux it is a
    `flock`, which SQLite's own locks do not notice. Elsewhere on Unix they would, and the lock is
    a record lock on a byte that SQLite does not use. On Windows nothing is locked: two sweeps on
    one store would do the same work twice. The table stays right, for a run that is stored already
    is not stored again.

    To close any descriptor of a file drops all record locks of the process on it, SQLite's among
    them. So this one is closed after the store's connection, and none is opened where one is held.
    SQLite itself keeps descriptors open while it has a lock: from when the store is connected for
    writing, which is when `renew` takes the lock once more.
    """

    def __init__(self, path: Path, purpose: str) -> None:
        self._path, self._purpose = path, purpose
        with _guard:
            self._file_id = _file_id(os.stat(path))
            if self._file_id in _held:
                raise StoreError(_in_use(purpose, "this process"))
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
        """Take it, or make sure of it: StoreError if another process has it."""
        if not _locked(self._file):
            raise StoreError(_in_use(self._purpose, _holder(self._file_id)))

    def is_in_place(self) -> bool:
        """Whether the path still leads to the locked file."""
        try:
            return _file_id(os.stat(self._path)) == self._file_id
        except OSError:
            return False

    def release(self) -> None:
        with _guard:
            os.close(self._file)
            _held.discard(self._file_id)


def _file_id(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _in_use(purpose: str, holder: str) -> str:
    return (
        f"{purpose} is in use by {holder}. Wait until it has finished or stop it, then run the "
        "same command again: finished runs are kept."
    )


def _locked(file: int) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        if sys.platform == "linux":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, BYTE)
    except (BlockingIOError, PermissionError):  # which of them depends on the system
        return False
    return True


def _holder(file_id: tuple[int, int]) -> str:
    """Linux lists all locks: '1: FLOCK ADVISORY WRITE <process> <device>:<inode> ...'."""
    device, inode = file_id
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    try:
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5] == place and int(words[4]) > 0:
                return f"process {words[4]}"
    except (OSError, ValueError):
        pass
    return "another process"
