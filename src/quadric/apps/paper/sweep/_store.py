"""Finished runs in an SQLite file: one transaction per run, so that none is lost or repeated.

The file is created atomically, locked, and verified before it is written. While it is in use,
SQLite keeps a log (`-wal`) and its index (`-shm`) next to it. SQLite would use any files with these
names, so they are checked first.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import sqlite3
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import quadric
from quadric.apps.paper.sweep._recipe import StudyTask
from quadric.apps.paper.sweep._task import ENGINE, AnyTask, Environment, Method, Result, Task
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
# The types of the columns of the table `runs`. The digest is that of all other values.
TYPES = {
    **dict.fromkeys(("recipe", "engine", "data"), str),
    "size": int,
    "hidden": int,
    "kind": str,
    "seed": int,
    "accuracies": str,  # JSON
    "seconds": float,
    "steps": int,
    **dict.fromkeys(("cpu", "quadric", "numpy", "numba", "python", "finished_at", "digest"), str),
}
INSERT = f"INSERT INTO runs VALUES ({', '.join(f':{name}' for name in TYPES)}) "
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
LOG_MAGIC = (b"", *(bytes.fromhex(f"377f068{end}002de218") for end in "23"))
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

Key = tuple[str, str, str]  # recipe or study, engine, checksum of the data


@dataclass(frozen=True)
class Run:
    """A finished run, as stored; `finished_at` is an ISO 8601 time in UTC."""

    task: AnyTask
    result: Result
    environment: Environment
    finished_at: str


class Store(contextlib.AbstractContextManager["Store"]):
    """A file of finished runs, created if it does not exist. Also a context manager.

    Parameters
    ----------
    path : str or Path
        Links are followed, and the file itself is locked, so a store has only one writer,
        regardless of the name under which it is opened.
    read_only : bool
        Whether to open the store for reading only, as a report does. Reading does not take a lock
        or change any files, and works while another process is writing to the store.

    Raises
    ------
    StoreError
        If another process has the store open for writing, if it cannot be written, or if the file
        is damaged, is not a store or has another format. In these cases, the file is not changed.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path, self._read_only = Path(path), read_only
        with contextlib.ExitStack() as undo, _explained(self.path):
            self._file = Path(os.path.realpath(path))
            if not read_only:
                _create(self._file)
                _check_place(self._file)
                self._lock = Lock(self._file, f"the store {self.path}")
                undo.callback(self._lock.release)
            self._runs = self._read()
            if not read_only:
                self._connection = _connect(self._file, "mode=rw")
                undo.callback(self._connection.close)
                self._connection.executescript(SETTINGS)
                self._lock.acquire(relock)
            self._close = undo.pop_all()

    def runs(self, recipe: Method, checksum: str, *, engine: str = ENGINE) -> list[Run]:
        """Return all runs of the recipe or study on this data, in the order of their tasks."""
        if self._read_only:  # another process may have added runs
            with _explained(self.path):
                self._runs = self._read()
        wanted = (recipe.key(), engine, checksum)
        return sorted((run for key, run in self._runs if key == wanted), key=lambda run: run.task)

    def _read(self) -> list[tuple[Key, Run]]:
        """Read and verify the runs of all recipes."""
        rows = _read_all(self._file)
        try:
            return [from_row(row) for row in rows]
        except (TypeError, ValueError, LookupError, RecursionError) as error:
            reason = f"a run differs from what was written: {error}"
            raise _damaged(self.path, reason) from None

    def add(
        self,
        recipe: Method,
        checksum: str,
        task: AnyTask,
        result: Result,
        environment: Environment,
    ) -> Run:
        """Store a run permanently; a run that is already stored is not replaced."""
        if self._read_only:
            raise StoreError(f"the store {self.path} was opened for reading only.")
        run = Run(task, result, environment, datetime.now(UTC).isoformat(timespec="microseconds"))
        row = to_row((recipe.key(), ENGINE, checksum), run)
        checked = from_row(row)  # never write what could not be read back
        if not self._lock.is_in_place():
            raise StoreError(
                f"the store {self.path} was moved, removed or replaced while it was in use. Put it "
                "back, then run the same command again."
            )
        with _explained(self.path):
            # outside BEGIN and COMMIT, every statement is its own transaction
            cursor = self._connection.execute(INSERT + "ON CONFLICT DO NOTHING", row)
        if cursor.rowcount:
            self._runs.append(checked)
        return run

    def close(self) -> None:
        """Close the file and release its lock."""
        self._close.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def to_row(key: Key, run: Run) -> dict[str, Any]:
    """Return the row of the table `runs`, by column."""
    task, result = run.task, run.result
    row = {
        **dict(zip(("recipe", "engine", "data"), key, strict=True)),
        "size": task.size,
        "hidden": task.hidden,
        "kind": task.kind,
        "seed": task.seed,
        # JSON writes the shortest text that reads back as the same number
        "accuracies": json.dumps(result.accuracies),
        "seconds": float(result.seconds),
        "steps": result.visited,
        **asdict(run.environment),
        "finished_at": run.finished_at,
    }
    return row | {"digest": digest([*row.values()])}


