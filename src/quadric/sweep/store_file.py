"""The SQLite file behind a store: made whole or not at all, opened only if it is one of ours."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import quadric
from quadric.errors import StoreError

__all__ = ["check_contents", "check_header", "connect", "create", "explained"]

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


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
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


def create(path: Path) -> None:
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


def check_header(path: Path) -> None:
    """Look at the first bytes before SQLite opens, and might change, what is not ours."""
    with path.open("rb") as file:
        header = file.read(100)
    ours = APPLICATION_ID.to_bytes(4, "big")
    if header[:16] != b"SQLite format 3\0" or header[68:72] != ours:
        raise StoreError(
            f"{path} is not a store of finished runs. It was left as it is; give another file, "
            "or the name of a new one."
        )


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
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


def check_contents(path: Path, connection: sqlite3.Connection) -> None:
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
