"""Predictions for a table, batch by batch: a row out for every row in, in the same order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline

from quadric.errors import TableError
from quadric.tables._features import Counts, complete_rows, empty_rows, features, match
from quadric.tables._schema import Schema
from quadric.tables._source import Source
from quadric.tables._table_network import TableNetwork
from quadric.tables._writing import write_batches

BATCH = 20_000
BATCH_NUMBERS = 2**24  # inputs of the network, dense


@dataclass
class Predicted:
    """What is worth saying of the rows predicted."""

    rows: int = 0
    empty: int = 0
    imputes: bool = True
    formulas: int = 0
    extra: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def notes(self, target: str) -> list[str]:
        """In sentences."""
        said = []
        extra = [name for name in self.extra if name != target]
        if extra:
            shown = ", ".join(map(repr, extra[:8])) + (" ..." if len(extra) > 8 else "")
            said.append(f"Columns that the model does not use: {shown}.")
        for name, count in self.counts.unknown.items():
            if count:
                said.append(
                    f"{count} values of {name!r} were not seen in training; they count as none of "
                    "the known categories."
                )
        holes = {name: count for name, count in self.counts.missing.items() if count}
        if holes and self.imputes:
            shown = ", ".join(f"{name!r} ({count})" for name, count in list(holes.items())[:8])
            said.append(f"Missing values are imputed: {shown}.")
        if self.empty:
            lack = "have no value at all" if self.imputes else "lack a number"
            said.append(f"{self.empty} rows {lack}: their predictions are empty.")
        if self.formulas:
            said.append(
                f"{self.formulas} texts that a spreadsheet would take for formulas have an "
                "apostrophe in front; --raw-csv writes them as they are."
            )
        return said


def predict(
    model: Any,
    schema: Schema,
    source: Source,
    path: Path | None,
    *,
    proba: bool = False,
    raw_csv: bool = False,
) -> Predicted:
    """Write a column named as the target; with `proba` also one a class, 'probability of ...'.

    Where a network predicts several numbers, the columns are 'output 0', 'output 1', ... A row
    without any value has no prediction; for a network, which imputes nothing, one without all.
    `path` is CSV, or Parquet where its name ends so; None is stdout. In CSV, texts that a
    spreadsheet would take for formulas get an apostrophe in front, unless `raw_csv`. TableError
    for a table that does not fit, OSError where nothing can be written.
    """
    if proba and schema.task == "regression":
        raise TableError("--proba is for classes; this model predicts numbers.")
    done = Predicted(
        extra=match(schema, source.columns), imputes=not isinstance(model, TableNetwork)
    )

    def frames() -> Iterator[pl.DataFrame]:
        for frame in source.batches(_rows_at_once(model)):
            X = features(schema, frame, done.rows, done.counts)
            empty = empty_rows(X) if done.imputes else ~complete_rows(X)
            done.rows += len(frame)
            done.empty += int(empty.sum())
            try:
                found = _predictions(model, schema, X, proba)
            except ValueError as error:  # numbers that are too large for the model
                raise TableError(" ".join(str(error).split())) from None
            yield found.with_columns(pl.when(pl.lit(pl.Series(~empty))).then(pl.all()))
        if not done.rows:
            raise TableError(f"{source.path} has no rows, only column names.")

    done.formulas = write_batches(path, frames(), raw_csv=raw_csv)
    return done


def _rows_at_once(model: Any) -> int:
    """Rows of a batch: fewer where a model encodes many categories densely."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return max(1, min(BATCH, BATCH_NUMBERS // last.n_features_in_))


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
                f"the column {name!r} would be there twice: the target has that name, or two "
                "classes look the same. Predict without --proba."
            )
        columns[name] = P[:, k]
    return pl.DataFrame(columns)
