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
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import quadric
from quadric.apps.paper.sweep._task import (
    ENGINE,
    AnyTask,
    Environment,
    Method,
    Result,
    StudyTask,
    Task,
)
from quadric.checks import expect
from quadric.errors import StoreError
from quadric.utils import HOUR, leftovers, lock, remove_leftovers, write_whole

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
            self._read()
            if not read_only:
                self._lock = undo.enter_context(_locked(self._file, self.path))
                self._connection = _connect(self._file, "mode=rw")
                undo.callback(self._connection.close)
                self._connection.executescript(SETTINGS)
            self._close = undo.pop_all()

    def runs(self, recipe: Method, checksum: str, *, engine: str = ENGINE) -> list[Run]:
        """Return all runs of the recipe or study on this data, in the order of their tasks."""
        wanted = (recipe.key(), engine, checksum)
        with _explained(self.path):
            runs = (run for key, run in self._read() if key == wanted)
            return sorted(runs, key=lambda run: run.task)

    def _read(self) -> list[tuple[Key, Run]]:
        """Read and verify the runs of all recipes, without changing any file."""
        log = Path(f"{self._file}-wal")
        while True:
            _check_place(self._file)
            has_log = log.exists()
            # mode=ro alone would create a log and an index; immutable=1 ignores an existing log
            options = "mode=ro" if has_log else "mode=ro&immutable=1"
            try:
                with (
                    contextlib.closing(_connect(self._file, options)) as connection,
                    _explained(self._file),
                ):
                    _check(self._file, connection)
                    connection.row_factory = sqlite3.Row
                    return [from_row(dict(row)) for row in connection.execute("SELECT * FROM runs")]
            except StoreError:
                if has_log or not log.exists():
                    raise
                # a sweep has started to write in the meantime: try again
            except (TypeError, ValueError, LookupError, RecursionError) as error:
                raise _damaged(self.path, f"a run differs from what was written: {error}") from None

    def add(
        self,
        recipe: Method,
        checksum: str,
        task: AnyTask,
        result: Result,
        environment: Environment,
    ) -> Run:
        """Store a run permanently; a run that is already stored is not replaced."""
        expect(
            not self._read_only, StoreError(f"the store {self.path} was opened for reading only.")
        )
        run = Run(task, result, environment, datetime.now(UTC).isoformat(timespec="microseconds"))
        row = to_row((recipe.key(), ENGINE, checksum), run)
        from_row(row)  # never write what could not be read back
        in_place = False
        with contextlib.suppress(OSError):
            in_place = os.path.samestat(os.stat(self._file), os.fstat(self._lock))
        expect(
            in_place,
            StoreError(
                f"the store {self.path} was moved, removed or replaced while it was in use. Put it "
                "back, then run the same command again."
            ),
        )
        with _explained(self.path):
            # outside BEGIN and COMMIT, every statement is its own transaction
            self._connection.execute(INSERT + "ON CONFLICT DO NOTHING", row)
        return run

    def close(self) -> None:
        """Close the file and release its lock."""
        self._close.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def to_row(key: Key, run: Run) -> dict[str, Any]:
    """Return the row of the table `runs`, by column."""
    row = {
        **dict(zip(("recipe", "engine", "data"), key, strict=True)),
        "size": run.task.size,
        "hidden": run.task.hidden,
        "kind": run.task.kind,
        "seed": run.task.seed,
        # JSON writes the shortest text that reads back as the same number
        "accuracies": json.dumps(run.result.accuracies),
        "seconds": float(run.result.seconds),
        "steps": run.result.visited,
        **asdict(run.environment),
        "finished_at": run.finished_at,
    }
    return row | {"digest": digest([*row.values()])}


def from_row(row: Mapping[str, Any]) -> tuple[Key, Run]:
    """Return the key and the run of a row; raise ValueError or TypeError for an invalid row."""
    expect(
        {name: type(value) for name, value in row.items()} == TYPES,
        ValueError("a value has the wrong type"),
    )
    expect(row["digest"] == digest([*row.values()][:-1]), ValueError("the digest does not match"))
    accuracies, method = json.loads(row["accuracies"]), json.loads(row["recipe"])
    kind_of_task, measured = (StudyTask, "measures") if "study" in method else (Task, "epochs")
    expect(
        type(accuracies) is list
        and all(type(number) is float and 0 <= number <= 1 for number in accuracies),
        ValueError("accuracies must be numbers from 0 to 1"),
    )
    expected = len(method[measured])
    expect(
        len(accuracies) == expected,
        ValueError(
            f"a run must have {expected} accuracies, one for each of the recipe's epochs or the "
            f"study's measures. Got {len(accuracies)}"
        ),
    )
    expect(
        0 <= row["seconds"] < math.inf and row["steps"] >= 0,
        ValueError("seconds and steps must be finite and not negative"),
    )
    datetime.fromisoformat(row["finished_at"])
    return (row["recipe"], row["engine"], row["data"]), Run(
        kind_of_task(row["size"], row["hidden"], row["kind"], row["seed"]),
        Result(tuple(accuracies), row["seconds"], row["steps"]),
        Environment(*(row[field.name] for field in fields(Environment))),
        row["finished_at"],
    )


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
        with contextlib.suppress(FileExistsError):
            write_whole(path, made.read_bytes(), new=True)


