"""What is wrong with a store, each in one line that names it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from quadric.errors import StoreError

# The codes of SQLite's errors that lie with the disk, the rights or other processes. All others
# mean that the file is not what it should be.
OUTSIDE = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_AUTH,
}  # fmt: skip


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
            raise no_store(path) from None
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


def no_store(path: Path) -> StoreError:
    return StoreError(
        f"{path} is not a store of finished runs. It was left as it is; give another file, "
        "or the name of a new one."
    )


def in_the_way(beside: Path) -> StoreError:
    return StoreError(
        f"{beside} is in the way: SQLite would use and remove it, and it does not belong to the "
        "store. It was left as it is; move it away, or give another store."
    )


def _plain(reason: object) -> str:
    """One short line: a reason may quote the file."""
    text = " ".join(str(reason).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]
