"""What the user says about a table and about training: names, formats and options.

Each annotated field of a dataclass is also an option of a command: its name, default and help are
declared only here. The module imports nothing slow, so that `quadric --help` is fast and names are
checked early; Polars is imported on first use.
"""

from __future__ import annotations

import codecs
import csv
import glob
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard

import typer

from quadric.errors import TableError
from quadric.utils import first_applying, listed

if TYPE_CHECKING:
    Names = Sequence[str]
else:
    Names = list[str]  # the only type of repeated options that typer supports

COMPRESSED = (".gz", ".zst")
TAB_SEPARATED = (".tsv", ".tab")
PARQUET = (".parquet", ".pq")
WRITTEN = ("", ".csv", ".txt", *TAB_SEPARATED, *PARQUET)
DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?$"  # 5,1 or 1.234,5
DECIMAL_POINT = r"^[+-]?\d*\.\d*([eE][+-]?\d+)?$"
HELD_OUT = 0.25  # share of rows
THOUSANDS = ("", " ", ".", ",", "'", "_")


def is_stdin(path: Path) -> bool:
    """Whether the table is read from standard input, which "-" and "/dev/stdin" stand for."""
    return str(path) in ("-", "/dev/stdin")


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


def split_names(text: str) -> list[str]:
    """Split a string at commas, except within double quotes.

    >>> split_names('a, "b, c"')
    ['a', 'b, c']
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise TableError(f"{text!r} is not a list of names: {error}.") from None
    return [name.strip() for row in rows for name in row if name.strip()]


def is_table_description(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a schema from `quadric train` rather than the user's own data."""
    return isinstance(value, dict) and {"columns", "target", "task"} <= set(value)


def first_line(reason: object) -> str:
    """Return the first line of an error message, without a full stop."""
    return (str(reason).strip().splitlines() or ["it cannot be read"])[0].rstrip(".")


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


