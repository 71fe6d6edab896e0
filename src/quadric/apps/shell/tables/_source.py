"""Tables in files or on standard input: opened, checked for changes, and read in batches of rows.

Polars is imported with the first row, so that the columns of a CSV file are known before anything
slow is imported. A damaged Parquet file can crash the process that reads it, so each one is first
read in another process.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from quadric.apps.shell.tables._csv_file import CsvFile
from quadric.apps.shell.tables._options import (
    PARQUET,
    TableFormat,
    first_line,
    is_pattern,
    is_stdin,
)
from quadric.config import get_config
from quadric.errors import TableError
from quadric.utils import SHARE, available_bytes, open_regular

if TYPE_CHECKING:
    import polars as pl

    # the columns, a function that returns the rows, and the columns without a name
    Content = tuple[tuple[str, ...], Callable[[], Iterator[pl.DataFrame]], tuple[str, ...]]

CHANGES = {
    "st_dev": "it was replaced by another file",
    "st_ino": "it was replaced by another file",
    "st_size": "its size changed",
    "st_mtime_ns": "its content was modified",
    "st_ctime_ns": "its content or its permissions were modified",
}
PROBE = Path(__file__).with_name("_parquet_probe.py")
LONGEST_REASON = 200  # characters of a message about a damaged Parquet file
ROWS_AT_ONCE = 20_000  # in a batch for a model
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
        check_unchanged(self.versions)
        versions = self.versions.values()
        return {
            "file": str(self.path.resolve()),
            "size": sum(version["st_size"] for version in versions),
            "modified": [version["st_mtime_ns"] for version in versions],
            "status": [version["st_ctime_ns"] for version in versions],
            "content": digest.hexdigest(),
            **asdict(self.table_format),
        }

    def _checked_frames(self) -> Iterator[pl.DataFrame]:
        """Yield the frames, checking the files' versions before each one and at the end."""
        check_unchanged(self.versions)
        try:
            for frame in self.frames():
                check_unchanged(self.versions)
                yield frame
        except (TableError, OSError) as error:
            check_unchanged(self.versions)  # a change would explain the error
            if isinstance(error, TableError):
                raise
            raise cannot_read(self.path, error) from None
        check_unchanged(self.versions)


def file_version(status: os.stat_result) -> dict[str, int]:
    """Return the file attributes that reveal a change."""
    return {name: getattr(status, name) for name in CHANGES}


def check_unchanged(versions: Mapping[Path, dict[str, int]]) -> None:
    """Raise TableError if a file is missing or has changed since it had this version."""
    for file, version in versions.items():
        try:
            now = file_version(file.stat())
        except OSError as error:
            raise changed(file, f"it cannot be found ({error.strerror})") from None
        if what := [what for name, what in CHANGES.items() if now[name] != version[name]]:
            raise changed(file, what[0])


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
        raise TableError(
            f"a column has different types in different parts: {first_line(error)}."
        ) from None


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
    return _joined_parts(path, _open_files({file: file for file in _parts(path)}, table_format))


def _open_files(files: Mapping[Path, Path], table_format: TableFormat) -> list[Source]:
    """Open files, given with their names in messages."""
    versions: dict[Path, dict[str, int]] = {}
    contents: dict[Path, Content] = {}
    parquet: dict[Path, Path] = {}
    for file, name in files.items():
        try:
            # by name, as in later checks: Windows may report another time for an open file
            versions[file] = file_version(os.stat(file))
            with open_regular(file) as stream:
                is_parquet = stream.read(4) == b"PAR1"
            if is_parquet:
                parquet[file] = name
            else:
                csv = CsvFile(name, file, table_format.encoding)
                contents[file] = csv.columns, csv.frames, csv.unnamed
        except OSError as error:
            raise cannot_read(name, error) from None
    if parquet and table_format.encoding is not None:
        raise TableError("--encoding is for CSV files; text in Parquet files is always UTF-8.")
    if parquet:
        contents |= _read_in_another_process(parquet)
    return [
        Source(name, {file: versions[file]}, *contents[file], table_format)
        for file, name in files.items()
    ]


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
        if sys.platform == "linux" and os.path.isdir("/proc/self/fd"):
            handle, name = tempfile.mkstemp(prefix="quadric-")
            os.unlink(name)
            weakref.finalize(self, os.close, handle)
            self.path = Path(f"/proc/{os.getpid()}/fd/{handle}")  # open() starts at the beginning
        else:
            directory = tempfile.mkdtemp(prefix="quadric-")
            # errors are ignored: Windows keeps a file that is mapped into memory
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
            self.path = Path(directory, "stdin")
        with open(self.path, "wb") as copy:
            shutil.copyfileobj(stream, copy)


