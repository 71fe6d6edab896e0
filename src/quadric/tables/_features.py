"""Inputs and targets of a model from a batch of rows."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric.errors import TableError
from quadric.tables._schema import Schema
from quadric.tables._values import check_size, clean, to_numbers, to_text
from quadric.tables._wording import listed


def unused_columns(schema: Schema, columns: Sequence[str]) -> list[str]:
    """Return the columns that the model does not use; raise TableError if one is missing."""
    missing = [name for name in schema.names if name not in columns]
    if missing:
        word = "column" if len(missing) == 1 else "columns"
        raise TableError(
            f"the table lacks the {word} {listed(map(repr, missing), 10)}, which the model needs."
        )
    used = set(schema.names)
    return [name for name in columns if name not in used]


def features(schema: Schema, frame: pl.DataFrame, start: int = 0) -> pl.DataFrame:
    """Return the inputs in the model's order: Float64 for numbers, String for categories."""
    cleaned = clean(frame.select(schema.names))
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    converted = _to_numbers(cleaned.select(numbers), start)
    return pl.DataFrame(
        [converted[name] if name in converted else to_text(cleaned[name]) for name in schema.names]
    )


def labels(schema: Schema, frame: pl.DataFrame, start: int = 0) -> tuple[Array, Array]:
    """Return the targets, and a mask of the rows that have one."""
    cleaned = clean(frame.select(schema.target))
    if schema.classes and isinstance(schema.classes[0], str):
        found = to_text(cleaned[schema.target])
    else:
        found = _to_numbers(cleaned, start)[schema.target]
    present = found.is_not_null()
    values = found.filter(present)
    if schema.classes:
        as_class = str if isinstance(schema.classes[0], str) else np.int64
        return values.to_numpy().astype(as_class), present.to_numpy()
    return values.to_numpy(), present.to_numpy()


def labelled_rows(
    schema: Schema, frame: pl.DataFrame, start: int = 0
) -> tuple[pl.DataFrame, Array, Array]:
    """Return inputs and targets of the rows with a target, and a mask of these rows."""
    X = features(schema, frame, start)
    y, present = labels(schema, frame, start)
    return (X if present.all() else X.filter(present)), y, present


def complete_rows(X: pl.DataFrame) -> Array:
    """Return a mask of the rows without a missing number; a missing category is a category."""
    complete = np.ones(len(X), dtype=bool)
    for column in X:
        if column.dtype == pl.Float64:
            complete &= column.is_not_null().to_numpy()
    return complete


def empty_rows(X: pl.DataFrame) -> Array:
    """Return a mask of the rows without any value."""
    return X.select(pl.all_horizontal(pl.all().is_null()))[:, 0].to_numpy()


def _to_numbers(cleaned: pl.DataFrame, start: int) -> dict[str, pl.Series]:
    """Convert all columns to numbers; raise TableError for the first value that is not one."""
    converted = to_numbers(cleaned)
    for column in cleaned:
        name = column.name
        problem = f"column {name!r} must contain numbers, but "
        if name not in converted:
            raise TableError(f"{problem}its type is {column.dtype}.")
        if converted[name].null_count() > column.null_count():
            row = int((converted[name].is_null() & column.is_not_null()).arg_max() or 0)
            raise TableError(f"{problem}row {start + row + 1} contains {column[row]!r}.")
        check_size(name, converted[name].to_numpy(), start)
    return converted
