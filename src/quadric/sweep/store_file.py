"""The SQLite file behind a store: made whole or not at all, opened only if it is one of ours.

SQLite keeps a log (`-wal`) and its index (`-shm`) beside the file while it is in use, and those of
a killed process until the next one. It takes any file of such a name for its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import quadric
from quadric.errors import StoreError

__all__ = [
    "check_file",
    "connect",
    "create",
    "damaged",
    "explained",
    "read_all",
    "remove_leftovers",
]

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
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
{TABLES["meta"]};
INSERT INTO meta VALUES
    ('application', 'quadric.sweep'), ('format', '{FORMAT}'),
    ('created by', 'quadric {quadric.__version__}');
{TABLES["runs"]};
COMMIT;
"""

# The codes of SQLite's errors that lie with the disk, the rights or other processes. All others
# mean that the file is not what it should be.
OUTSIDE = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_AUTH,
}  # fmt: skip
LOGS = (b"", *(bytes.fromhex(f"377f068{end}002de218") for end in "23"))  # how logs begin
HOUR = 3600


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as StoreErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)  # None: a text that is no text
        if code is not None and code & 0xFF in OUTSIDE:
            raise StoreError(
                f"the store {path} cannot be used: {_plain(error)}. Runs that were stored are "
                "kept; make room or the file writable, then run the same command again."
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise _no_store(path) from None
        raise damaged(path, error) from None
    except UnicodeError:  # an error of SQLite that quotes what is no text
        raise damaged(path, "it holds what is no text") from None
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be used: {error.strerror or error}. Give a file in an "
            "existing directory that can be written, on a local disk."
        ) from error


def damaged(path: Path, reason: object) -> StoreError:
    return StoreError(
        f"the store {path} is damaged ({_plain(reason)}). It was left as it is; restore a copy, "
        "or give another file to begin anew."
    )


def _no_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of finished runs. It was left as it is; give another file, "
        "or the name of a new one."
    )


def _plain(reason: object) -> str:
    """One short line: a reason may quote the file."""
    text = " ".join(str(reason).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


def create(path: Path) -> None:
    """A new store, all of it or nothing: a process killed here leaves no half-made file.

    If another process makes one meanwhile, that one stays.
    """
    for beside in (_beside(path, suffix) for suffix in ("-journal", "-wal", "-shm")):
        if os.path.lexists(beside) and not os.path.lexists(path):
            raise _in_the_way(beside)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(new, flags, 0o644))
    try:
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.executescript(SCRIPT)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)  # unlike a renaming it replaces nothing
    finally:
        for left in (new, _beside(new, "-wal"), _beside(new, "-shm")):
            left.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """What `create` made in processes that were killed; not what others may be making just now."""
    for left, same in _leftovers(path):
        with contextlib.suppress(OSError):
            if same or time.time() - os.lstat(left).st_mtime > HOUR:
                os.unlink(left)


def _leftovers(path: Path) -> list[tuple[str, bool]]:
    """The names that `create` gives to what it makes, and whether it is the store itself."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.new(-wal|-shm|-journal)?")
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            if pattern.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    same = os.path.samestat(os.lstat(entry.path), os.stat(path))
                    found.append((entry.path, same))
    return found


def check_file(path: Path) -> None:
    """Look at the file and those beside it before SQLite opens, and might change, them."""
    info = os.stat(path)
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a file")
    if info.st_size == 0:
        raise _no_store(path)  # SQLite would remove a log beside it, even for reading only
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if info.st_nlink > 1:
        own = sum(same for _, same in _leftovers(path))  # counted first: they may be removed now
        names = os.stat(path).st_nlink - own
        if names > 1:
            raise StoreError(
                f"the store {path} has {names} names (hard links), under which SQLite would not "
                "find its log. Remove the others, or make a copy and give that."
            )
    for suffix, belongs in (("-journal", _never), ("-wal", _is_log), ("-shm", _is_index)):
        beside = _beside(path, suffix)
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(beside)
            if not (stat.S_ISREG(found.st_mode) and belongs(beside, found.st_size)):
                raise _in_the_way(beside)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _in_the_way(beside: Path) -> StoreError:
    return StoreError(
        f"{beside} is in the way: SQLite would use and remove it, and it does not belong to the "
        "store. It was left as it is; move it away, or give another store."
    )


def _never(beside: Path, size: int) -> bool:
    return False  # a store has a log from its beginning, and so never a journal


def _is_log(beside: Path, size: int) -> bool:
    with beside.open("rb") as file:
        start = file.read(8)
    return not start or start in (
        b"\x37\x7f\x06\x82\0\x2d\xe2\x18",
        b"\x37\x7f\x06\x83\0\x2d\xe2\x18",
    )


def _is_index(beside: Path, size: int) -> bool:
    # by its size: to open and close it would drop SQLite's locks on it
    return size < 4 or size % 2**15 == 0


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
        check_file(path)
        log = _beside(path, "-wal")
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
        raise _no_store(path)
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
