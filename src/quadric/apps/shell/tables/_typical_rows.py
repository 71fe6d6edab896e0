"""Rows that resemble a model's training table, made from its schema."""

import numpy as np
import polars as pl

from quadric.apps.shell.tables._schema import Schema


def typical_rows(schema: Schema, rows: int = 200) -> pl.DataFrame:
    """Rows with independent inputs: normal numbers with the column's mean and standard deviation.

    Every category is equally frequent. The rows only show where a model's inputs lie; they say
    nothing about how the inputs are related.
    """
    rng = np.random.default_rng(0)
    columns = {}
    for column in schema.columns:
        if column.kind == "category":
            values = [column.categories[i % len(column.categories)] for i in range(rows)]
            columns[column.name] = pl.Series(values, dtype=pl.String)
        elif column.kind == "boolean":
            columns[column.name] = pl.Series(np.arange(rows) % 2, dtype=pl.Float64)
        else:
            columns[column.name] = pl.Series(column.mean + column.std * rng.normal(size=rows))
    return pl.DataFrame(columns)
