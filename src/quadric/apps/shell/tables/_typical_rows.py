"""Rows that show where the inputs of a model lie, made from the schema alone."""

import numpy as np
import polars as pl

from quadric.apps.shell.tables._schema import Column, Schema
from quadric.checks import Array


def typical_rows(schema: Schema, rows: int = 200) -> pl.DataFrame:
    """Rows with independent inputs: normal numbers with the column's mean and standard deviation.

    Every category is equally frequent. The rows only show where a model's inputs lie; they say
    nothing about how the inputs are related.
    """
    rng = np.random.default_rng(0)
    columns = {}
    for column in schema.columns:
        if column.categories:
            columns[column.name] = pl.Series((column.categories * rows)[:rows])
        elif column.kind == "date":
            columns[column.name] = pl.Series(_times(column, rng.random(rows)))
        elif column.kind == "boolean":
            columns[column.name] = pl.Series(np.arange(rows) % 2, dtype=pl.Float64)
        else:
            columns[column.name] = pl.Series(column.mean + column.std * rng.normal(size=rows))
    return pl.DataFrame(columns)


def _times(column: Column, shares: Array) -> list[str]:
    """Times at these shares of the range of a column of dates, as text."""
    if column.order == "time":
        low, high = column.parts["hour"][:2]
        seconds = (3600 * (low + (high - low) * shares)).astype("m8[s]")
        return [str(time)[11:] for time in np.datetime64("2000-01-01", "s") + seconds]
    low, high = column.parts["days"][:2]
    seconds = (86400 * (low + (high - low) * shares)).astype("m8[s]")
    return [str(time) for time in np.datetime64("1970-01-01", "s") + seconds]
