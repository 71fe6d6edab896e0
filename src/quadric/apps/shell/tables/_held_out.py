"""Evaluation of a model on test rows: a table that contains the target, or held-out rows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._evaluation import (
    LINEAR,
    MODEL,
    TRIVIAL,
    Evaluation,
    LinearBaseline,
    evaluate,
    main_score,
    trivial_outputs,
)
from quadric.apps.shell.tables._preprocessing import (
    check_inputs,
    clean,
    features,
    labels,
    predictable_rows,
    to_numbers,
    to_text,
)
from quadric.apps.shell.tables._saved_model import TableNetwork
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._source import Source
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted, listed

ROWS_AT_ONCE = 20_000
MOST_NUMBERS = 2**23  # maximum number of predicted numbers kept per model or baseline


class Sample:
    """A random sample of rows of several arrays in their order, collected batch by batch.

    Parameters
    ----------
    most : int
        The maximum number of rows. If there are no more, the sample contains all of them.
    seed : int
    """

    def __init__(self, most: int, seed: int = 0) -> None:
        self.most, self.seen = most, 0
        self._rng = np.random.default_rng(seed)
        self._batches: list[list[Array]] = []

    def add(self, *arrays: Array) -> None:
        """Add rows; every array has one entry per row."""
        self.seen += len(arrays[0])
        self._batches.append([self._rng.random(len(arrays[0])), *arrays])
        if sum(len(batch[0]) for batch in self._batches) > 2 * self.most:
            self._batches = [self._chosen()]

    def arrays(self) -> list[Array]:
        """Return the rows of the sample; raise IndexError if there are none."""
        return self._chosen()[1:]

    def notes(self) -> list[str]:
        """Return a sentence about rows that are not in the sample, if there are any."""
        if self.seen <= self.most:
            return []
        return [f"The scores are those of a random sample of {self.most:,} rows."]

    def _chosen(self) -> list[Array]:
        """Return the rows with the smallest random keys, which come first."""
        keys, *arrays = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        if len(keys) <= self.most:
            return [keys, *arrays]
        rows = np.sort(np.argpartition(keys, self.most)[: self.most])
        return [keys[rows], *(array[rows] for array in arrays)]


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
    folds : list of dict
        The accuracy or R² of the model and of each baseline in each fold of a cross-validation.
    """

    __test__ = False  # pytest must not collect this class

    evaluation: Evaluation
    numbers: Array
    truth: Array
    predicted: Array
    notes: list[str] = field(default_factory=list)
    rows: tuple[pl.DataFrame, Array] | None = None
    folds: list[dict[str, float]] = field(default_factory=list)


class HeldOut:
    """Held-out rows and their predictions, collected batch by batch.

    To limit memory, a random sample is kept if there are more than MOST_NUMBERS predicted numbers.

    Parameters
    ----------
    schema : Schema
    seed : int
        Seed of the sample and of the bootstrap.
    """

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema, self.seed = schema, seed
        self.sample = _new_sample(schema, seed)

    def codes(self, y: Array) -> Array:
        """Return the indices of classes; numbers are returned unchanged."""
        return np.searchsorted(np.array(self.schema.classes), y) if self.schema.classes else y

    def add(
        self, numbers: Array, y: Array, X: Any, models: tuple[Any, LinearBaseline, Any], fold: int
    ) -> None:
        """Predict rows.

        Parameters
        ----------
        numbers : array of shape (n_rows,)
            The numbers of the rows in the table, counted from 1.
        y : array of shape (n_rows,)
            The true classes, or numbers.
        X : DataFrame
            The inputs.
        models : (Pipeline, LinearBaseline, array or float)
            The model and the two baselines: a linear one and a constant one.
        fold : int
        """
        model, linear, trivial = models
        Z = model[:-1].transform(X)
        last = model[-1]
        ours = last.predict_proba(Z) if self.schema.classes else last.predict(Z)
        constant = np.broadcast_to(trivial, ours.shape)
        folds = np.full(len(y), fold)
        self.sample.add(numbers, self.codes(y), folds, ours, constant, linear.outputs(Z))

    def evaluate(self) -> TestTable | None:
        """Score the rows of all folds together, and each of several folds; None without rows."""
        if not self.sample.seen:
            return None
        classes, task = self.schema.classes, self.schema.task
        numbers, truth, folds, *predicted = self.sample.arrays()
        by_name = dict(zip((MODEL, TRIVIAL[task], LINEAR[task]), predicted, strict=True))
        several = [folds == fold for fold in np.unique(folds)]
        scores = [
            {name: main_score(classes, truth[rows], P[rows]) for name, P in by_name.items()}
            for rows in several
            if len(several) > 1
        ]
        model = by_name.pop(MODEL)
        evaluation = evaluate(classes, truth, model, by_name, self.seed)
        notes = self.sample.notes()
        return TestTable(evaluation, numbers, truth, model, notes, folds=scores)


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
    sample, rows = _new_sample(schema, seed), _Rows(schema, not isinstance(model, TableNetwork))
    start, first = 0, None
    for frame in source.batches(ROWS_AT_ONCE):
        X, truth, numbers = rows.usable(frame, start)
        start += len(frame)
        if not len(truth):
            continue
        first = first or (X, np.array(schema.classes)[truth] if schema.classes else truth)
        try:
            predicted = [model.predict_proba(X) if schema.classes else model.predict(X)]
            if linear is not None:
                predicted.append(linear.outputs(model[:-1].transform(X)))
        except ValueError as error:  # numbers too large for the model
            raise TableError(" ".join(str(error).split())) from None
        if predicted[0].ndim > 1 and not schema.classes:
            raise TableError("a network with several outputs that are not classes has no scores.")
        sample.add(numbers, truth, *(_normalized(P) if schema.classes else P for P in predicted))
    if first is None:
        raise TableError(f"no row of {source.path} can be scored: {'; '.join(rows.notes())}")
    notes = rows.notes() + sample.notes()
    numbers, truth, ours, *others = sample.arrays()
    name = TRIVIAL[schema.task]
    if not schema.rows:
        what = "shares of the classes" if schema.classes else "mean of the target"
        notes.append(
            f"The model file does not contain the {what} in training. The baseline {name!r} uses "
            "this table."
        )
    trivial = trivial_outputs(schema, None if schema.rows else truth)
    baselines = {name: np.broadcast_to(trivial, ours.shape)}
    if others:
        baselines[LINEAR[schema.task]] = others[0]
    evaluation = evaluate(schema.classes, truth, ours, baselines, seed)
    return TestTable(evaluation, numbers, truth, ours, notes, first)


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
    wanted, values, start = set(numbers.tolist()), {}, 1
    for frame in source.batches(ROWS_AT_ONCE):
        for number in sorted(wanted):
            if start <= number < start + len(frame):
                row = frame.select(pl.col(names).cast(pl.String)).row(number - start)
                values[number] = ["" if value is None else value for value in row]
        start += len(frame)
    return values


