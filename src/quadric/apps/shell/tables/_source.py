"""Tables in files or on standard input: opened, checked for changes, and read in batches of rows.

Polars is imported with the first row, so that the columns of a CSV file are known before anything
slow is imported.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from quadric.apps.shell.tables._csv_file import CsvFile
from quadric.apps.shell.tables._table_format import PARQUET, TableFormat, is_pattern, is_stdin
from quadric.errors import TableError
from quadric.utils import open_regular

if TYPE_CHECKING:
    import polars as pl

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
        held = None
        for frame in self._checked_frames():
            new = frame[start:]
            start = max(0, start - len(frame))
            held = new if held is None or held.is_empty() else _joined([held, new])
            while len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if held is not None and len(held):
            yield held

    def read(self) -> pl.DataFrame:
        """Return all rows."""
        import polars as pl

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


def file_version(status: os.stat_result) -> dict[str, int]:
    """Return the file attributes that reveal a change."""
    return {name: getattr(status, name) for name in CHANGES}


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
    import polars as pl

    try:
        return pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise TableError(f"a column has different types in different parts: {first}.") from None


def cannot_read(path: Path, error: OSError) -> TableError:
    """Return the error for a file that cannot be read."""
    return TableError(f"cannot read {path}: {error.strerror}.")


def open_table(path: str | Path, table_format: TableFormat | None = None) -> Source:
    """Open a table, whose format is detected from its first bytes.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file. CSV files may be compressed with gzip or Zstandard; the fields of
        .tsv files are separated by tabs. Also a directory of Parquet files, a pattern such as
        'parts/*.csv' for files with the same columns, or '-' for standard input.
    table_format : TableFormat, optional
        How text and numbers are written; by default in UTF-8 with decimal points.

    Returns
    -------
    Source

    Raises
    ------
    TableError
        If a file is missing, empty, damaged, a pipe or in another encoding, or if two columns have
        the same name.
    """
    path, table_format = Path(path), table_format or TableFormat()
    if is_stdin(path):
        return _open_stdin(table_format)
    parts = _parts(path)
    sources = _open_files({file: file for file in parts or [path]}, table_format)
    return sources[0] if parts is None else _joined_parts(path, sources)


def _open_files(files: Mapping[Path, Path], table_format: TableFormat) -> list[Source]:
    """Open files, given with their names in messages."""
    versions: dict[Path, dict[str, int]] = {}
    parquet: dict[Path, Path] = {}
    sources: dict[Path, Source] = {}
    for file, name in files.items():
        try:
            # by name, as in later checks: Windows may report another time for an open file
            versions[file] = file_version(os.stat(file))
            with open_regular(file) as stream:
                if stream.read(4) == b"PAR1":
                    parquet[file] = name
                    continue
            csv = CsvFile(name, file, table_format.encoding)
        except OSError as error:
            raise cannot_read(name, error) from None
        version = {file: versions[file]}
        sources[file] = Source(name, version, csv.columns, csv.frames, csv.unnamed, table_format)
    if parquet:
        if table_format.encoding is not None:
            raise TableError("--encoding is for CSV files; text in Parquet files is always UTF-8.")
        from quadric.apps.shell.tables._parquet_file import columns_and_rows, frames

        for file, (columns, rows) in columns_and_rows(parquet).items():
            name, version = parquet[file], {file: versions[file]}
            read = partial(frames, name, file, rows)
            sources[file] = Source(name, version, columns, read, (), table_format)
    return [sources[file] for file in files]


def _open_stdin(table_format: TableFormat) -> Source:
    """Copy standard input to a temporary file, because tables are read more than once."""
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(signal.SIGINT, True)  # Polars' handler would continue to wait
    try:
        spool = _Spool(sys.stdin.buffer)
    except OSError as error:
        raise cannot_read(Path("standard input"), error) from None
    (source,) = _open_files({spool.path: Path("standard input")}, table_format)
    return replace(source, spool=spool)


class _Spool:
    """A temporary copy of a stream, which is deleted with this object.

    On Linux, the file has no name, so that nothing is left even if the process is killed. Elsewhere
    it is deleted at exit at the latest.
    """

    def __init__(self, stream: BinaryIO) -> None:
        handle, name = tempfile.mkstemp(prefix="quadric-")
        self.path = Path(name)
        unnamed = Path(f"/proc/{os.getpid()}/fd/{handle}")  # each open() starts at the beginning
        if sys.platform == "linux" and unnamed.exists():
            os.unlink(name)
            self.path = unnamed
            weakref.finalize(self, os.close, handle)
        else:
            weakref.finalize(self, _delete, name)
        # the handle is closed if there is a name: Windows could not open the file again
        with open(handle, "wb", closefd=self.path != unnamed) as copy:
            shutil.copyfileobj(stream, copy)


def _delete(name: str) -> None:
    with contextlib.suppress(OSError):  # Windows keeps a file that is mapped into memory
        os.unlink(name)


def _parts(path: Path) -> list[Path] | None:
    """Return the files of a directory or a pattern, or None for a single file."""
    if path.is_dir():
        hidden = ("_", ".")  # such as _metadata and .part-0.parquet.crc
        parts = sorted(
            file
            for file in path.iterdir()
            if file.suffix.lower() in PARQUET and not file.name.startswith(hidden)
        )
        problem = f"cannot read {path}: it is a directory without Parquet files."
    elif is_pattern(path):
        parts = sorted(Path(name) for name in glob.glob(str(path)) if os.path.isfile(name))
        problem = f"no file matches {path}."
    else:
        return None
    if not parts:
        raise TableError(problem)
    return parts


def _joined_parts(path: Path, parts: Sequence[Source]) -> Source:
    """Return a table with the rows of all parts, whose columns must have the same names."""
    first = parts[0]
    for part in parts:
        if different := sorted(set(part.columns) ^ set(first.columns)):
            raise TableError(
                f"{part.path} and {first.path} have different columns: only one of them has "
                f"{different[0]!r}."
            )

    def frames() -> Iterator[pl.DataFrame]:
        for part in parts:
            for frame in part.frames():
                yield frame.select(first.columns)

    versions = {file: version for part in parts for file, version in part.versions.items()}
    return replace(first, path=path, versions=versions, frames=frames)
