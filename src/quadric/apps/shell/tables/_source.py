"""Tables in files, read in batches of rows; each file is checked for changes."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from quadric.apps.shell.tables._table_format import TableFormat
from quadric.errors import TableError
from quadric.utils import open_regular

CHANGES = {
    "st_dev": "it was replaced by another file",
    "st_ino": "it was replaced by another file",
    "st_size": "its size changed",
    "st_mtime_ns": "its content was modified",
    "st_ctime_ns": "its content or its permissions were modified",
}
HASHED_BLOCK = 1 << 16  # bytes
HASHED_BLOCKS = 64  # a single file of up to 4 MiB is hashed in full


@dataclass(frozen=True)
class Source:
    """A table in one or more files, whose columns are known but whose rows have not been read yet.

    Attributes
    ----------
    path : Path
        The name of the table in messages.
    versions : mapping of Path to dict
        The attributes of each file when it was opened, which must not change; see `file_version`.
    columns : tuple of str
        The column names. Unnamed columns are called "column 3 (no name)" and so on.
    frames : callable
        Returns an iterator over frames of rows.
    unnamed : tuple of str
        The entries of `columns` that have no name in the file.
    table_format : TableFormat
        How text and numbers are written.
    spool : object
        The temporary file with the content of standard input, which is deleted with this object.
    """

    path: Path
    versions: Mapping[Path, dict[str, int]]
    columns: tuple[str, ...]
    frames: Callable[[], Iterator[pl.DataFrame]]
    unnamed: tuple[str, ...] = ()
    table_format: TableFormat = field(default_factory=TableFormat)
    spool: Any = field(default=None, repr=False, compare=False)

    def batches(self, rows: int, start: int = 0) -> Iterator[pl.DataFrame]:
        """Yield frames of `rows` rows, beginning with row `start`; the last one may be shorter.

        Rows are counted from 0. Raises TableError if a file has changed since it was opened.
        """
        held = pl.DataFrame()
        for frame in self._checked_frames():
            held = _joined([held, frame[start:]]) if len(held) else frame[start:]
            start = max(0, start - len(frame))
            while len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held

    def read(self) -> pl.DataFrame:
        """Return all rows."""
        frames = list(self._checked_frames())
        return _joined(frames) if frames else pl.DataFrame(schema=dict.fromkeys(self.columns))

    def fingerprint(self) -> dict[str, Any]:
        """Return values that identify the files' content, including a hash of samples."""
        most = max(2, HASHED_BLOCKS // len(self.versions))
        digest = hashlib.sha256()
        for file, version in self.versions.items():
            size = version["st_size"]
            offsets: Sequence[int] = range(0, size, HASHED_BLOCK)
            if len(offsets) > most:
                offsets = [(size - HASHED_BLOCK) * i // (most - 1) for i in range(most)]
            digest.update(f"{size},".encode())
            try:
                with open_regular(file) as stream:
                    for offset in offsets:
                        stream.seek(offset)
                        digest.update(stream.read(HASHED_BLOCK))
            except OSError as error:
                raise cannot_read(file, error) from None
        self._check_unchanged()
        versions = self.versions.values()
        return {
            "file": str(self.path.resolve()),
            "size": sum(version["st_size"] for version in versions),
            "modified": [version["st_mtime_ns"] for version in versions],
            "status": [version["st_ctime_ns"] for version in versions],
            "content": digest.hexdigest(),
            **asdict(self.table_format),
        }

    def _check_unchanged(self) -> None:
        for file, version in self.versions.items():
            check_unchanged(file, version)

    def _checked_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the frames, checking the files' versions before each one and at the end."""
        self._check_unchanged()
        rows = 0
        try:
            for frame in self.frames():
                self._check_unchanged()
                yield self.table_format.with_plain_numbers(frame, rows)
                rows += len(frame)
        except (TableError, OSError) as error:
            self._check_unchanged()  # a change would explain the error
            if isinstance(error, TableError):
                raise
            raise cannot_read(self.path, error) from None
        self._check_unchanged()


def file_version(found: os.stat_result) -> dict[str, int]:
    """Return the file attributes that reveal a change."""
    return {name: getattr(found, name) for name in CHANGES}


def check_unchanged(path: Path, version: dict[str, int]) -> None:
    """Raise TableError if the file has changed since `version`, or is missing."""
    try:
        now = file_version(path.stat())
    except OSError as error:
        raise changed(path, f"it cannot be found ({error.strerror})") from None
    for name, what in CHANGES.items():
        if now[name] != version[name]:
            raise changed(path, what)


def changed(path: Path, what: str) -> TableError:
    """Return the error for a file that changed between two reads."""
    return TableError(
        f"{path} changed while it was being read: {what}. Nothing was saved. Start again, without "
        "--resume, once no other program is writing to the file."
    )


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate frames; a column of integers in one part may contain floats in another."""
    try:
        return pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise TableError(f"a column has different types in different parts: {first}.") from None


def cannot_read(path: Path, error: OSError) -> TableError:
    """Return the error for a file that cannot be read."""
    return TableError(f"cannot read {path}: {error.strerror}.")
