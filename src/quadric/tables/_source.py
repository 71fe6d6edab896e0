"""Tables in files: open a CSV or Parquet file and read it in batches of rows."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from quadric._utils.whole_files import open_regular
from quadric.errors import TableError
from quadric.tables import _parquet_file as parquet
from quadric.tables._csv_file import CsvFile

CHANGES = {
    "st_dev": "it was replaced by another file",
    "st_ino": "it was replaced by another file",
    "st_size": "its size changed",
    "st_mtime_ns": "its content was modified",
    "st_ctime_ns": "its content or its permissions were modified",
}
HASHED_BLOCK = 1 << 16  # bytes
HASHED_BLOCKS = 64  # files of up to 4 MiB are hashed in full


@dataclass(frozen=True)
class Source:
    """A table in a file, whose columns are known but whose rows have not been read yet.

    Attributes
    ----------
    path : Path
    version : dict
        The file's attributes when it was opened, which must not change; see `file_version`.
    columns : tuple of str
        The column names. Unnamed columns are called "column 3 (no name)" and so on.
    frames : callable
        Returns an iterator over frames of rows.
    unnamed : tuple of str
        The entries of `columns` that have no name in the file.
    """

    path: Path
    version: dict[str, int]
    columns: tuple[str, ...]
    frames: Callable[[], Iterator[pl.DataFrame]]
    unnamed: tuple[str, ...] = ()

    def batches(self, rows: int, start: int = 0) -> Iterator[pl.DataFrame]:
        """Yield frames of `rows` rows, beginning with row `start`; the last one may be shorter.

        Rows are counted from 0. Raises TableError if the file has changed since it was opened.
        """
        held = pl.DataFrame()
        for frame in self._checked_frames():
            held = pl.concat([held, frame[start:]]) if len(held) else frame[start:]
            start = max(0, start - len(frame))
            while len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held

    def read(self) -> pl.DataFrame:
        """Return all rows."""
        frames = list(self._checked_frames())
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(self.columns))

    def fingerprint(self) -> dict[str, Any]:
        """Return values that identify this version of the file, including a hash of samples."""
        size = self.version["st_size"]
        offsets: Sequence[int] = range(0, size, HASHED_BLOCK)
        if len(offsets) > HASHED_BLOCKS:
            step = HASHED_BLOCKS - 1
            offsets = [(size - HASHED_BLOCK) * i // step for i in range(HASHED_BLOCKS)]
        digest = hashlib.sha256(f"{size},".encode())
        try:
            with open_regular(self.path) as stream:
                for offset in offsets:
                    stream.seek(offset)
                    digest.update(stream.read(HASHED_BLOCK))
        except OSError as error:
            raise _cannot_read(self.path, error) from None
        check_unchanged(self.path, self.version)
        return {
            "file": str(self.path.resolve()),
            "size": size,
            "modified": self.version["st_mtime_ns"],
            "status": self.version["st_ctime_ns"],
            "content": digest.hexdigest(),
        }

    def _checked_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the frames, checking the file's version before each one and at the end."""
        check_unchanged(self.path, self.version)
        try:
            for frame in self.frames():
                check_unchanged(self.path, self.version)
                yield frame
        except (TableError, OSError) as error:
            check_unchanged(self.path, self.version)  # a change would explain the error
            if isinstance(error, TableError):
                raise
            raise _cannot_read(self.path, error) from None
        check_unchanged(self.path, self.version)


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


def open_table(path: str | Path) -> Source:
    """Open a CSV or Parquet file, whose format is detected from its first bytes.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Source

    Raises
    ------
    TableError
        If the file is missing, empty, damaged, a pipe or not in UTF-8, or if two columns have the
        same name.
    """
    path = Path(path)
    try:
        with open_regular(path) as stream:
            version = file_version(os.fstat(stream.fileno()))
            start = stream.read(1 << 16)
            if start.startswith(b"PAR1"):
                columns, rows = parquet.columns_and_rows(path)
                return Source(path, version, columns, partial(parquet.frames, path, rows))
            file = CsvFile.open(path, start, stream)
    except OSError as error:
        raise _cannot_read(path, error) from None
    return Source(path, version, file.columns, file.frames, file.unnamed)


def _cannot_read(path: Path, error: OSError) -> TableError:
    return TableError(f"cannot read {path}: {error.strerror}.")
