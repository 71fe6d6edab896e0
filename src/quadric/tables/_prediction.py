"""Predictions for a table in batches: one row for every row of the table, in the same order."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline

from quadric.errors import TableError
from quadric.tables._features import complete_rows, empty_rows, features, unused_columns
from quadric.tables._schema import Schema
from quadric.tables._source import Source
from quadric.tables._table_network import TableNetwork
from quadric.tables._wording import counted, listed
from quadric.tables._writing import write_batches

ROWS_AT_ONCE = 20_000
NUMBERS_AT_ONCE = 2**24  # inputs of the network in one batch, dense


@dataclass
class Predicted:
    """Counts of what was predicted.

    Attributes
    ----------
    rows, empty : int
        The number of rows, and of rows without a prediction.
    imputes : bool
        Whether the model imputes missing values.
    formulas : int
        The number of texts that are quoted, see `write_batches`.
    unused : list of str
        Columns that the model does not use, except the target.
    missing, unknown : Counter
        The numbers of missing values and of unknown categories by column.
    """

    rows: int = 0
    empty: int = 0
    imputes: bool = True
    formulas: int = 0
    unused: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def count(self, schema: Schema, X: pl.DataFrame) -> None:
        """Add the rows, missing values and unknown categories of a batch."""
        self.rows += len(X)
        for column in schema.columns:
            values = X[column.name].drop_nulls()
            self.missing[column.name] += len(X) - len(values)
            if column.kind == "category":
                self.unknown[column.name] += int((~values.is_in(column.categories)).sum())

    def notes(self) -> list[str]:
        """Return the counts as sentences."""
        notes = []
        if self.unused:
            notes.append(f"Columns that the model does not use: {listed(map(repr, self.unused))}.")
        for name, count in (+self.unknown).items():
            notes.append(
                f"Category not seen in training: {counted(count, 'value')} of {name!r}, encoded "
                "as none of the known categories."
            )
        if self.imputes and +self.missing:
            shown = [f"{name!r} ({count})" for name, count in (+self.missing).items()]
            notes.append(f"Imputed missing values in {listed(shown, 8)}.")
        if self.empty:
            reason = "without any value" if self.imputes else "with a missing number"
            notes.append(f"Predicted nothing for {counted(self.empty, 'row')} {reason}.")
        if self.formulas:
            notes.append(
                f"Put an apostrophe in front of {counted(self.formulas, 'text')} that a "
                "spreadsheet would evaluate as a formula; --raw-csv turns this off."
            )
        return notes


def predict(
    model: Any,
    schema: Schema,
    source: Source,
    path: Path | None,
    *,
    proba: bool = False,
    raw_csv: bool = False,
) -> Predicted:
    """Write predictions for every row of a table.

    The column has the target's name. If a network predicts several numbers, the columns are
    'output 0', 'output 1' and so on. The prediction is empty for a row without any value and, for
    a network, which imputes nothing, for a row with a missing number.

    Parameters
    ----------
    model : estimator
        A pipeline or a `TableNetwork`.
    schema : Schema
        The columns that it uses.
    source : Source
        The table, see `open_table`.
    path : Path or None
        A CSV file, or a Parquet file if it ends with .parquet or .pq; None writes CSV to stdout.
    proba : bool
        Whether to add a column 'probability of ...' for each class.
    raw_csv : bool
        Whether to write text that looks like a formula unquoted, see `write_batches`.

    Returns
    -------
    Predicted

    Raises
    ------
    TableError
        If the table cannot be read or lacks a column.
    OSError
        If the output cannot be written.
    """
    if proba and schema.task == "regression":
        raise TableError("--proba needs a classifier, but this model predicts numbers.")
    unused = [name for name in unused_columns(schema, source.columns) if name != schema.target]
    done = Predicted(unused=unused, imputes=not isinstance(model, TableNetwork))
    last = model[-1] if isinstance(model, Pipeline) else model
    rows = max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // last.n_features_in_))

    def frames() -> Iterator[pl.DataFrame]:
        for frame in source.batches(rows):
            X = features(schema, frame, done.rows)
            empty = empty_rows(X) if done.imputes else ~complete_rows(X)
            done.count(schema, X)
            done.empty += int(empty.sum())
            try:
                found = _predictions(model, schema, X, proba)
            except ValueError as error:  # numbers too large for the model
                raise TableError(" ".join(str(error).split())) from None
            yield found.with_columns(pl.when(pl.lit(pl.Series(~empty))).then(pl.all()))
        if not done.rows:
            raise TableError(f"{source.path} has column names but no rows.")

    done.formulas = write_batches(path, frames(), raw_csv=raw_csv)
    return done


def _predictions(model: Any, schema: Schema, X: pl.DataFrame, proba: bool) -> pl.DataFrame:
    if not proba:
        Y = np.asarray(model.predict(X))
        if Y.ndim == 1:
            return pl.DataFrame({schema.target: Y})
        return pl.DataFrame({f"{schema.target} {k}": column for k, column in enumerate(Y.T)})
    P = model.predict_proba(X)
    columns: dict[str, Any] = {schema.target: model.classes_[P.argmax(axis=1)]}
    for k, label in enumerate(model.classes_.tolist()):
        name = f"probability of {label}"
        if name in columns:
            raise TableError(
                f"there would be two columns {name!r}, because the target has this name or two "
                "classes look the same. Predict without --proba."
            )
        columns[name] = P[:, k]
    return pl.DataFrame(columns)
