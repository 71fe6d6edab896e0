"""Predictions for a table, made in batches, written to a file and scored.

Every row of the table gets one prediction, in the same order.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._evaluation import NumberMetrics, number_scores
from quadric.apps.shell.tables._preprocessing import (
    check_inputs,
    features,
    labels,
    predictable_rows,
)
from quadric.apps.shell.tables._saved_model import TableNetwork
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._source import Source
from quadric.apps.shell.tables._table_format import check_columns
from quadric.apps.shell.tables._writing import write_batches
from quadric.checks import Array
from quadric.errors import TableError
from quadric.models import ModelView, classes_of
from quadric.utils import counted, listed

ROWS_AT_ONCE = 20_000
NUMBERS_AT_ONCE = 2**24  # maximum number of entries in the dense input matrix of one batch


@dataclass
class Predicted:
    """Counts and scores for a table of predictions.

    Attributes
    ----------
    schema : Schema
    rows, empty : int
        The number of rows, and the number of rows without a prediction.
    imputes : bool
        Whether the model imputes missing values.
    formulas : int
        The number of strings prefixed with an apostrophe; see `safe_for_spreadsheets`.
    unused : list of str
        Columns that the model does not use, except the target and those that are kept.
    missing, unknown : Counter
        The number of missing values and of unknown categories in each column.
    scored : int
        The number of rows with a prediction and a target.
    sums : array
        Over these rows: the number of correct classes, or the sums of `NumberMetrics.parts`.
    center : float
        A typical target, for these sums.
    problem : str
        Why the target cannot be used; empty if it can.
    """

    schema: Schema
    rows: int = 0
    empty: int = 0
    imputes: bool = True
    formulas: int = 0
    unused: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    scored: int = 0
    sums: Array = field(default_factory=lambda: np.zeros(1))
    center: float = 0.0
    problem: str = ""

    def count(self, X: pl.DataFrame) -> None:
        """Count the rows, missing values and unknown categories of a batch."""
        self.rows += len(X)
        for column in self.schema.columns:
            values = X[column.name].drop_nulls()
            self.missing[column.name] += len(X) - len(values)
            if column.kind == "category":
                self.unknown[column.name] += int((~values.is_in(column.categories)).sum())

    def score(self, frame: pl.DataFrame, predicted: pl.DataFrame, kept: Array, start: int) -> None:
        """Add the targets of a batch; `kept` is a mask of the rows with a prediction."""
        if self.problem or self.schema.target not in predicted.columns:
            return
        try:
            y, present = labels(self.schema, frame, start)
        except TableError as error:
            self.problem = str(error)
            return
        y, ours = y[kept[present]], predicted[self.schema.target].to_numpy()[kept & present]
        if not len(y):
            return
        if not self.scored and not self.schema.classes:
            self.center = float(y.mean())
        parts = NumberMetrics(y, ours).parts(self.center) if not self.schema.classes else y == ours
        self.sums = self.sums + parts.sum(axis=0)
        self.scored += len(y)

    @property
    def scores(self) -> dict[str, Any]:
        """The scores as JSON values; empty if no row has a target."""
        if self.problem or not self.scored:
            return {}
        means = self.sums / self.scored
        if self.schema.classes:
            return {"rows": self.scored, "accuracy": float(means[0])}
        scores = number_scores(*means)
        defined = {} if np.isnan(scores["R²"]) else {"R²": float(scores["R²"])}
        return {"rows": self.scored, **defined, "mean_absolute_error": float(scores["MAE"])}

    def notes(self) -> list[str]:
        """Return the counts and the scores as sentences."""
        missing = [f"{name!r} ({count})" for name, count in (+self.missing).items()]
        reason = "without any value" if self.imputes else "with a missing number"
        sentences = {
            f"Columns that the model does not use: {listed(map(repr, self.unused))}.": self.unused,
            **{
                f"Category not seen in training: {counted(count, 'value')} of {name!r}, encoded "
                "as none of the known categories.": count
                for name, count in self.unknown.items()
            },
            f"Imputed missing values in {listed(missing, 8)}.": self.imputes and missing,
            f"Made no prediction for {counted(self.empty, 'row')} {reason}.": self.empty,
            f"Added an apostrophe in front of {counted(self.formulas, 'string')} that a "
            "spreadsheet would evaluate as a formula; --raw-csv turns this off.": self.formulas,
            f"The predictions are not scored: {self.problem}": self.problem,
        }
        notes = [sentence for sentence, applies in sentences.items() if applies]
        if scores := self.scores:
            forms = {"accuracy": "accuracy {:.3f}", "R²": "R² {:.3f}"}
            forms["mean_absolute_error"] = "mean absolute error {:.4g}"
            texts = [form.format(scores[name]) for name, form in forms.items() if name in scores]
            rows, target = counted(self.scored, "row"), self.schema.target
            notes.append(f"Scores on {rows} with a value for {target!r}: {', '.join(texts)}.")
        return notes


def predict(
    model: Any,
    schema: Schema,
    source: Source,
    path: Path | None,
    *,
    proba: bool = False,
    keep: Sequence[str] = (),
    labeled: bool = True,
    raw_csv: bool = False,
) -> Predicted:
    """Write predictions for every row of a table, and score them if it contains the target.

    Predictions are written to a column named after the target. If a network predicts several
    numbers, the columns are numbered: 'output 0', 'output 1' and so on. The prediction is empty
    for a row in which all values are missing. A network does not impute values, so its prediction
    is also empty for a row with a missing number.

    Parameters
    ----------
    model : estimator
        A pipeline or a `TableNetwork`.
    schema : Schema
        The columns that the model uses.
    source : Source
        The table; see `open_table`.
    path : Path or None
        The file to write; its format follows from its name, see `write_batches`. None writes CSV
        to stdout.
    proba : bool
        Whether to add a column 'probability of ...' for each class.
    keep : sequence of str
        Columns of the table to copy to the output, in front of the predictions.
    labeled : bool
        Whether a column with the target's name contains the true values.
    raw_csv : bool
        Whether to write text to CSV unchanged instead of applying `safe_for_spreadsheets`.

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
    check_columns(keep, source.columns)
    check_inputs(schema, source.columns)
    used = {*schema.names, schema.target, *keep}
    unused = [name for name in source.columns if name not in used]
    done = Predicted(schema, unused=unused, imputes=not isinstance(model, TableNetwork))
    scored = labeled and schema.target in source.columns
    rows = max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // ModelView.of(model).network.n_inputs))

    def frames() -> Iterator[pl.DataFrame]:
        for frame in source.batches(rows):
            X = features(schema, frame, done.rows)
            kept = predictable_rows(X, imputes=done.imputes)
            done.count(X)
            done.empty += int((~kept).sum())
            try:
                predicted = _predictions(model, schema, X, proba)
            except ValueError as error:  # numbers too large for the model
                raise TableError(" ".join(str(error).split())) from None
            if scored:
                done.score(frame, predicted, kept, done.rows - len(X))
            predicted = predicted.with_columns(pl.when(pl.lit(pl.Series(kept))).then(pl.all()))
            yield _beside(frame.select(keep), predicted) if keep else predicted
        if not done.rows:
            raise TableError(f"{source.path} has column names but no rows.")

    done.formulas = write_batches(path, frames(), raw_csv=raw_csv)
    return done


def _beside(kept: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    """Return the kept columns followed by the predictions."""
    for name in kept.columns:
        if name in predicted.columns:
            raise TableError(
                f"--keep {name!r} has the same name as a column of predictions. Rename it in the "
                "table."
            )
    return kept.hstack(predicted)


def _predictions(model: Any, schema: Schema, X: pl.DataFrame, proba: bool) -> pl.DataFrame:
    if not proba:
        Y = np.asarray(model.predict(X))
        if Y.ndim == 1:
            return pl.DataFrame({schema.target: Y})
        return pl.DataFrame({f"{schema.target} {k}": column for k, column in enumerate(Y.T)})
    P = model.predict_proba(X)
    names = [schema.target, *(f"probability of {label}" for label in classes_of(model).tolist())]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(
            f"there would be two columns named {name!r}, because the target has this name or two "
            "classes look the same. Predict without --proba."
        )
    # not the largest probability: several may be equal after rounding
    return pl.DataFrame(dict(zip(names, [model.predict(X), *P.T], strict=True)))
