"""One process at a time: a lock that dies with the process that holds it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from quadric.errors import StoreError

__all__ = ["Lock"]


class Lock:
    """Hold a lock on the file `path`, which names the process that holds it; or raise StoreError.

    Notes
    -----
    The lock is the system's (`flock`) and belongs to the open file, so that a killed process
    leaves no lock behind, only a file that means nothing. Where there is no `flock` (Windows)
    nothing is locked: two sweeps on one store would then do the same work twice. The table
    stays right, for a run that is stored already is not stored again.
    """

    def __init__(self, path: Path, purpose: str) -> None:
        self.path = path
        while True:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if not _flock(self._file):
                    raise StoreError(
                        f"{purpose} is in use by {_holder(path)}. Wait until it has finished or "
                        "stop it, then run the same command again: finished runs are kept."
                    )
                if _is_still(self._file, path):
                    break
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)  # removed by its last holder after we had opened it
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def release(self) -> None:
        with contextlib.suppress(OSError):  # some systems do not remove an open file
            self.path.unlink()  # while it is locked: no other process can have taken it
        os.close(self._file)


def _flock(file: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    for _ in range(20):  # it writes its number just after it has the lock
        with contextlib.suppress(OSError):
            number = path.read_text().strip()
            if number:
                return f"process {number}"
        time.sleep(0.01)
    return "another process"
