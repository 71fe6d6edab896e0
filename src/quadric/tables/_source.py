"""CSV and Parquet files in batches of rows: the same rows in the same order, in little memory."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from quadric._utils.whole_files import open_regular
from quadric.errors import TableError
from quadric.tables import _parquet as parquet
from quadric.tables._unchanged import Version, sample_digest

BLOCK = 1 << 22  # bytes of a CSV file that are parsed at a time
LARGEST_BLOCK = 1 << 26  # a record that does not end within so many bytes has an open quote
SEPARATORS = ",;\t|"
UNNAMED = "column {} (no name)"


@dataclass(frozen=True)
class Source:
    """A table in a file, opened: its columns are known, its rows are not read yet.

    Attributes
    ----------
    path : Path
    version : Version
        Of the file when it was opened; it must stay the same.
    columns : tuple of str
        One without a name is called "column 3 (no name)".
    unnamed : tuple of str
        Those of them that have no name of their own.
    separator : str or None
        Between the fields of a CSV file; None for Parquet.
    rows : int or None
        How many there are, where the file says so.
    """

    path: Path
    version: Version
    columns: tuple[str, ...]
    unnamed: tuple[str, ...] = ()
    separator: str | None = None
    rows: int | None = None

    def batches(self, rows: int, start: int = 0) -> Iterator[pl.DataFrame]:
        """Frames of `rows` rows, the last one shorter, from row `start` on (counted from 0).

        TableError if the file is no longer the one that was opened.
        """
        held: list[pl.DataFrame] = []
        count = 0
        for frame in self._frames():
            if start >= len(frame):
                start -= len(frame)
                continue
            frame = frame.slice(start) if start else frame
            start = 0
            while count + len(frame) >= rows:
                held.append(frame.head(rows - count))
                frame = frame.slice(rows - count)
                yield pl.concat(held)
                held, count = [], 0
            if len(frame):
                held.append(frame)
                count += len(frame)
        if held:
            yield pl.concat(held)

    def read(self) -> pl.DataFrame:
        """All rows."""
        frames = list(self._frames())
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(self.columns))

    def fingerprint(self) -> dict[str, Any]:
        """What tells this file from others, and from itself after a change."""
        try:
            with open_regular(self.path) as stream:
                content = sample_digest(stream, self.version.size)
        except OSError as error:
            raise TableError(f"cannot read {self.path}: {error.strerror}.") from None
        self.version.check(self.path)
        return {
            "file": str(self.path.resolve()), "size": self.version.size,
            "modified": self.version.modified, "status": self.version.status, "content": content,
        }  # fmt: skip

    def _frames(self) -> Iterator[pl.DataFrame]:
        """The rows as they are read; none is given away before the file is known to be the same."""
        self.version.check(self.path)
        try:
            if self.separator is None:
                frames = parquet.frames(self.path, self.rows or 0)
            else:
                frames = _csv_frames(self)
            for frame in frames:
                self.version.check(self.path)
                yield frame
        except TableError:
            self.version.check(self.path)  # the reason why it cannot be read
            raise
        self.version.check(self.path)


def open_table(path: str | Path) -> Source:
    """Open a CSV or Parquet file, told apart by how it begins.

    Raises
    ------
    TableError
        In one line, what is wrong with the file: it is not there, a pipe, empty, damaged, in
        another encoding, or two of its columns have the same name.
    """
    path = Path(path)
    try:
        with open_regular(path) as stream:
            version = Version.of(os.fstat(stream.fileno()))
            start = stream.read(1 << 16)
            if start.startswith(b"PAR1"):
                columns, rows = parquet.columns_and_rows(path)
                return Source(path, version, columns, rows=rows)
            _refuse_other_formats(path, start)
            header = _first_record(path, start, stream)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}.") from None
    return _csv_source(path, version, header)


def _refuse_other_formats(path: Path, start: bytes) -> None:
    if not start.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError(f"{path} is empty: it must begin with a line of column names.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is in UTF-16. Save it as UTF-8.")
    if start.startswith((b"\x1f\x8b", b"PK\x03\x04", b"(\xb5/\xfd")):
        raise TableError(f"{path} is compressed, or a spreadsheet. Save it as CSV or Parquet.")
    place = start.find(b"\0")
    if place >= 0:
        raise TableError(f"{path} is no CSV file in UTF-8: byte {place} is zero.")


def _first_record(path: Path, start: bytes, stream: Any) -> bytes:
    """The line of column names; quoted names may hold line ends."""
    read = start
    while True:
        end = _end_of_first(read)
        if end is not None:
            return read[:end]
        more = stream.read(BLOCK)
        if not more:
            return read
        read += more
        if len(read) > LARGEST_BLOCK:
            raise TableError(f"the first line of {path} does not end: it has an open quote.")


def _end_of_first(block: bytes) -> int | None:
    """Just after the first line end that stands outside quotes."""
    start = 0
    while True:
        quote, end = block.find(b'"', start), block.find(b"\n", start)
        if end < 0:
            return None
        if quote < 0 or end < quote:
            return end + 1
        closing = block.find(b'"', quote + 1)
        if closing < 0:
            return None
        start = closing + 1


def _end_of_last(block: bytes) -> int | None:
    """Just after the last line end that stands outside quotes; the block begins outside."""
    outside, end = block.count(b'"') % 2 == 0, len(block)
    while True:
        quote = block.rfind(b'"', 0, end)
        if outside:
            found = block.rfind(b"\n", quote + 1, end)
            if found >= 0:
                return found + 1
        if quote < 0:
            return None
        outside, end = not outside, quote


def _csv_source(path: Path, version: Version, header: bytes) -> Source:
    try:
        text = header.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error.start, header[error.start]) from None
    if "\r" in text.rstrip("\r\n") and "\n" not in text:
        raise TableError(f"the lines of {path} end with CR alone. Save it with LF or CRLF.")
    outside = re.sub(r'"[^"]*"', "", text)  # what is quoted separates nothing
    separator = max(SEPARATORS, key=lambda mark: (outside.count(mark), mark == ","))
    try:
        names = next(csv.reader(io.StringIO(text), delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise TableError(f"the first line of {path} cannot be read: {error}.") from None
    names = [name.strip() for name in names]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise TableError(
            f"{path} has more than one column {twice[0]!r}. Give each column a name of its own."
        )
    if not any(names):
        raise TableError(f"{path} must begin with a line of column names; none is there.")
    columns = [name or UNNAMED.format(i + 1) for i, name in enumerate(names)]
    unnamed = [column for name, column in zip(names, columns, strict=True) if not name]
    return Source(path, version, tuple(columns), tuple(unnamed), separator)


def _csv_frames(source: Source) -> Iterator[pl.DataFrame]:
    """Blocks of whole records, parsed; every value is a string, and an empty one is null."""
    rows, left = 0, b""
    try:
        with open_regular(source.path) as stream:
            header = _first_record(source.path, b"", stream)
            begin = len(header)
            stream.seek(begin)
            while True:
                read = stream.read(BLOCK)
                block = left + read
                if not block:
                    return
                end = _end_of_last(block) if read else len(block)
                if end is None:
                    if len(block) > LARGEST_BLOCK:
                        raise TableError(
                            f"{source.path}: a quote that is opened after row {rows} is not closed."
                        )
                    left = block
                    continue
                frame = _parse(source, block[:end], rows, begin)
                if len(frame):
                    yield frame
                rows, begin, left = rows + len(frame), begin + end, block[end:]
    except OSError as error:
        raise TableError(f"cannot read {source.path}: {error.strerror}.") from None


def _parse(source: Source, block: bytes, rows: int, begin: int) -> pl.DataFrame:
    n = len(source.columns)
    if n == 1 and source.separator is not None and not block.strip():
        block = block.rstrip(b"\r\n")
    if not block:
        return pl.DataFrame(schema=dict.fromkeys(source.columns, pl.String))
    separator = source.separator or ","
    # a whole row goes first, and is dropped: of short rows only Polars would see fewer columns
    whole = b'""' + (separator + '""').encode() * (n - 1) + b"\n"
    try:
        frame = pl.read_csv(
            whole + block, has_header=False, infer_schema=False, separator=separator,
            schema={f"c{i}": pl.String for i in range(n)}, raise_if_empty=False,
        )  # fmt: skip
        return frame[1:].rename(dict(zip((f"c{i}" for i in range(n)), source.columns, strict=True)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _why(source, block, rows, begin, error) from None


def _why(source: Source, block: bytes, rows: int, begin: int, error: BaseException) -> TableError:
    """What is wrong with a block that could not be parsed."""
    try:
        text = block.decode()
    except UnicodeDecodeError as bad:
        return _not_utf8(source.path, begin + bad.start, block[bad.start])
    n = len(source.columns)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=source.separator or ",")
        for row in reader:
            rows += 1
            if len(row) > n:
                return TableError(
                    f"row {rows} of {source.path} has {len(row)} fields; the line of column names "
                    f"has {n}."
                )
    except csv.Error as bad:
        return TableError(f"row {rows + 1} of {source.path} cannot be read: {bad}.")
    if block.count(b'"') % 2:
        return TableError(f"{source.path} has a quote that is opened and not closed.")
    first = str(error).strip().splitlines()[0]
    return TableError(f"{source.path} cannot be read after row {rows}: {first}.")


def _not_utf8(path: Path, place: int, byte: int) -> TableError:
    return TableError(
        f"{path} is not in UTF-8: byte {place} is 0x{byte:02x}. Save it as UTF-8, for example with "
        f"`iconv -f latin1 -t utf-8`."
    )