def _check_place(path: Path) -> None:
    """Check the file and the files next to it before SQLite opens and possibly changes them."""
    info = os.stat(path)
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")
    # SQLite would remove the log of an empty file, even in read-only mode
    expect(info.st_size, _not_a_store(path))
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # links left by a killed `_create`; counted before `stat`, as they may be removed in between
    own = sum(os.path.samestat(left, info) for _, left in leftovers(path))
    names = os.stat(path).st_nlink - own
    expect(
        names <= 1,
        StoreError(
            f"the store {path} has {names} names (hard links), but SQLite finds its log only "
            "under one of them. Remove the other names, or use a copy of the file."
        ),
    )
    _check_beside(path, is_new=False)


def _check_beside(path: Path, *, is_new: bool) -> None:
    """Refuse files with the names of SQLite's files that SQLite has not written for this store."""
    for suffix in ("-journal", "-wal", "-shm"):
        other = Path(f"{path}{suffix}")
        with contextlib.suppress(FileNotFoundError):
            info = os.lstat(other)  # also fails if the names of SQLite's files would be too long
            # if a new store exists, another process has just created it
            expect(
                os.path.lexists(path) if is_new else _is_of_sqlite(other, info),
                StoreError(
                    f"{other} is in the way: it does not belong to the store, but SQLite would use "
                    "and remove it. It was not changed; move it, or choose another store."
                ),
            )


def _is_of_sqlite(other: Path, info: os.stat_result) -> bool:
    """Return whether a file next to the store looks like a file of SQLite."""
    if stat.S_ISREG(info.st_mode) and other.name.endswith("-wal"):
        with other.open("rb") as stream:
            return stream.read(8) in LOG_MAGIC
    # An index is checked by its size only: opening and closing it would drop SQLite's locks. A
    # store uses a log from the start, never a journal.
    is_index = stat.S_ISREG(info.st_mode) and other.name.endswith("-shm")
    return is_index and (info.st_size < 4 or info.st_size % 4096 == 0)


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, isolation_level=None, timeout=30)


def _check(path: Path, connection: sqlite3.Connection) -> None:
    expect(
        connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,),
        _not_a_store(path),
    )
    # compared before any table is read: reading could execute a view or a trigger
    schema = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
    expect(("meta", "table", TABLES["meta"]) in schema, _damaged(path, "the table meta is missing"))
    formats = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    expect(
        len(formats) == 1 and re.fullmatch("[0-9]{1,9}", str(formats[0][0])),
        _damaged(path, "the format is not stated"),
    )
    expect(
        formats == [(FORMAT,)],
        StoreError(
            f"the store {path} has format {formats[0][0]}, and quadric {quadric.__version__} reads "
            f"format {FORMAT}. It was not changed; use the version of quadric that created it, or "
            "choose another file."
        ),
    )
    expect(
        set(schema) == SCHEMA and len(schema) == len(SCHEMA),
        _damaged(path, "the tables are not those of a store"),
    )
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    expect(verdict == "ok", _damaged(path, verdict))


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


def _in_use(path: Path, which: str) -> StoreError:
    return StoreError(
        f"the store {path} is in use by {which} process. Wait until it has finished or stop it, "
        "then run the same command again: finished runs are kept."
    )


def _one_line(reason: object) -> str:
    """Return a short printable line, because a reason may quote the file's content."""
    text = " ".join(str(reason).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


@contextlib.contextmanager
def _locked(path: Path, name: Path) -> Iterator[int]:
    """Lock an existing file, and yield its descriptor; StoreError if it is locked already.

    The lock is a system lock on the store itself: it works under every name of the file, needs no
    other file, and is released if the process is killed. On Linux it is a `flock`, which does not
    interact with SQLite's own locks. On other Unix systems it would, and Windows has no such lock,
    so there the lock is on a byte that SQLite does not use.

    On Unix, closing any descriptor of a file releases all record locks of the process on it,
    including SQLite's. The descriptor is therefore closed after the store's connection, and no
    second one is opened in the meantime. SQLite keeps its own descriptors open while it holds a
    lock, that is, once the store is connected for writing. The store is read before it is locked,
    because reading closes a descriptor.
    """
    with _guard:
        info = os.stat(path)
        held = (info.st_dev, info.st_ino)
        expect(held not in _held, _in_use(name, "this"))
        handle = os.open(
            path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        try:
            lock(handle, LOCK_BYTE)
        except (BlockingIOError, PermissionError):  # which one depends on the system
            os.close(handle)
            raise _in_use(name, "another") from None
        _held.add(held)
    try:
        yield handle
    finally:
        with _guard:
            lock(handle, LOCK_BYTE, release=True)
            os.close(handle)
            _held.discard(held)
