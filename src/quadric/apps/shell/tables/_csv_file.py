"""CSV files: the header, the rows in blocks of whole records, and the text in UTF-8.

Polars is imported when the first block is parsed, so that the header can be checked without it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quadric.apps.shell.tables._options import TAB_SEPARATED, first_line, plain_suffix, refuse
from quadric.errors import TableError
from quadric.utils import first_applying, open_regular

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 22  # number of bytes parsed at a time
START = 1 << 16  # number of bytes read to find the header
LARGEST_BLOCK = 1 << 26  # a longer record is assumed to have an unclosed quote
LINES_AT_ONCE = 20_000  # of a Zstandard file
FIRST_RECORD = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+\n')
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"(\xb5/\xfd", b"PK\x03\x04"
UTF_8 = (None, "utf-8", "utf-8-sig")


class CsvFile:
    """A CSV file whose header has been read.

    Parameters
    ----------
    path : Path
        The name of the file in error messages.
    file : Path
        The file to read, which may be compressed.
    encoding : str or None
        See `text_blocks`.

    Attributes
    ----------
    columns : tuple of str
        The column names. Unnamed columns are called "column 3 (no name)" and so on.
    unnamed : tuple of str
        The entries of `columns` that have no name in the file.
    separator : str
        The character between fields.
    header_size : int
        The number of bytes before the first row, in UTF-8.
    """

    def __init__(self, path: Path, file: Path, encoding: str | None) -> None:
        self.path, self.file, self.encoding = path, file, encoding
        header = _read_header(path, text_blocks(file, encoding, START, path))
        text = _decode(path, header).removeprefix("\ufeff")
        if "\r" in text.rstrip("\r\n") and "\n" not in text:
            raise TableError(f"{path} has CR line endings. Save it with LF or CRLF.")
        _refuse_json(path, text)
        self.header_size, self.separator = len(header), _separator(path, text)
        try:
            names = next(csv.reader(io.StringIO(text), delimiter=self.separator, strict=True), [])
        except csv.Error as error:
            raise TableError(f"the first line of {path} cannot be parsed: {error}.") from None
        names = [name.strip() for name in names]
        self.columns = tuple(name or f"column {i} (no name)" for i, name in enumerate(names, 1))
        refuse(
            {
                f"{path} has no column names: its first line must contain them.": not any(names),
                **{
                    f"{path} has {count} columns named {name!r}. Make the names unique.": count > 1
                    for name, count in Counter(self.columns).most_common()
                },
            }
        )
        self.unnamed = tuple(c for c, name in zip(self.columns, names, strict=True) if not name)

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows in blocks; every value is a string, or null if the field is empty."""
        rows, begin, rest, header = 0, 0, b"", self.header_size
        blocks = text_blocks(self.file, self.encoding, BLOCK, self.path)
        while block := rest + (read := next(blocks, b"")):
            end = _end_of_records(block) if read else len(block)
            if not end and len(block) > LARGEST_BLOCK:
                raise TableError(f"{self.path} has an unclosed quote after row {rows}.")
            frame = self._parse(block[header:end], rows, begin + header)
            if len(frame):
                yield frame
            rows, begin, rest = rows + len(frame), begin + end, block[end:]
            header = 0 if end else header  # the first complete record is the header

    def _parse(self, block: bytes, rows: int, begin: int) -> pl.DataFrame:
        """Parse whole records that follow `rows` rows and begin at byte `begin`."""
        import polars as pl

        if len(self.columns) == 1 and not block.strip():
            block = block.rstrip(b"\r\n")
        # Prepend a complete row: if every row were short, Polars would see too few columns.
        complete = self.separator.join(['""'] * len(self.columns)) + "\n"
        try:
            return pl.read_csv(
                complete.encode() + block,
                has_header=False,
                separator=self.separator,
                schema=dict.fromkeys(self.columns, pl.String),
            )[1:]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            self._explain(block, rows, begin)
            raise TableError(
                f"{self.path} cannot be parsed after row {rows}: {first_line(error)}."
            ) from None

    def _explain(self, block: bytes, rows: int, begin: int) -> None:
        """Raise a TableError that says why a block cannot be parsed, if the reason is known."""
        row, text = rows, io.StringIO(_decode(self.path, block, begin), newline="")
        try:
            for row, record in enumerate(csv.reader(text, delimiter=self.separator), rows + 1):
                if len(record) > len(self.columns):
                    raise TableError(
                        f"row {row} of {self.path} has {len(record)} fields, but there are only "
                        f"{len(self.columns)} columns."
                    )
        except csv.Error as error:
            raise TableError(f"row {row + 1} of {self.path} cannot be parsed: {error}.") from None
        if block.count(b'"') % 2:
            raise TableError(f"{self.path} has an unclosed quote after row {rows}.")


