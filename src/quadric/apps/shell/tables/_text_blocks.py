"""The text of a file as blocks of UTF-8, decompressed and decoded if necessary."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from quadric.errors import TableError
from quadric.utils import open_regular

GZIP, ZSTD, ZIP = b"\x1f\x8b", b"(\xb5/\xfd", b"PK\x03\x04"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
UTF_8 = ("utf-8", "utf-8-sig")
LINES_AT_ONCE = 20_000


def text_blocks(
    path: Path, encoding: str | None, size: int, name: str | Path | None = None
) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, in blocks of about `size` bytes, none of them empty.

    Parameters
    ----------
    path : Path
        A file, which may be compressed with gzip or Zstandard.
    encoding : str or None
        The encoding of the text. None stands for UTF-16 if the file begins with its byte order
        mark, and for UTF-8 otherwise; bytes that are not valid UTF-8 are yielded unchanged.
    size : int
    name : str or Path, optional
        The name of the file in error messages.

    Raises
    ------
    TableError
        If the file is a zip archive, is damaged, or is not in this encoding.
    """
    name = path if name is None else name
    with open_regular(path) as stream:
        start = stream.read(len(ZIP))
        stream.seek(0)
        if start.startswith(ZIP):
            raise TableError(
                f"{name} is a zip archive or a spreadsheet. Save the table as CSV or Parquet."
            )
        if start.startswith(ZSTD):
            blocks = _zstd_blocks(path, encoding, name)
        else:
            compressed = start.startswith(GZIP)
            blocks = _gzip_blocks(stream, size, name) if compressed else _blocks(stream, size)
            blocks = _in_utf_8(blocks, encoding, name)
        yield from blocks


def _blocks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    while block := stream.read(size):
        yield block


def _gzip_blocks(stream: BinaryIO, size: int, name: str | Path) -> Iterator[bytes]:
    try:
        with gzip.open(stream) as plain:
            yield from _blocks(plain, size)  # type: ignore[arg-type]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{name} is a damaged gzip file: {error}. Use another copy.") from None


def _zstd_blocks(path: Path, encoding: str | None, name: str | Path) -> Iterator[bytes]:
    """Decompress with Polars, because Python has no Zstandard module before version 3.14.

    The file is read as one column without separators or quotes, whose values are its lines.
    """
    if encoding not in (None, *UTF_8):
        raise TableError(
            f"{name} is compressed with Zstandard, which is supported only for UTF-8. Decompress "
            "it first: zstd -d."
        )
    import polars as pl

    from quadric.apps.shell.tables._parquet_probe import READ_ERRORS

    lines = pl.scan_csv(
        path,
        has_header=False,
        separator="\x00",
        quote_char=None,
        schema={"line": pl.String},
        glob=False,
    )
    try:
        for frame in lines.collect_batches(
            chunk_size=LINES_AT_ONCE, maintain_order=True, lazy=True
        ):
            text = frame["line"].fill_null("").str.join("\n").item()
            yield f"{text}\n".encode()
    except READ_ERRORS as error:
        first = (str(error).strip().splitlines() or ["it cannot be read"])[0].rstrip(".")
        raise TableError(
            f"{name} is damaged, or is not text in UTF-8 compressed with Zstandard: {first}. Use "
            "another copy, or decompress it first: zstd -d."
        ) from None


def _in_utf_8(blocks: Iterator[bytes], encoding: str | None, name: str | Path) -> Iterator[bytes]:
    first = next(blocks, b"")
    if encoding is None and first.startswith(UTF_16):
        encoding = "utf-16"
    if first and (encoding is None or encoding in UTF_8):
        yield first
        yield from blocks
        return
    decoder, before = codecs.getincrementaldecoder(encoding or "utf-8")(), 0
    try:
        block = first
        while block:
            if text := decoder.decode(block):
                yield text.encode()
            before, block = before + len(block), next(blocks, b"")
        decoder.decode(b"", final=True)
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise TableError(
            f"{name} is not in {encoding}: {error.reason} near byte {before + error.start}. Choose "
            "another --encoding."
        ) from None
