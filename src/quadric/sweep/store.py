"""The finished runs of sweeps, in an SQLite file: each one transaction, none lost or done twice.

WAL mode, so that a report can be read while a sweep writes. With ``synchronous = FULL`` a run
that was stored also survives a loss of power; NORMAL would survive a killed process only, and
the fraction of a millisecond to a few milliseconds a row that it saves is nothing beside a run.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import quadric
from quadric.errors import StoreError
from quadric.sweep.environment import Environment
from quadric.sweep.lock import Lock
from quadric.sweep.recipe import Recipe
from quadric.sweep.task import ENGINE, Result, Task

__all__ = ["Row", "Store"]

APPLICATION_ID = 0x51445243  # 'QDRC', at byte 68 of the file
FORMAT = "1"
SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES
    ('application', 'quadric.sweep'), ('format', '{FORMAT}'),
    ('created by', 'quadric {quadric.__version__}');
CREATE TABLE runs (
    recipe TEXT NOT NULL, engine TEXT NOT NULL, data TEXT NOT NULL,
    size INTEGER NOT NULL, hidden INTEGER NOT NULL, kind TEXT NOT NULL, seed INTEGER NOT NULL,
    accuracies TEXT NOT NULL, seconds REAL NOT NULL, steps INTEGER NOT NULL,
    cpu TEXT NOT NULL, quadric TEXT NOT NULL, numpy TEXT NOT NULL, numba TEXT NOT NULL,
    python TEXT NOT NULL, finished_at TEXT NOT NULL,
    UNIQUE (recipe, engine, data, size, hidden, kind, seed)
);
COMMIT;
"""


@dataclass(frozen=True)
class Row:
    """A finished run as it is stored; `finished_at` is in UTC, as ISO 8601 writes it."""

    task: Task
    result: Result
    environment: Environment
    finished_at: str


class Store:
    """A file of finished runs; made where there is none. Also a context manager.

    Parameters
    ----------
    path : str or Path
    read_only : bool
        For reports: takes no lock, writes nothing, and works while another process writes.

    Raises
    ------
    StoreError
        When another process has it open for writing, when the file is something else or of
        another format (it is left as it is), or when it cannot be written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        with contextlib.ExitStack() as undo, _explained(self.path):
            if not read_only:
                beside = self.path.with_name(self.path.name + ".lock")
                lock = Lock(beside, f"the store {self.path}")
                undo.callback(lock.release)
                if not self.path.exists():
                    _create(self.path)
            _check_header(self.path)
            self._connection = _connect(self.path, read_only)
            undo.callback(self._connection.close)
            _check_contents(self.path, self._connection)
            if not read_only:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            self._close = undo.pop_all()

    def rows(self, recipe: Recipe, checksum: str, *, engine: str = ENGINE) -> list[Row]:
        """All runs of that recipe on those data, in the order of their tasks."""
        with _explained(self.path):
            found = self._connection.execute(
                "SELECT size, hidden, kind, seed, accuracies, seconds, steps, cpu, quadric, numpy, "
                "numba, python, finished_at FROM runs WHERE recipe = ? AND engine = ? AND data = ? "
                "ORDER BY size, hidden, kind, seed",
                (recipe.key(), engine, checksum),
            ).fetchall()
        return [
            Row(
                Task(*values[:4]),
                Result(tuple(json.loads(values[4])), *values[5:7]),
                Environment(*values[7:12]),
                values[12],
            )
            for values in found
        ]

    def add(
        self, recipe: Recipe, checksum: str, task: Task, result: Result, environment: Environment
    ) -> Row:
        """Store a run, for good when this returns; one that is there already stays as it is."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        key = (recipe.key(), ENGINE, checksum, *astuple(task))
        # JSON writes the shortest text that reads back as the same number
        values = (json.dumps(result.accuracies), result.seconds, result.steps)
        row = (*key, *values, *astuple(environment), now)
        with _explained(self.path):
            # without an open transaction a statement is one
            self._connection.execute(
                f"INSERT INTO runs VALUES ({', '.join('?' * len(row))}) ON CONFLICT DO NOTHING", row
            )
        return Row(task, result, environment, now)

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as StoreErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        if "malformed" in str(error) or "not a database" in str(error):
            raise _damaged(path, str(error)) from None
        raise StoreError(
            f"the store {path} cannot be used: {error}. Runs that were stored are kept; make "
            "room or the file writable, then run the same command again."
        ) from error
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be used: {error.strerror or error}. Give a file in an "
            "existing directory that can be written, on a local disk."
        ) from error


def _damaged(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"the store {path} is damaged ({reason}). It was left as it is; restore a copy, or give "
        "another file to begin anew."
    )


def _create(path: Path) -> None:
    """A new store, all of it or nothing: a process killed here leaves no half-made file."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            connection.executescript(SCHEMA)
        finally:
            connection.close()
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _check_header(path: Path) -> None:
    """Look at the first bytes before SQLite opens, and might change, what is not ours."""
    with path.open("rb") as file:
        header = file.read(100)
    ours = APPLICATION_ID.to_bytes(4, "big")
    if header[:16] != b"SQLite format 3\0" or header[68:72] != ours:
        raise StoreError(
            f"{path} is not a store of finished runs. It was left as it is; give another file, "
            "or the name of a new one."
        )


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=rw", uri=True, isolation_level=None, timeout=30)
    if not read_only:
        return connection
    try:
        # not mode=ro, which leaves its two auxiliary files behind
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        writing = path.with_name(path.name + "-wal").exists()
        if writing or not isinstance(error, sqlite3.OperationalError):
            raise
        # a directory that cannot be written, so that nobody else is writing either
        connection = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)
    return connection


def _check_contents(path: Path, connection: sqlite3.Connection) -> None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise _damaged(path, " ".join(verdict.split()))  # one line
    (found,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    if found != FORMAT:
        raise StoreError(
            f"the store {path} has format {found}, and quadric {quadric.__version__} reads format "
            f"{FORMAT}. It was left as it is; use the version of quadric that made it, or another "
            "file."
        )