@dataclass
class _Rows:
    """The rows of a table that can be scored, and counts of those that cannot."""

    schema: Schema
    imputes: bool
    without_target: int = 0
    empty: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

    def usable(self, frame: pl.DataFrame, start: int) -> tuple[pl.DataFrame, Array, Array]:
        """Return the inputs, the targets (numbers, or indices of classes) and the row numbers."""
        X, column = features(self.schema, frame, start), self.schema.target
        target = clean(frame.select(column))[column]
        present = target.is_not_null().to_numpy()
        predicted = predictable_rows(X, imputes=self.imputes)
        self.without_target += int((~present).sum())
        self.empty += int((present & ~predicted).sum())
        if not self.schema.classes:
            kept, (y, _) = present & predicted, labels(self.schema, frame, start)
            return X.filter(kept), y[predicted[present]], start + 1 + np.flatnonzero(kept)
        codes = self._codes(target)
        self.unknown.update(to_text(target.filter(present & (codes < 0))))
        kept = present & predicted & (codes >= 0)
        return X.filter(kept), codes[kept], start + 1 + np.flatnonzero(kept)

    def _codes(self, target: pl.Series) -> Array:
        """Return the index of the class of each row, or -1."""
        classes = self.schema.classes
        codes = {str(label): k for k, label in enumerate(classes)}
        if not isinstance(classes[0], str):  # so that 1, 1.0 and "1" are the same class
            numbers = to_numbers(target.to_frame()).get(target.name)
            target = to_text(numbers) if numbers is not None else target.cast(pl.String)
        known = to_text(target).replace_strict(codes, default=-1, return_dtype=pl.Int64)
        return known.fill_null(-1).to_numpy()

    def notes(self) -> list[str]:
        unknown = [f"{name!r} ({count})" for name, count in self.unknown.items()]
        sentences = {
            f"Ignored {counted(self.without_target, 'row')} without a value for "
            f"{self.schema.target!r}.": self.without_target,
            f"Ignored {counted(self.empty, 'row')} for which the model makes no "
            "prediction.": self.empty,
            f"Ignored {counted(self.unknown.total(), 'row')} of classes that the model does not "
            f"know and never predicts: {listed(unknown)}.": unknown,
        }
        return [sentence for sentence, applies in sentences.items() if applies]


def _normalized(P: Array) -> Array:
    """Return probabilities that sum to one; logistic outputs of a bare network need not."""
    P = np.asarray(P, dtype=np.float64)
    total = P.sum(axis=1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[1]), where=total > 0)


def _new_sample(schema: Schema, seed: int) -> Sample:
    """Return a sample of at most MOST_NUMBERS predicted numbers."""
    return Sample(MOST_NUMBERS // max(1, len(schema.classes)), seed)
