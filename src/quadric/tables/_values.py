"""Values of a table's columns: missing ones, numbers and text."""

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric.errors import TableError

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in lower case
TRUTH = {"true": 1.0, "false": 0.0}
LARGEST = 1e100  # sums of squares over many rows must not overflow


def clean(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip blanks from text and replace missing values, NaN included, by null."""
    text = pl.col(pl.String)
    return frame.with_columns(
        text.str.strip_chars(), pl.col(pl.Float64).fill_nan(None)
    ).with_columns(pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text))


def to_numbers(cleaned: pl.DataFrame) -> dict[str, pl.Series]:
    """Convert the columns of text, booleans and numbers to Float64.

    Text that is not a number becomes null; true and false, in any case, become 1 and 0. Columns
    of other types, such as lists, are left out.
    """
    usable = [
        name
        for name, dtype in cleaned.schema.items()
        if dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null)
    ]
    cast = cleaned.select(pl.col(usable).cast(pl.Float64, strict=False))
    found = {column.name: column for column in cast}
    for name in usable:
        column = cleaned[name]
        if column.dtype == pl.String and found[name].null_count() > column.null_count():
            truth = column.str.to_lowercase().replace_strict(
                TRUTH, default=None, return_dtype=pl.Float64
            )
            found[name] = found[name].fill_null(truth)
    return found


def to_text(column: pl.Series) -> pl.Series:
    """Convert a cleaned column to text; the number 3.0 becomes '3'."""
    if column.dtype == pl.Float64:
        texts = {
            value: str(int(value)) if value.is_integer() else str(value)
            for value in column.drop_nulls().unique()
        }
        return column.replace_strict(texts, return_dtype=pl.String)
    return column.cast(pl.String)


def check_size(name: str, values: Array, start: int) -> None:
    """Raise TableError if a number is infinite or too large; `start` is the first row, from 0."""
    bad = np.abs(values) > LARGEST
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"column {name!r} holds {values[row]:g} in row {start + row + 1}: numbers must be "
            f"finite and at most {LARGEST:g} in size. Correct the value, or leave it empty."
        )
