"""The SQLite file of a store: created atomically, locked, and verified before it is written.

While the file is in use, SQLite keeps a log (`-wal`) and its index (`-shm`) next to it. SQLite
would use any files with these names, so they are checked first.
"""

import contextlib
import errno
import os
import re
import sqlite3
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import quadric
from quadric.errors import StoreError
from quadric.utils import HOUR, close_locked, leftovers, lock, relock, remove_leftovers, write_whole

APPLICATION_ID = 0x51445243  # 'QDRC', at byte 68 of the file
FORMAT = "2"  # format 1 had no digest
TABLES = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "runs": """CREATE TABLE runs (
    recipe TEXT NOT NULL, engine TEXT NOT NULL, data TEXT NOT NULL,
    size INTEGER NOT NULL, hidden INTEGER NOT NULL, kind TEXT NOT NULL, seed INTEGER NOT NULL,
    accuracies TEXT NOT NULL, seconds REAL NOT NULL, steps INTEGER NOT NULL,
    cpu TEXT NOT NULL, quadric TEXT NOT NULL, numpy TEXT NOT NULL, numba TEXT NOT NULL,
    python TEXT NOT NULL, finished_at TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (recipe, engine, data, size, hidden, kind, seed)
)""",
}
SCHEMA = {(name, "table", sql) for name, sql in TABLES.items()} | {
    (f"sqlite_autoindex_{name}_1", "index", None) for name in TABLES
}
SCRIPT = f"""
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
{TABLES["meta"]};
INSERT INTO meta VALUES
    ('application', 'quadric.apps.paper.sweep'), ('format', '{FORMAT}'),
    ('created by', 'quadric {quadric.__version__}');
{TABLES["runs"]};
COMMIT;
"""
# In WAL mode, a report can read the store while a sweep is writing to it. With FULL, a stored run
# survives a power failure. NORMAL would save a fraction of a millisecond, but a stored run would
# only survive if the process is killed, not if the power fails.
SETTINGS = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
SUFFIXES = ("-journal", "-wal", "-shm")  # of files that SQLite may keep next to a database
LOG_MAGIC = (b"", *(bytes.fromhex(f"377f068{end}002de218") for end in "23"))
LOCK_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# The page at 2**30 contains no data. SQLite locks the first 512 bytes of it.
LOCK_BYTE = 2**30 + 512
# SQLite's errors caused by the disk, permissions or other processes. All other errors mean damage.
OUTSIDE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}

_held: set[tuple[int, int]] = set()  # device and inode of the files locked by this process
_guard = threading.Lock()


def create(path: Path) -> None:
    """Create a store unless one exists. A killed process does not leave a partial store behind.

    If another process creates a store at the same time, that store is kept.
    """
    remove_leftovers(path, age=HOUR)
    if os.path.lexists(path):
        return
    for other in (_beside(path, suffix) for suffix in SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            os.lstat(other)  # also fails if the names of SQLite's files would be too long
            if not os.path.lexists(path):
                raise _in_the_way(other)
    with tempfile.TemporaryDirectory(prefix="quadric-") as directory:
        made = Path(directory) / "store"
        with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
            connection.executescript(SCRIPT)
        content = made.read_bytes()
    with contextlib.suppress(FileExistsError):
        write_whole(path, content, new=True)


def check_place(path: Path) -> None:
    """Check the file and the files next to it before SQLite opens and possibly changes them."""
    info = os.stat(path)
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")
    if info.st_size == 0:
        raise _not_a_store(path)  # SQLite would remove its log, even in read-only mode
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if info.st_nlink > 1:
        # links left by a killed `create`; counted before `stat`, as they may be removed in between
        own = sum(os.path.samestat(found, info) for _, found in leftovers(path))
        names = os.stat(path).st_nlink - own
        if names > 1:
            raise StoreError(
                f"the store {path} has {names} names (hard links), but SQLite finds its log only "
                "under one of them. Remove the other names, or use a copy of the file."
            )
    for other in (_beside(path, suffix) for suffix in SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(other)
            if not (stat.S_ISREG(found.st_mode) and _belongs(other, found.st_size)):
                raise _in_the_way(other)


def _belongs(other: Path, size: int) -> bool:
    """Return whether a file next to the store looks like a file of SQLite."""
    if other.name.endswith("-wal"):
        with other.open("rb") as stream:
            return stream.read(8) in LOG_MAGIC
    if other.name.endswith("-shm"):
        # checked by its size only: opening and closing it would drop SQLite's locks
        return size < 4 or size % 4096 == 0
    return False  # a store uses a log from the start, never a journal


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, isolation_level=None, timeout=30)


def read_all(path: Path) -> list[tuple[Any, ...]]:
    """Return all rows of the table `runs` of a valid store, without changing any file."""
    while True:
        check_place(path)
        log = _beside(path, "-wal")
        has_log = log.exists()
        # mode=ro alone would create a log and an index; immutable=1 ignores an existing log
        options = "mode=ro" if has_log else "mode=ro&immutable=1"
        try:
            with contextlib.closing(connect(path, options)) as connection, explained(path):
                _check(path, connection)
                return connection.execute("SELECT * FROM runs").fetchall()
        except StoreError:
            if has_log or not log.exists():
                raise
            # a sweep has started to write in the meantime: try again


def _check(path: Path, connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise _not_a_store(path)
    # compared before any table is read: reading could execute a view or a trigger
    schema = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
    if ("meta", "table", TABLES["meta"]) not in schema:
        raise damaged(path, "the table meta is missing")
    found = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    if len(found) != 1 or not re.fullmatch("[0-9]{1,9}", str(found[0][0])):
        raise damaged(path, "the format is not stated")
    if found != [(FORMAT,)]:
        raise StoreError(
            f"the store {path} has format {found[0][0]}, and quadric {quadric.__version__} reads "
            f"format {FORMAT}. It was not changed; use the version of quadric that created it, or "
            "choose another file."
        )
    if set(schema) != SCHEMA or len(schema) != len(SCHEMA):
        raise damaged(path, "the tables are not those of a store")
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(path, verdict)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the system to StoreErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)  # None if a string is not UTF-8
        if code is not None and code & 0xFF in OUTSIDE:
            raise StoreError(
                f"the store {path} cannot be used: {_one_line(error)}. Stored runs are kept; free "
                "some space or make the file writable, then run the same command again."
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_a_store(path) from None
        raise damaged(path, error) from None
    except UnicodeError:  # SQLite's error message quotes invalid text
        raise damaged(path, "it contains invalid text") from None
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be used: {error.strerror or error}. Choose a file in an "
            "existing, writable directory on a local disk."
        ) from error


def damaged(path: Path, reason: object) -> StoreError:
    return StoreError(
        f"the store {path} is damaged ({_one_line(reason)}). It was not changed; restore a copy, "
        "or start again with another file."
    )


def _not_a_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of finished runs. It was not changed; choose another file, or the "
        "name of a new one."
    )


