"""Text encoding, decimal mark and thousands separator of a table in a text file.

The fields of `TableFormat` are also options of the commands that read tables.
"""

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from quadric.errors import TableError
from quadric.utils import first_applying

if TYPE_CHECKING:
    import polars as pl

DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?$"  # 5,1 or 1.234,5
GROUPS_OF_THREE = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"  # 1,234 or 1,234,567.8
DECIMAL_POINT = r"^\s*[+-]?\d*\.\d*([eE][+-]?\d+)?\s*$"
THOUSANDS = {"": "", " ": "[ \u00a0\u202f]", ".": r"\.", ",": ",", "'": "['\u2019]", "_": "_"}


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
        problems = {
            f"--encoding must be a text encoding such as latin-1. Got {self.encoding!r}.": (
                self.encoding is not None and not _is_text_encoding(self.encoding)
            ),
            f"--decimal must be '.' or ','. Got {self.decimal!r}.": self.decimal not in (".", ","),
            f"--thousands must be a comma, a point, a space, ' or _. Got {self.thousands!r}.": (
                self.thousands not in THOUSANDS
            ),
            f"--decimal and --thousands are both {self.decimal!r}. They must differ.": (
                self.decimal == self.thousands
            ),
        }
        if problem := first_applying(problems):
            raise TableError(problem)

    def with_plain_numbers(self, frame: "pl.DataFrame", start: int) -> "pl.DataFrame":
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