def from_row(row: Mapping[str, Any]) -> tuple[Key, Run]:
    """Return the key and the run of a row; raise ValueError or TypeError for an invalid row."""
    if {name: type(value) for name, value in row.items()} != TYPES:
        raise ValueError("a value has the wrong type")
    if row["digest"] != digest([*row.values()][:-1]):
        raise ValueError("the digest does not match")
    accuracies = json.loads(row["accuracies"])
    if not isinstance(accuracies, list) or not all(
        type(number) is float and 0 <= number <= 1 for number in accuracies
    ):
        raise ValueError("accuracies must be numbers from 0 to 1")
    method = json.loads(row["recipe"])
    expected = method["measures" if "study" in method else "epochs"]
    if len(accuracies) != len(expected):
        raise ValueError(
            f"a run must have {len(expected)} accuracies, one for each of the recipe's epochs or "
            f"the study's measures. Got {len(accuracies)}"
        )
    if not (0 <= row["seconds"] < math.inf and row["steps"] >= 0):
        raise ValueError("seconds and steps must be finite and not negative")
    datetime.fromisoformat(row["finished_at"])
    kind_of_task = StudyTask if "study" in method else Task
    run = Run(
        kind_of_task(row["size"], row["hidden"], row["kind"], row["seed"]),
        Result(tuple(accuracies), row["seconds"], row["steps"]),
        Environment(*(row[field.name] for field in fields(Environment))),
        row["finished_at"],
    )
    return (row["recipe"], row["engine"], row["data"]), run


def digest(values: Sequence[Any]) -> str:
    """Return a digest that detects damage, even if all numbers are plausible, but not forgery."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


# ---- the file ------------------------------------------------------------------------------------


def _create(path: Path) -> None:
    """Create a store unless one exists. A killed process does not leave a partial store behind.

    If another process creates a store at the same time, that store is kept.
    """
    remove_leftovers(path, age=HOUR)
    if os.path.lexists(path):
        return
    _check_beside(path, is_new=True)
    with tempfile.TemporaryDirectory(prefix="quadric-") as directory:
        made = Path(directory) / "store"
        with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
            connection.executescript(SCRIPT)
        content = made.read_bytes()
    with contextlib.suppress(FileExistsError):
        write_whole(path, content, new=True)


def _check_place(path: Path) -> None:
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
        # links left by a killed `_create`; counted before `stat`, as they may be removed in between
        own = sum(os.path.samestat(left, info) for _, left in leftovers(path))
        names = os.stat(path).st_nlink - own
        if names > 1:
            raise StoreError(
                f"the store {path} has {names} names (hard links), but SQLite finds its log only "
                "under one of them. Remove the other names, or use a copy of the file."
            )
    _check_beside(path, is_new=False)


def _check_beside(path: Path, *, is_new: bool) -> None:
    """Refuse files with the names of SQLite's files that SQLite has not written for this store."""
    for suffix in ("-journal", "-wal", "-shm"):
        other = Path(f"{path}{suffix}")
        with contextlib.suppress(FileNotFoundError):
            info = os.lstat(other)  # also fails if the names of SQLite's files would be too long
            if is_new:
                belongs = os.path.lexists(path)  # another process has just created the store
            else:
                belongs = stat.S_ISREG(info.st_mode) and _is_of_sqlite(other, info.st_size)
            if not belongs:
                raise StoreError(
                    f"{other} is in the way: it does not belong to the store, but SQLite would use "
                    "and remove it. It was not changed; move it, or choose another store."
                )