def given_orders(texts: Iterable[str], columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the categories of each column in the order that the user gives.

    Raises TableError for an unknown column, and for fewer than two different categories.

    Examples
    --------
    >>> given_orders(["size=S,M,L"], ["size", "price"])
    {'size': ('S', 'M', 'L')}
    """
    orders = {}
    for text in texts:
        name, mark, levels = text.rpartition("=")
        order = tuple(split_names(levels))
        refuse(
            {
                f"--ordinal must be a column and its categories in order, such as size=S,M,L. Got "
                f"{text!r}.": not mark or len(order) < 2,
                f"--ordinal lists a category of {name!r} twice.": len(set(order)) < len(order),
                f"--ordinal is given twice for {name!r}.": name in orders,
            }
        )
        check_columns([name], columns)
        orders[name] = order
    return orders


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
        refuse(
            {
                f"--encoding must be a text encoding such as latin-1. Got {self.encoding!r}.": (
                    self.encoding is not None and not _is_text_encoding(self.encoding)
                ),
                f"--decimal must be '.' or ','. Got {self.decimal!r}.": (
                    self.decimal not in (".", ",")
                ),
                f"--thousands must be a comma, a point, a space, ' or _. Got {self.thousands!r}.": (
                    self.thousands not in THOUSANDS
                ),
                f"--decimal and --thousands are both {self.decimal!r}. They must differ.": (
                    self.decimal == self.thousands
                ),
            }
        )

    @property
    def is_given(self) -> bool:
        """Whether the user says how numbers are written."""
        return (self.decimal, self.thousands) != (".", "")


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
        Columns to treat as categories without an order, such as numeric codes.
    ordinal : sequence of str
        Columns with their categories in order, such as 'size=S,M,L'.
    most_categories : int
        Categories of columns with at most this many distinct values are one-hot encoded. Others
        are encoded by the target.
    missing_values : sequence of str
        Values that stand for missing ones: '-999' in all columns, the target included, or
        'temp=-999' in one.

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
        typer.Option(
            help="Columns of categories without an order, such as codes: a,b; may be repeated."
        ),
    ] = ()
    ordinal: Annotated[
        Names,
        typer.Option(
            help="A column and its categories in order, such as size=S,M,L; may be repeated "
            "[default: the usual scales are recognized]."
        ),
    ] = ()
    most_categories: Annotated[
        int,
        typer.Option(
            "--max-categories",
            min=2,
            help="One-hot encode the categories of columns with at most this many distinct values, "
            "and encode those of other columns by the target.",
        ),
    ] = 50
    missing_values: Annotated[
        Names,
        typer.Option(
            help="Values that stand for missing ones: -999 in all columns, temp=-1 in one; may be "
            "repeated."
        ),
    ] = ()


CostOption = Annotated[
    Names,
    typer.Option(
        "--cost",
        help="With two classes: the cost of missing a row of a class, such as fraud=20 [default: "
        "1 each]. Prints the cheapest threshold for `predict`; may be repeated.",
    ),
]


@dataclass(frozen=True)
class Settings:
    """The model to train and how to test it.

    Parameters
    ----------
    hidden : tuple of int, optional
        The widths of the hidden layers, which consist of linear neurons; () means that there are
        none. If neither `hidden` nor `kind` is given, the shape is chosen on held-out rows. In a
        stream, it is a single quadratic layer instead.
    equation : bool
        Choose the shape only among single layers, so that the model is one equation.
    kind : {'quadratic', 'reduced'}, optional
        The kind of neurons in the last layer; quadratic by default.
    readable : bool
        Train a `SparseQuadraticClassifier` or `SparseQuadraticRegressor`.
    terms : int, optional
        With `readable`, the largest number of terms of each equation.
    hierarchy : {'none', 'strong'}, optional
        With `readable`, whether a product enters only together with its inputs.
    seed : int
    test_size : float, optional
        The share of rows to hold out for the scores. By default, they are those of a
        cross-validation if that is fast, and otherwise a quarter of the rows is held out.
    holdout : bool
        Train the model only on the rows that are not held out.
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
    tails : {'auto', 'keep', 'power'}
        Whether columns with long tails are transformed by a power; see `with_scaling`.
    time : str, optional
        A column of dates or numbers. The rows that are held out are the latest ones.
    cost : sequence of str
        The cost of missing a row of a class, such as 'fraud=20'. If it is given, the scored rows
        determine the cheapest threshold.
    """

    hidden: tuple[int, ...] | None = None
    kind: Annotated[
        Literal["quadratic", "reduced"] | None,
        typer.Option(
            help="Kind of neurons in the last layer [default: chosen on held-out rows; with "
            "--hidden or --stream: quadratic]."
        ),
    ] = None
    equation: Annotated[
        bool,
        typer.Option(
            "--equation",
            help="Choose the best single layer, so that the model is one equation.",
        ),
    ] = False
    readable: Annotated[
        bool,
        typer.Option(
            "--readable",
            help="Train a sparse equation: the few inputs, squares and products that matter.",
        ),
    ] = False
    terms: Annotated[
        int | None,
        typer.Option(min=1, help="With --readable: the most terms per equation [default: 15]."),
    ] = None
    hierarchy: Annotated[
        Literal["none", "strong"] | None,
        typer.Option(
            help="With --readable: strong lets a product enter only together with its inputs "
            "[default: none]."
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0
    test_size: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of rows held out for the scores [default: cross-validation if it is fast, "
            "otherwise 0.25].",
        ),
    ] = None
    holdout: Annotated[
        bool,
        typer.Option(
            "--holdout",
            help="Do not train the saved model on the held-out rows [default: on all rows].",
        ),
    ] = False
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
    tails: Annotated[
        Literal["auto", "keep", "power"],
        typer.Option(
            help="Numeric columns with long tails: keep them, transform them by a power, or auto: "
            "transform them if this reduces the loss on held-out rows. Not used with --stream."
        ),
    ] = "auto"
    cost: CostOption = ()
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="A column of dates or numbers: hold out the latest rows instead of random ones.",
        ),
    ] = None

    @property
    def held_out_share(self) -> float:
        """The share of rows to hold out, if rows are held out."""
        return HELD_OUT if self.test_size is None else self.test_size


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
