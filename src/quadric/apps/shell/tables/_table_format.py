"""Names of tables and of their columns, and how text and numbers are written in a table.

Polars is imported on first use, because names are checked before anything slow is imported.
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadric.errors import TableError
from quadric.utils import listed

if TYPE_CHECKING:
    import polars as pl

STDIN = ("-", "/dev/stdin")
COMPRESSED = (".gz", ".zst")
TAB_SEPARATED = (".tsv", ".tab")
PARQUET = (".parquet", ".pq")
WRITTEN = ("", ".csv", ".txt", *TAB_SEPARATED, *PARQUET)
DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?$"  # 5,1 or 1.234,5
GROUPS_OF_THREE = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"  # 1,234 or 1,234,567.8
DECIMAL_POINT = r"^\s*[+-]?\d*\.\d*([eE][+-]?\d+)?\s*$"
THOUSANDS = {"": "", " ": "[ \u00a0\u202f]", ".": r"\.", ",": ",", "'": "['\u2019]", "_": "_"}


def is_stdin(path: Path) -> bool:
    """Whether the table is read from standard input, which "-" and "/dev/stdin" stand for."""
    return str(path) in STDIN


def is_pattern(path: Path) -> bool:
    """Whether this is a pattern such as parts/*.parquet rather than the name of a file."""
    return glob.has_magic(str(path)) and not path.exists()


def plain_suffix(path: Path) -> str:
    """Return the suffix in lowercase, before that of a compressed file.

    >>> plain_suffix(Path("a.TSV.gz"))
    '.tsv'
    """
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix


def plain_stem(path: Path) -> str:
    """Return a name for files about a table: its own name without directories and suffixes.

    >>> plain_stem(Path("data/iris.csv.gz")), plain_stem(Path("sales/*.parquet"))
    ('iris', 'sales')
    """
    if is_stdin(path):
        return "stdin"
    if is_pattern(path):
        fixed = [part for part in path.parts if not glob.has_magic(part)]
        path = Path(*fixed)
    path = path if path.name not in ("", "..") else path.resolve()
    stem = path.stem
    return (Path(stem).stem if path.suffix.lower() in COMPRESSED else stem) or "table"


def check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Raise TableError for the first name that is not one of the columns."""
    for name in names:
        if name not in columns:
            raise TableError(
                f"there is no column {name!r}. The columns are {listed(map(repr, columns))}."
            )


@dataclass(frozen=True)
class TableFormat:
    """How text and numbers are written in a table.

    Parameters
    ----------
    encoding : str, optional
        The encoding of a CSV file, such as 'latin-1'. By default UTF-8, or UTF-16 if the file
        begins with its byte order mark.
    decimal : {'.', ','}
        The decimal mark.
    thousands : {'', ' ', '.', ',', "'", '_'}
        The character between groups of three digits. A space includes no-break spaces.

    Raises
    ------
    TableError
        If a value is not supported, or if both marks are the same.

    Examples
    --------
    >>> TableFormat(decimal=",", thousands=".")
    TableFormat(encoding=None, decimal=',', thousands='.')
    """

    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of a CSV file, such as latin-1 [default: UTF-8, or UTF-16 if the file "
            "starts with a byte order mark]."
        ),
    ] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark in the table: a point or a comma.")] = (
        "."
    )
    thousands: Annotated[
        str,
        typer.Option(help="Thousands separator in the table: a comma, a point, a space, ' or _."),
    ] = ""

    def __post_init__(self) -> None:
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise TableError(
                f"--encoding must be a text encoding such as latin-1. Got {self.encoding!r}."
            )
        if self.decimal not in (".", ","):
            raise TableError(f"--decimal must be '.' or ','. Got {self.decimal!r}.")
        if self.thousands not in THOUSANDS:
            raise TableError(
                f"--thousands must be a comma, a point, a space, ' or _. Got {self.thousands!r}."
            )
        if self.decimal == self.thousands:
            raise TableError(
                f"--decimal and --thousands are both {self.decimal!r}. They must differ."
            )

    def with_plain_numbers(self, frame: pl.DataFrame, start: int) -> pl.DataFrame:
        """Rewrite the numbers in text columns, such as '1.234,5' to '1234.5'.

        Other text is left unchanged. If the decimal mark is a comma, a number with a decimal point
        raises TableError, because it could be 1000 times too small; `start` is the number of the
        frame's first row, counted from 0.
        """
        import polars as pl

        if (self.decimal, self.thousands) == (".", ""):
            return frame

        mark, between = re.escape(self.decimal), THOUSANDS[self.thousands]
        digits = rf"(\d{{1,3}}({between}\d{{3}})+|\d+)" if between else r"\d+"
        number = rf"^\s*[+-]?({digits}({mark}\d*)?|{mark}\d+)([eE][+-]?\d+)?\s*$"
        text = pl.col(pl.String)
        plain = text.str.replace_all(between, "") if between else text
        rewritten = frame.with_columns(
            pl.when(text.str.contains(number))
            .then(plain.str.replace(self.decimal, ".", literal=True))
            .otherwise(text)
        )
        if self.decimal == ",":
            for name in frame.select(text).columns:
                column = frame[name]
                wrong = column.str.contains(DECIMAL_POINT) & ~column.str.contains(number)
                if wrong.any():
                    row = int(wrong.arg_max() or 0)
                    raise TableError(
                        f"column {name!r} contains {column[row]!r} in row {start + row + 1}, which "
                        "is not a number with a decimal comma. If the point separates thousands, "
                        "add --thousands '.'; otherwise, write all numbers with the same mark."
                    )
        return rewritten


def _is_text_encoding(name: str) -> bool:
    try:
        "a".encode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, UnicodeError, ValueError):
        return False
    return True