def _is_of_sqlite(other: Path, size: int) -> bool:
    """Return whether a file next to the store looks like a file of SQLite."""
    if other.name.endswith("-wal"):
        with other.open("rb") as stream:
            return stream.read(8) in LOG_MAGIC
    # An index is checked by its size only: opening and closing it would drop SQLite's locks. A
    # store uses a log from the start, never a journal.
    return other.name.endswith("-shm") and (size < 4 or size % 4096 == 0)


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, isolation_level=None, timeout=30)


def _read_all(path: Path) -> list[dict[str, Any]]:
    """Return all rows of the table `runs` of a valid store, without changing any file."""
    while True:
        _check_place(path)
        log = Path(f"{path}-wal")
        has_log = log.exists()
        # mode=ro alone would create a log and an index; immutable=1 ignores an existing log
        options = "mode=ro" if has_log else "mode=ro&immutable=1"
        try:
            with contextlib.closing(_connect(path, options)) as connection, _explained(path):
                _check(path, connection)
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute("SELECT * FROM runs")]
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
        raise _damaged(path, "the table meta is missing")
    formats = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    if len(formats) != 1 or not re.fullmatch("[0-9]{1,9}", str(formats[0][0])):
        raise _damaged(path, "the format is not stated")
    if formats != [(FORMAT,)]:
        raise StoreError(
            f"the store {path} has format {formats[0][0]}, and quadric {quadric.__version__} reads "
            f"format {FORMAT}. It was not changed; use the version of quadric that created it, or "
            "choose another file."
        )
    if set(schema) != SCHEMA or len(schema) != len(SCHEMA):
        raise _damaged(path, "the tables are not those of a store")
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise _damaged(path, verdict)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
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
        raise _damaged(path, error) from None
    except UnicodeError:  # SQLite's error message quotes invalid text
        raise _damaged(path, "it contains invalid text") from None
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be used: {error.strerror or error}. Choose a file in an "
            "existing, writable directory on a local disk."
        ) from error


def _damaged(path: Path, reason: object) -> StoreError:
    return StoreError(
        f"the store {path} is damaged ({_one_line(reason)}). It was not changed; restore a copy, "
        "or start again with another file."
    )


def _not_a_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of finished runs. It was not changed; choose another file, or the "
        "name of a new one."
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
    lock, that is, once the store is connected for writing; it is then acquired again (`relock`).
    """

    def __init__(self, path: Path, purpose: str) -> None:
        self._path, self._purpose = path, purpose
        with _guard:
            if self._file_id() in _held:
                raise self._in_use("this process")
            flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            self._file = os.open(path, flags)
            info = os.fstat(self._file)
            self._held = (info.st_dev, info.st_ino)
            try:
                self.acquire(lock)
            except BaseException:
                os.close(self._file)
                raise
            _held.add(self._held)

    def acquire(self, lock_file: Callable[[int, int], None]) -> None:
        """Lock the file; raise StoreError if another process has locked it."""
        try:
            lock_file(self._file, LOCK_BYTE)
        except (BlockingIOError, PermissionError):  # which one depends on the system
            raise self._in_use(_holder(*self._held)) from None

    def _file_id(self) -> tuple[int, int]:
        info = os.stat(self._path)
        return info.st_dev, info.st_ino

    def is_in_place(self) -> bool:
        """Return whether the path still leads to the locked file."""
        try:
            return self._file_id() == self._held
        except OSError:
            return False

    def release(self) -> None:
        with _guard:
            close_locked(self._file, LOCK_BYTE)
            _held.discard(self._held)

    def _in_use(self, holder: str) -> StoreError:
        return StoreError(
            f"{self._purpose} is in use by {holder}. Wait until it has finished or stop it, then "
            "run the same command again: finished runs are kept."
        )


def _holder(device: int, inode: int) -> str:
    """Return a name for the process that holds the lock, from Linux's list of locks.

    A line reads '1: FLOCK ADVISORY WRITE <process> <device>:<inode> ...'.
    """
    if sys.platform == "linux":
        place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
        line = re.compile(rf"^\S+ +FLOCK +\S+ +\S+ +([1-9]\d*) +{place} ", re.M)
        with contextlib.suppress(OSError):
            if match := line.search(Path("/proc/locks").read_text(encoding="utf-8")):
                return f"process {match[1]}"
    return "another process"
