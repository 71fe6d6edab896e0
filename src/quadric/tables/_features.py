"""A batch of rows as a model takes it: numbers and categories, and the target's labels."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from quadric._utils.arrays import Array
from quadric.errors import TableError
from quadric.tables._profile import as_text, check_size, clean, numbers
from quadric.tables._schema import Schema


class Counts:
    """What is worth saying of the rows seen: missing values and unknown categories by column."""

    def __init__(self) -> None:
        self.missing: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()


def match(schema: Schema, columns: Sequence[str]) -> list[str]:
    """The columns that the model does not need; TableError if one that it needs is not there."""
    lacking = [name for name in schema.names if name not in columns]
    if lacking:
        shown = ", ".join(map(repr, lacking[:10]))
        more = "" if len(lacking) <= 10 else f" and {len(lacking) - 10} more"
        word = "column" if len(lacking) == 1 else "columns"
        raise TableError(
            f"{word} {shown}{more} must be there: the model was trained with "
            f"{'it' if len(lacking) == 1 else 'them'}."
        )
    wanted = set(schema.names)
    return [name for name in columns if name not in wanted]


def features(
    schema: Schema, frame: pl.DataFrame, start: int = 0, counts: Counts | None = None
) -> pl.DataFrame:
    """The model's inputs in its order: Float64 for numbers, String for categories."""
    cleaned = clean(frame.select(schema.names))
    wanted = [column.name for column in schema.columns if column.kind != "category"]
    as_numbers = _as_numbers(cleaned.select(wanted), start)
    columns = []
    for column in schema.columns:
        series = (
            as_numbers[column.name] if column.kind != "category" else as_text(cleaned[column.name])
        )
        if counts is not None:
            counts.missing[column.name] += series.null_count()
            if column.kind == "category":
                known = series.is_in(column.categories) | series.is_null()
                counts.unknown[column.name] += int((~known).sum())
        columns.append(series)
    return pl.DataFrame(columns)


def labels(schema: Schema, frame: pl.DataFrame, start: int = 0) -> tuple[Array, Array]:
    """The targets that are there, and which rows have one."""
    cleaned = clean(frame.select(schema.target))
    if schema.task == "classification" and isinstance(schema.classes[0], str):
        found = as_text(cleaned[schema.target])
        there = found.is_not_null()
        return found.filter(there).to_numpy().astype(str), there.to_numpy()
    found = _as_numbers(cleaned, start)[schema.target]
    there = found.is_not_null()
    if schema.task == "classification":
        found = found.cast(pl.Int64)
    return found.filter(there).to_numpy(), there.to_numpy()


def complete_rows(X: pl.DataFrame) -> Array:
    """Which rows lack no number; a missing category is a category of its own."""
    complete = np.ones(len(X), dtype=bool)
    for column in X:
        if column.dtype == pl.Float64:
            complete &= column.is_not_null().to_numpy()
    return complete


def empty_rows(X: pl.DataFrame) -> Array:
    """Which rows have no value at all."""
    return X.select(pl.all_horizontal(pl.all().is_null()))[:, 0].to_numpy()


def take(X: pl.DataFrame, rows: Any) -> pl.DataFrame:
    """Some rows, by their numbers or by a mask."""
    rows = np.asarray(rows)
    return X.filter(rows) if rows.dtype == bool else X[rows]


def _as_numbers(cleaned: pl.DataFrame, start: int) -> dict[str, pl.Series]:
    """All columns as numbers; TableError at the first value that is none."""
    found = numbers(cleaned)
    for column in cleaned:
        name = column.name
        if name not in found:
            raise TableError(
                f"column {name!r} must hold numbers; the file has {column.dtype} there."
            )
        if found[name].null_count() > column.null_count():
            row = int((found[name].is_null() & column.is_not_null()).arg_max() or 0)
            raise TableError(
                f"column {name!r} must hold numbers; row {start + row + 1} has {column[row]!r}."
            )
        check_size(name, found[name].to_numpy(), start)
    return found