def _in_the_way(other: Path) -> StoreError:
    return StoreError(
        f"{other} is in the way: it does not belong to the store, but SQLite would use and remove "
        "it. It was not changed; move it, or choose another store."
    )


def _one_line(reason: object) -> str:
    """Return a short printable line, because a reason may quote the file's content."""
    text = " ".join(str(reason).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


class Lock:
    """A lock on an existing file that only one process may hold; others get a StoreError.

    Notes
    -----
    The lock is a system lock on the store itself: it works under every name of the file, needs no
    other file, and is released if the process is killed. On Linux it is a `flock`, which does not
    interact with SQLite's own locks. On other Unix systems it would, and Windows has no such lock,
    so there the lock is on a byte that SQLite does not use.

    On Unix, closing any descriptor of a file releases all record locks of the process on it,
    including SQLite's. The descriptor is therefore closed after the store's connection, and no
    second one is opened in the meantime. SQLite keeps its own descriptors open while it holds a
    lock, that is, once the store is connected for writing; `renew` then acquires this lock again.
    """

    def __init__(self, path: Path, purpose: str) -> None:
        self._path, self._purpose = path, purpose
        with _guard:
            self._file_id = _file_id(os.stat(path))
            if self._file_id in _held:
                raise self._in_use("this process")
            self._file = os.open(path, LOCK_FLAGS)
            try:
                self._acquire(lock)
                if _file_id(os.fstat(self._file)) != self._file_id:
                    raise StoreError(f"{purpose} was replaced just now. Run the command again.")
            except BaseException:
                os.close(self._file)
                raise
            _held.add(self._file_id)

    def renew(self) -> None:
        """Confirm the lock; raise StoreError if another process has acquired it in between."""
        self._acquire(relock)

    def _acquire(self, acquire: Callable[[int, int], None]) -> None:
        try:
            acquire(self._file, LOCK_BYTE)
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
            close_locked(self._file, LOCK_BYTE)
            _held.discard(self._file_id)

    def _in_use(self, holder: str) -> StoreError:
        return StoreError(
            f"{self._purpose} is in use by {holder}. Wait until it has finished or stop it, then "
            "run the same command again: finished runs are kept."
        )


def _file_id(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _holder(file_id: tuple[int, int]) -> str:
    """Return a name for the process that holds the lock, from Linux's list of locks.

    A line reads '1: FLOCK ADVISORY WRITE <process> <device>:<inode> ...'.
    """
    if sys.platform != "linux":
        return "another process"
    device, inode = file_id
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    line = re.compile(rf"^\S+ +FLOCK +\S+ +\S+ +([1-9]\d*) +{place} ", re.M)
    with contextlib.suppress(OSError):
        if found := line.search(Path("/proc/locks").read_text(encoding="utf-8")):
            return f"process {found[1]}"
    return "another process"