def _parts(path: Path) -> list[Path]:
    """Return the files of a directory or a pattern, or the file itself."""
    if path.is_dir():
        parts = sorted(
            file
            for file in path.iterdir()  # without _metadata and .part-0.parquet.crc, for instance
            if file.suffix.lower() in PARQUET and not file.name.startswith(("_", "."))
        )
        problem = f"cannot read {path}: it is a directory without Parquet files."
    elif is_pattern(path):
        parts = sorted(Path(name) for name in glob.glob(str(path)) if os.path.isfile(name))
        problem = f"no file matches {path}."
    else:
        return [path]
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
    return replace(
        first,
        path=path,
        versions={file: version for part in parts for file, version in part.versions.items()},
        frames=lambda: (frame.select(first.columns) for part in parts for frame in part.frames()),
    )


def _parquet_frames(file: Path, name: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the rows in batches; raise TableError unless there are as many as before."""
    from quadric.apps.shell.tables._parquet_probe import READ_ERRORS, as_in_csv, read_batches

    read = 0
    try:
        for frame in read_batches(file):
            read += len(frame)
            if len(frame):
                yield as_in_csv(frame)
    except READ_ERRORS as error:
        raise _damaged(name, str(error)) from None
    if read != rows:
        raise _damaged(name, f"only {read} of {rows} rows can be read")


def _read_in_another_process(files: Mapping[Path, Path]) -> dict[Path, Content]:
    """Read whole Parquet files, and return their contents.

    Parameters
    ----------
    files : mapping of Path to Path
        The files to read, and their names in error messages.

    Raises
    ------
    TableError
        If a file is damaged or cannot be read.
    """
    names = list(files.values())
    if not sys.executable:
        raise TableError(f"cannot read {names[0]}: the path of the Python interpreter is unknown.")
    limit = get_config()["max_memory"] or int(SHARE * available_bytes())
    try:
        done = subprocess.run(
            # -P: modules next to the probe must not shadow the standard library
            [sys.executable, "-P", "-W", "ignore", PROBE, str(limit), *map(os.path.abspath, files)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=os.environ | {"RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "2"},
        )
    except OSError as error:
        raise TableError(f"cannot start a process to read {names[0]}: {error.strerror}.") from None
    lines = done.stdout.splitlines()
    found: dict[Path, Content] = {}
    for k, (file, name) in enumerate(files.items()):
        try:
            answer = json.loads(lines[k] if k < len(lines) else b"")
        except ValueError:
            raise _no_answer(name, done) from None
        if "error" in answer:
            raise _damaged(name, answer["error"])
        if not answer["columns"]:
            raise TableError(f"{name} has no columns.")
        frames = partial(_parquet_frames, file, name, answer["rows"])
        found[file] = tuple(answer["columns"]), frames, ()
    if b"panicked at" in done.stderr:
        which = names[0] if len(names) == 1 else f"one of {len(names)} parts"
        raise _damaged(which, "its reader panicked")
    return found


def _damaged(path: Path | str, reason: str) -> TableError:
    first = first_line(reason)[:LONGEST_REASON]
    shown = "".join(sign if sign.isprintable() else "?" for sign in first)
    return TableError(f"{path} is a damaged Parquet file: {shown}. Use another copy of it.")


def _no_answer(path: Path, done: subprocess.CompletedProcess[bytes]) -> TableError:
    """Return the error for a probe that crashed, for instance because an allocation failed."""
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if done.returncode > 0 and lines:  # for instance, if Polars cannot be imported
        return TableError(f"cannot read {path}: {lines[-1][:LONGEST_REASON]}.")
    return TableError(
        f"{path} is a damaged Parquet file, or needs more memory than is available: the process "
        f"that read it ended with code {done.returncode}. Use another copy of it."
    )
