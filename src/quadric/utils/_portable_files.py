"""File operations that differ between systems: locks, and replacing a file that is in use.

A lock is on one byte of a file, or on the whole file on Linux. It is released when the file is
closed or the process is killed.
"""

import os
import sys
import time

SHARING_VIOLATIONS = (5, 32)  # Windows error codes: access denied, used by another process
PATIENCE = 2.0  # seconds to wait for a program that has the file open, such as a virus scanner
PAUSE = 0.02


def lock(handle: int, byte: int) -> None:
    """Lock a file for this process, or raise OSError if another process has locked it.

    On Linux, `flock` locks the whole file and does not interact with other kinds of locks. Except
    on Windows, the function may be called again with the same handle.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, byte, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        if sys.platform == "linux":
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)


def relock(handle: int, byte: int) -> None:
    """Lock a file again if closing another descriptor of it may have released the lock.

    On Windows a lock belongs to its handle. It stays, and locking it twice would be an error.
    """
    if sys.platform != "win32":
        lock(handle, byte)


def close_locked(handle: int, byte: int) -> None:
    """Release the lock and close the file."""
    if sys.platform == "win32":
        import msvcrt

        # Windows does not specify when it releases the locks of a handle that is closed
        os.lseek(handle, byte, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    os.close(handle)


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
        time.sleep(PAUSE)
