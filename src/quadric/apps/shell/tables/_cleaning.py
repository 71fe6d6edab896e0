"""The values of a column of a table, without those that are missing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from quadric.checks import Array
from quadric.models import PLAIN, NumberForm, clean, read_objects, without

NOTHING = pl.Series([None], dtype=pl.String)


def cleaned(column: pl.Series, missing: Sequence[str] = (), form: Sequence[str] = PLAIN) -> Any:
    """Return the values of a column: an array of numbers, or a list with None where missing.

    `missing` has the values that stand for missing ones, and `form` is that of the numbers.
    """
    values = read_objects(column.name, column)
    values = values if isinstance(values, np.ndarray) else clean(values)
    return without(values, missing, NumberForm(*form))


def plain_numbers(
    column: pl.Series, missing: Sequence[str] = (), form: Sequence[str] = PLAIN
) -> tuple[pl.Series, Array] | None:
    """Return the cleaned text of a column and its numbers if every value is a plain number.

    Polars parses plain numbers as `numbers` does: both return the nearest float64. None if the
    column is not text, or if a value is neither a plain number nor missing; such a column is read
    with `cleaned`, whose parameters are the same.
    """
    if column.dtype != pl.String or form[0] != "." or form[2] == "%":
        return None
    found = column.cast(pl.Float64, strict=False).fill_nan(None)
    if found.null_count() > column.null_count():
        column = column.str.strip_chars()
        found = column.cast(pl.Float64, strict=False).fill_nan(None)
        others = column.filter(found.is_null()).unique()
        if any(value is not None for value in cleaned(others, missing, form)):
            return None
    values = without(found.to_numpy(), missing, NumberForm(*form))
    known = pl.Series(~np.isnan(values))
    return (column if known.all() else column.zip_with(known, NOTHING)), values
