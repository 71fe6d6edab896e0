"""The SQLite file behind a store: made whole or not at all, opened only if it is one of ours."""

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import quadric
from quadric.errors import StoreError
from quadric.paper.sweep import _store_place as store_place
from quadric.paper.sweep._store_errors import damaged, explained, no_store
from quadric.paper.sweep._store_place import SUFFIXES, beside

APPLICATION_ID = 0x51445243  # 'QDRC', at byte 68 of the file
FORMAT = "2"  # 1 had no digest
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
    ('application', 'quadric.paper.sweep'), ('format', '{FORMAT}'),
    ('created by', 'quadric {quadric.__version__}');
{TABLES["runs"]};
COMMIT;
"""


def create(path: Path) -> None:
    """A new store, all of it or nothing: a process killed here leaves no half-made file.

    If another process makes one meanwhile, that one stays.
    """
    store_place.check_place_is_free(path)
    new = store_place.new_file(path)
    try:
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.executescript(SCRIPT)
        with new.open("rb+") as file:
            os.fsync(file.fileno())  # once, at the end: the bytes before the name
        with contextlib.suppress(FileExistsError):
            os.link(new, path)  # unlike a renaming it replaces nothing
    finally:
        for suffix in ("", *SUFFIXES):
            beside(new, suffix).unlink(missing_ok=True)


def connect(path: Path) -> sqlite3.Connection:
    """For writing a file that was checked.

    WAL mode, so that a report can be read while a sweep writes. With ``synchronous = FULL`` a run
    that was stored also survives a loss of power. NORMAL would survive a killed process only, and
    what it saves (0.06 against 0.23 ms a row where it was measured) is nothing beside a run.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=30
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def read_all(path: Path) -> list[tuple[Any, ...]]:
    """All rows of the table `runs` of a whole store; changes no file, whatever is found."""
    while True:
        store_place.check_place(path)
        log = beside(path, "-wal")
        has_log = log.exists()
        # mode=ro alone would leave a log and an index behind where there are none; `immutable`
        # looks at no log
        uri = f"{path.as_uri()}?mode=ro" + ("" if has_log else "&immutable=1")
        try:
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
            with contextlib.closing(connection), explained(path):
                _check(path, connection)
                return connection.execute("SELECT * FROM runs").fetchall()
        except StoreError:
            if has_log or not log.exists():
                raise
            # a sweep has begun to write meanwhile


def _check(path: Path, connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise no_store(path)
    # compared before any table is read: a view or a trigger would be executed
    schema = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
    if ("meta", "table", TABLES["meta"]) not in schema:
        raise damaged(path, "it has no table of what it is")
    found = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    if len(found) != 1 or not re.fullmatch("[0-9]{1,9}", str(found[0][0])):
        raise damaged(path, "it does not say of which format it is")
    if found != [(FORMAT,)]:
        raise StoreError(
            f"the store {path} has format {found[0][0]}, and quadric {quadric.__version__} reads "
            f"format {FORMAT}. It was left as it is; use the version of quadric that made it, or "
            "another file."
        )
    if set(schema) != SCHEMA or len(schema) != len(SCHEMA):
        raise damaged(path, "its tables are others")
    verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(path, verdict)