def _refuse_json(path: Path, header: str) -> None:
    """Raise TableError if the first line is that of a JSON file; no column has such a name."""
    line = header.strip().removesuffix(",")
    kind = first_applying(
        {
            "JSON lines": re.match(r'\{\s*"', line) and line.endswith("}"),
            "JSON": re.fullmatch(r'\[|\{|\[\s*\{.*|\{\s*".*', line),
        }
    )
    if kind:
        read = "read_ndjson" if kind == "JSON lines" else "read_json"
        raise TableError(
            f"{path} contains {kind}, but tables are read from CSV or Parquet files. Convert it in "
            f'Python: import polars; polars.{read}({str(path)!r}).write_parquet("table.parquet")'
        )


def _read_header(path: Path, blocks: Iterator[bytes]) -> bytes:
    """Return the line of column names; quoted names may contain line breaks."""
    start = next(blocks, b"")
    refuse(
        {
            f"{path} is empty: its first line must contain the column names.": (
                not start.strip(b"\xef\xbb\xbf \t\r\n")
            ),
            f"{path} is not a CSV file in UTF-8: byte {start.find(0)} is zero. If it is text in "
            "another encoding, use --encoding, for example --encoding utf-16-le.": b"\0" in start,
        }
    )
    while (record := FIRST_RECORD.match(start)) is None:
        if len(start) > LARGEST_BLOCK:
            raise TableError(f"the first line of {path} has an unclosed quote.")
        if not (more := next(blocks, b"")):
            return start
        start += more
    return record[0]


def _separator(path: Path, header: str) -> str:
    """Return the most frequent separator in the header; a tab for .tsv and .tsv.gz files."""
    if plain_suffix(path) in TAB_SEPARATED:
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", header)
    return max(",;\t|", key=lambda mark: (unquoted.count(mark), mark == ","))


def _end_of_records(block: bytes) -> int:
    """Return the end of the last complete record, or 0; the block must begin outside quotes."""
    end, quotes = len(block), block.count(b'"')
    while (line := block.rfind(b"\n", 0, end)) >= 0:
        quotes -= block.count(b'"', line, end)
        if quotes % 2 == 0:
            return line + 1
        end = line
    return 0


def _decode(path: Path, block: bytes, begin: int = 0) -> str:
    """Decode a block that begins at byte `begin` of the file."""
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not in UTF-8: byte {begin + error.start} is 0x{block[error.start]:02x}. "
            "Use --encoding, for example --encoding latin-1."
        ) from None


def text_blocks(file: Path, encoding: str | None, size: int, name: Path) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, in blocks of about `size` bytes.

    The only block that may be empty is the first one of an empty file.

    Parameters
    ----------
    file : Path
        A file, which may be compressed with gzip or Zstandard.
    encoding : str or None
        The encoding of the text. None stands for UTF-16 if the file begins with its byte order
        mark, and for UTF-8 otherwise; bytes that are not valid UTF-8 are yielded unchanged.
    size : int
    name : Path
        The name of the file in error messages.

    Raises
    ------
    TableError
        If the file is a zip archive, is damaged, or is not in this encoding.
    """
    with open_regular(file) as stream:
        start = stream.read(len(ZIP))
        stream.seek(0)
        if start.startswith(ZIP):
            raise TableError(
                f"{name} is a zip archive or a spreadsheet. Save the table as CSV or Parquet."
            )
        if start.startswith(ZSTD):
            yield from _zstd_blocks(file, encoding, name)
            return
        plain = gzip.GzipFile(fileobj=stream) if start.startswith(GZIP) else stream
        try:
            yield from _in_utf_8(iter(lambda: plain.read(size), b""), encoding, name)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"{name} is a damaged gzip file: {error}. Use another copy.") from None


def _zstd_blocks(file: Path, encoding: str | None, name: Path) -> Iterator[bytes]:
    """Decompress with Polars, because Python has no Zstandard module before version 3.14.

    The file is read as one column without separators or quotes, whose values are its lines.
    """
    if encoding not in UTF_8:
        raise TableError(
            f"{name} is compressed with Zstandard, which is supported only for UTF-8. Decompress "
            "it first: zstd -d."
        )
    import polars as pl

    lines = pl.scan_csv(
        file,
        has_header=False,
        separator="\x00",
        quote_char=None,
        schema={"line": pl.String},
        glob=False,
    )
    try:
        for batch in lines.collect_batches(
            chunk_size=LINES_AT_ONCE, maintain_order=True, lazy=True
        ):
            yield (batch["line"].fill_null("").str.join("\n").item() + "\n").encode()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TableError(
            f"{name} is damaged, or is not text in UTF-8 compressed with Zstandard: "
            f"{first_line(error)}. Use another copy, or decompress it first: zstd -d."
        ) from None


def _in_utf_8(blocks: Iterator[bytes], encoding: str | None, name: Path) -> Iterator[bytes]:
    first = next(blocks, b"")
    if encoding is None and first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding in UTF_8:
        yield from itertools.chain([first], blocks)
        return
    decoder, before = codecs.getincrementaldecoder(encoding)(), 0
    try:
        for block in itertools.chain([first], blocks):
            if text := decoder.decode(block):
                yield text.encode()
            before += len(block)
        decoder.decode(b"", final=True)
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise TableError(
            f"{name} is not in {encoding}: {error.reason} near byte {before + error.start}. Choose "
            "another --encoding."
        ) from None
