"""Open a table: a CSV or Parquet file, several parts, or standard input."""

import contextlib
import glob
import os
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import polars as pl

from quadric.apps.shell.tables import _parquet_file as parquet
from quadric.apps.shell.tables._csv_file import CsvFile
from quadric.apps.shell.tables._source import Source, cannot_read, file_version
from quadric.apps.shell.tables._table_format import TableFormat
from quadric.apps.shell.tables._table_names import PARQUET, is_pattern, is_stdin
from quadric.errors import TableError
from quadric.utils import open_regular


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
    files = _parts(path)
    if files is None:
        (source,) = _open_files([path], [path], table_format)
        return source
    return _joined_parts(path, _open_files(files, files, table_format))


def _open_files(
    files: Sequence[Path], names: Sequence[Path], table_format: TableFormat
) -> list[Source]:
    """Open files; `names` are their names in messages."""
    versions: dict[Path, dict[str, int]] = {}
    parquet_files: dict[Path, Path] = {}  # with their names
    for file, name in zip(files, names, strict=True):
        try:
            # by name, as in later checks: Windows may report another time for an open file
            versions[file] = file_version(os.stat(file))
            with open_regular(file) as stream:
                if stream.read(4) == b"PAR1":
                    parquet_files[file] = name
        except OSError as error:
            raise cannot_read(name, error) from None
    if parquet_files and table_format.encoding is not None:
        raise TableError("--encoding is for CSV files; text in Parquet files is always UTF-8.")
    shapes = parquet.columns_and_rows(parquet_files) if parquet_files else {}
    sources = []
    for file, name in zip(files, names, strict=True):
        version = {file: versions[file]}
        if file in shapes:
            columns, rows = shapes[file]
            frames = partial(parquet.frames, name, file, rows)
            sources.append(Source(name, version, columns, frames, (), table_format))
            continue
        try:
            csv = CsvFile.open(name, file, table_format.encoding)
        except OSError as error:
            raise cannot_read(name, error) from None
        sources.append(Source(name, version, csv.columns, csv.frames, csv.unnamed, table_format))
    return sources


def _open_stdin(table_format: TableFormat) -> Source:
    """Copy standard input to a temporary file, because tables are read more than once."""
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(signal.SIGINT, True)  # Polars' handler would continue to wait
    try:
        spool = _Spool(sys.stdin.buffer)
    except OSError as error:
        raise cannot_read(Path("standard input"), error) from None
    (source,) = _open_files([spool.path], [Path("standard input")], table_format)
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
        found = [one for one in path.iterdir() if not one.name.startswith(hidden)]
        parts = sorted(one for one in found if one.suffix.lower() in PARQUET)
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
