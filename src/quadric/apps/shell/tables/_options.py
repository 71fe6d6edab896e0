"""What the user says about a table and about training: names, formats and options.

Each annotated field of a dataclass is also an option of a command: its name, default and help are
declared only here. The module imports nothing slow, so that `quadric --help` is fast and names are
checked early; Polars is imported on first use.
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard

import typer

from quadric.errors import TableError
from quadric.utils import first_applying, listed

if TYPE_CHECKING:
    import polars as pl

    Names = Sequence[str]
else:
    Names = list[str]  # the only type of repeated options that typer supports

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
        path = Path(*(part for part in path.parts if not glob.has_magic(part)))
    path = path if path.name not in ("", "..") else path.resolve()
    plain = Path(path.stem) if path.suffix.lower() in COMPRESSED else path
    return plain.stem or "table"


def is_table_description(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a schema from `quadric train` rather than the user's own data."""
    return isinstance(value, dict) and {"columns", "target", "task"} <= set(value)


def applying(sentences: Mapping[str, object]) -> list[str]:
    """Return the sentences whose condition is true."""
    return [sentence for sentence, applies in sentences.items() if applies]


def refuse(problems: Mapping[str, object]) -> None:
    """Raise TableError with the first of these sentences whose condition is true."""
    if problem := first_applying(problems):
        raise TableError(problem)


def check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Raise TableError for the first name that is not one of the columns."""
    known = listed(map(repr, columns))
    refuse(
        {
            f"there is no column {name!r}. The columns are {known}.": name not in columns
            for name in names
        }
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
        encoding, decimal, thousands = self.encoding, self.decimal, self.thousands
        refuse(
            {
                f"--encoding must be a text encoding such as latin-1. Got {encoding!r}.": (
                    encoding is not None and not _is_text_encoding(encoding)
                ),
                f"--decimal must be '.' or ','. Got {decimal!r}.": decimal not in (".", ","),
                f"--thousands must be a comma, a point, a space, ' or _. Got {thousands!r}.": (
                    thousands not in THOUSANDS
                ),
                f"--decimal and --thousands are both {decimal!r}. They must differ.": (
                    decimal == thousands
                ),
            }
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


@dataclass(frozen=True)
class ColumnOptions:
    """The target and the user's choices about the columns.

    Parameters
    ----------
    target : str
        The column to predict.
    task : {'classification', 'regression'}, optional
        By default, inferred from the target's values.
    drop : sequence of str
        Columns to ignore.
    categorical : sequence of str
        Numeric columns to treat as categories.
    most_categories : int
        Text columns with more distinct values than this are not used.

    Examples
    --------
    >>> ColumnOptions("species", drop=["id"]).target
    'species'
    """

    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")]
    task: Annotated[
        Literal["classification", "regression"] | None,
        typer.Option(
            help="The task [default: regression if the target contains fractions or more than 20 "
            "distinct integers, otherwise classification]."
        ),
    ] = None
    drop: Annotated[
        Names, typer.Option(help="Columns to ignore, such as a,b; may be repeated.")
    ] = ()
    categorical: Annotated[
        Names,
        typer.Option(help="Numeric columns to treat as categories, such as a,b; may be repeated."),
    ] = ()
    most_categories: Annotated[
        int,
        typer.Option(
            "--max-categories",
            min=2,
            help="Ignore text columns with more distinct values than this.",
        ),
    ] = 50


@dataclass(frozen=True)
class Settings:
    """The model to train and how to test it.

    Parameters
    ----------
    hidden : tuple of int, optional
        The widths of the hidden layers, which consist of linear neurons; () means that there are
        none. If neither `hidden` nor `kind` is given, the shape is chosen on held-out rows. In a
        stream, it is a single quadratic layer instead.
    kind : {'quadratic', 'reduced'}, optional
        The kind of neurons in the last layer; quadratic by default.
    seed : int
    test_size : float
        The share of rows to hold out.
    cv : int, optional
        The number of folds for cross-validation, which replaces the held-out split.
    verbose : bool
        Whether the estimator reports its progress.
    class_weight : {'balanced'}, optional
        Weight every class equally, whatever its number of rows.
    alpha : float, optional
        The L2 penalty; by default, chosen on held-out rows, except in a stream.
    max_iter : int, optional
        The maximum number of iterations; by default, that of the estimator.
    """

    hidden: tuple[int, ...] | None = None
    kind: Annotated[
        Literal["quadratic", "reduced"] | None,
        typer.Option(
            help="Kind of neurons in the last layer [default: chosen on held-out rows; with "
            "--hidden or --stream: quadratic]."
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out for testing.")
    ] = 0.25
    cv: Annotated[
        int | None,
        typer.Option(
            min=2, max=100, help="Number of cross-validation folds, instead of --test-size."
        ),
    ] = None
    verbose: bool = False
    class_weight: Annotated[
        Literal["balanced"] | None,
        typer.Option(help="Give all classes the same total weight, whatever their sizes."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="The L2 penalty [default: chosen on held-out rows; with --stream: 0.0001].",
        ),
    ] = None
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of iterations of the solver.")
    ] = None


@dataclass(frozen=True)
class Stream:
    """How to read a table larger than memory.

    Parameters
    ----------
    epochs : int, optional
        The number of passes over the rows; by default, fewer for longer tables.
    buffer : int, optional
        The number of rows that are shuffled together.
    every : int, optional
        The number of buffers between two checkpoints; by default, 10.
    """

    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="With --stream: number of epochs [default: depends on the size]."),
    ] = None
    buffer: Annotated[
        int | None, typer.Option(min=1, help="With --stream: number of rows shuffled together.")
    ] = None
    every: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-every",
            min=1,
            help="With --stream: number of buffers between checkpoints [default: 10].",
        ),
    ] = None
