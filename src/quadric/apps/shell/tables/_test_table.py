"""Evaluation of a model on a table that contains the target."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._evaluation import Evaluation, evaluate
from quadric.apps.shell.tables._features import (
    check_inputs,
    clean,
    complete_rows,
    empty_rows,
    features,
    labels,
    to_numbers,
    to_text,
)
from quadric.apps.shell.tables._linear_baseline import LinearBaseline
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._scores import LINEAR, TRIVIAL, new_sample, outputs, trivial_outputs
from quadric.apps.shell.tables._source import Source
from quadric.apps.shell.tables._table_network import TableNetwork
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted, listed

ROWS_AT_ONCE = 20_000


@dataclass
class TestTable:
    """A model's predictions for a table that contains the target.

    Attributes
    ----------
    evaluation : Evaluation
        The scores of the model and of the baselines.
    numbers : array
        The numbers of the scored rows in the table, counted from 1.
    truth, predicted : array
        The targets and predictions: indices of classes and probabilities, or numbers.
    notes : list of str
        Sentences about ignored rows and about the baselines.
    rows : (DataFrame, array) or None
        The inputs and targets of the first rows; None for held-out rows.
    """

    __test__ = False  # pytest must not collect this class

    evaluation: Evaluation
    numbers: Array
    truth: Array
    predicted: Array
    notes: list[str] = field(default_factory=list)
    rows: tuple[pl.DataFrame, Array] | None = None


def evaluate_table(
    model: Any,
    schema: Schema,
    source: Source,
    *,
    linear: LinearBaseline | None = None,
    seed: int = 0,
) -> TestTable:
    """Score a model on a table.

    Rows without a target, rows for which `predict` makes no prediction, and rows of classes that
    the model does not know are ignored. The notes count them.

    Parameters
    ----------
    model : estimator
        A pipeline or a `TableNetwork`.
    schema : Schema
        The columns that the model uses.
    source : Source
        The table; see `open_table`.
    linear : LinearBaseline, optional
        A baseline that uses the pipeline's preprocessing.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    TestTable

    Raises
    ------
    TableError
        If the table cannot be read, lacks a column or has no usable row.
    """
    check_target(schema, source)
    sample, rows = new_sample(schema, seed), _Rows(schema, not isinstance(model, TableNetwork))
    start, first = 0, None
    for frame in source.batches(ROWS_AT_ONCE):
        X, truth, numbers = rows.usable(frame, start)
        start += len(frame)
        if not len(truth):
            continue
        first = first or (X, np.array(schema.classes)[truth] if schema.classes else truth)
        try:
            found = [outputs(model, X)]
            if linear is not None:
                found.append(linear.outputs(model[:-1].transform(X)))
        except ValueError as error:  # numbers too large for the model
            raise TableError(" ".join(str(error).split())) from None
        if found[0].ndim > 1 and not schema.classes:
            raise TableError("a network with several outputs that are not classes has no scores.")
        found = [_normalized(one) if schema.classes else one for one in found]
        sample.add(numbers, truth, *found)
    if first is None:
        raise TableError(f"no row of {source.path} can be scored: {'; '.join(rows.notes())}")
    notes = rows.notes()
    numbers, truth, predicted, *others = sample.arrays()
    if sample.seen > len(truth):
        notes.append(f"The scores are those of a random sample of {len(truth):,} rows.")
    if schema.rows:
        trivial = trivial_outputs(schema)
    else:
        shares = np.bincount(truth, minlength=len(schema.classes)) if schema.classes else None
        trivial = truth.mean() if shares is None else shares / len(truth)
        what = "shares of the classes" if schema.classes else "mean of the target"
        notes.append(
            f"The model file does not contain the {what} in training. The baseline "
            f"{TRIVIAL[schema.task]!r} uses this table."
        )
    baselines = {TRIVIAL[schema.task]: np.broadcast_to(trivial, predicted.shape)}
    if others:
        baselines[LINEAR[schema.task]] = others[0]
    evaluation = evaluate(schema.classes, truth, predicted, baselines, seed)
    return TestTable(evaluation, numbers, truth, predicted, notes, first)


def check_target(schema: Schema, source: Source) -> None:
    """Raise TableError if the table lacks the target or an input."""
    check_inputs(schema, source.columns)
    if schema.target not in source.columns:
        raise TableError(
            f"{source.path} lacks the target {schema.target!r}, so there is nothing to compare the "
            f"predictions with. Its columns are {listed(map(repr, source.columns))}."
        )


def values_at(source: Source, numbers: Array, names: list[str]) -> dict[int, list[str]]:
    """Return the values of some rows as text; rows are counted from 1."""
    wanted, found, start = set(numbers.tolist()), {}, 1
    for frame in source.batches(ROWS_AT_ONCE):
        for number in sorted(wanted):
            if start <= number < start + len(frame):
                row = frame.select(pl.col(names).cast(pl.String)).row(number - start)
                found[number] = ["" if value is None else value for value in row]
        start += len(frame)
    return found


@dataclass
class _Rows:
    """The rows of a table that can be scored, and counts of those that cannot."""

    schema: Schema
    imputes: bool
    without_target: int = 0
    empty: int = 0
    unknown: dict[str, int] = field(default_factory=dict)

    def usable(self, frame: pl.DataFrame, start: int) -> tuple[pl.DataFrame, Array, Array]:
        """Return the inputs, the targets (numbers, or indices of classes) and the row numbers."""
        X, column = features(self.schema, frame, start), self.schema.target
        target = clean(frame.select(column))[column]
        present = target.is_not_null().to_numpy()
        predicted = ~empty_rows(X) if self.imputes else complete_rows(X)
        self.without_target += int((~present).sum())
        self.empty += int((present & ~predicted).sum())
        if not self.schema.classes:
            kept, (y, _) = present & predicted, labels(self.schema, frame, start)
            return X.filter(kept), y[predicted[present]], start + 1 + np.flatnonzero(kept)
        codes = self._codes(target)
        for text in to_text(target.filter(present & (codes < 0))):
            self.unknown[text] = self.unknown.get(text, 0) + 1
        kept = present & predicted & (codes >= 0)
        return X.filter(kept), codes[kept], start + 1 + np.flatnonzero(kept)

    def _codes(self, target: pl.Series) -> Array:
        """Return the index of the class of each row, or -1."""
        classes = self.schema.classes
        codes = {str(label): k for k, label in enumerate(classes)}
        if not isinstance(classes[0], str):  # so that 1, 1.0 and "1" are the same class
            numbers = to_numbers(target.to_frame()).get(target.name)
            target = to_text(numbers) if numbers is not None else target.cast(pl.String)
        found = to_text(target).replace_strict(codes, default=-1, return_dtype=pl.Int64)
        return found.fill_null(-1).to_numpy()

    def notes(self) -> list[str]:
        names = [f"{name!r} ({count})" for name, count in self.unknown.items()]
        count = sum(self.unknown.values())
        sentences = {
            f"Ignored {counted(self.without_target, 'row')} without a value for "
            f"{self.schema.target!r}.": self.without_target,
            f"Ignored {counted(self.empty, 'row')} for which the model makes no "
            "prediction.": self.empty,
            f"Ignored {counted(count, 'row')} of classes that the model does not know and never "
            f"predicts: {listed(names)}.": count,
        }
        return [sentence for sentence, applies in sentences.items() if applies]


def _normalized(P: Array) -> Array:
    """Return probabilities that sum to one; logistic outputs of a bare network need not."""
    P = np.asarray(P, dtype=np.float64)
    total = P.sum(axis=1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[1]), where=total > 0)
