"""Arguments and options of commands that read tables, and checks of them."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadric.apps.shell.commands._console import fail
from quadric.apps.shell.tables._table_format import (
    WRITTEN,
    is_pattern,
    is_stdin,
    plain_stem,
)
from quadric.errors import TableError

if TYPE_CHECKING:
    from quadric.apps.shell.tables import TableFormat

TABLE_HELP = "a CSV or Parquet file, a directory of Parquet files, a pattern, or - for stdin"

ModelArgument = Annotated[
    Path,
    typer.Argument(
        readable=False, help="A model file from `quadric train` or, in Python, `quadric.save`."
    ),
]
TableArgument = Annotated[
    Path,
    typer.Argument(readable=False, help=f"A table with the model's columns: {TABLE_HELP}."),
]
LabeledTableArgument = Annotated[
    Path,
    typer.Argument(
        readable=False, help=f"A table with the model's columns and the target: {TABLE_HELP}."
    ),
]
BootstrapSeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed of the bootstrap.")
]

EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Encoding of a CSV file, such as latin-1 [default: UTF-8, or UTF-16 if the file "
        "starts with a byte order mark].",
    ),
]
DecimalOption = Annotated[
    str, typer.Option("--decimal", help="Decimal mark in the table: a point or a comma.")
]
ThousandsOption = Annotated[
    str,
    typer.Option(
        "--thousands",
        help="Thousands separator in the table: a comma, a point, a space, ' or _.",
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option("--keep", help="Columns of the table to copy to the output; may be repeated."),
]
RawCsvOption = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Do not add an apostrophe in front of text that looks like a spreadsheet formula.",
    ),
]


def table_format(encoding: str | None, decimal: str, thousands: str) -> TableFormat:
    """Return the format of a table from the options."""
    from quadric.apps.shell.tables import TableFormat

    return TableFormat(encoding, decimal, thousands)


def check_exists(*paths: Path | None) -> None:
    """Fail early, before any slow import, if an input does not exist."""
    for path in paths:
        if path is None or is_stdin(path):
            continue
        try:
            if not is_pattern(path):
                os.stat(path)
            elif not glob.glob(str(path)):
                fail(f"no file matches {path}.")
        except OSError as error:
            fail(f"cannot read {path}: {error.strerror}.")


def check_written(path: Path) -> None:
    """Raise BadParameter unless a table can be written in the format of this file name."""
    if path.suffix.lower() not in WRITTEN:
        raise typer.BadParameter(
            f"tables are written as .csv, .tsv or .parquet files. Got {path.name!r}."
        )


def default_output(table: Path, suffix: str) -> Path:
    """Return the path of an output file in the current directory, named after the input."""
    return Path(plain_stem(table) + suffix)


def column_names(texts: Iterable[str] | None, columns: Sequence[str]) -> list[str]:
    """Return the names in a repeatable option such as --drop.

    Each string is a name, or several names separated by commas. The name of a column that contains
    a comma can be given as it is, or in double quotes.
    """
    names: list[str] = []
    for text in texts or ():
        names.extend([text] if text in columns else split_names(text))
    return list(dict.fromkeys(names))


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
