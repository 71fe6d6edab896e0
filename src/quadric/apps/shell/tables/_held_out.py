"""A model on test rows: a table that contains the target, or held-out rows; and remarks about it.

Remarks are what a careful colleague would say about a trained model, in a few plain sentences. Each
check returns remarks with a rank. `most_important` chooses the sentences that are shown.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._cleaning import cleaned
from quadric.apps.shell.tables._evaluation import (
    LINEAR,
    METRIC,
    MODEL,
    TRIVIAL,
    Evaluation,
    LinearBaseline,
    Score,
    evaluate,
    finite_or_none,
    main_score,
    shown,
    trivial_outputs,
)
from quadric.apps.shell.tables._options import applying
from quadric.apps.shell.tables._saved_model import TableNetwork
from quadric.apps.shell.tables._schema import (
    Schema,
    check_inputs,
    features,
    labels,
    predictable_rows,
    to_text,
)
from quadric.apps.shell.tables._source import ROWS_AT_ONCE, Source
from quadric.apps.shell.tables._threshold import (
    CheapestThreshold,
    cheapest_threshold,
    parse_costs,
)
from quadric.checks import Array
from quadric.errors import TableError
from quadric.models import NumberForm, numbers
from quadric.utils import counted, listed

MOST_NUMBERS = 2**23  # maximum number of predicted numbers kept per model or baseline
MOST_REMARKS = 3
FEW_ROWS = 100
FEW_OF_A_CLASS = 10
UNRELATED = 0.05  # smallest p-value of a score that may be due to chance
MISCALIBRATED = 0.1, 0.01  # a larger calibration error is remarked on, with a smaller p-value
BETTER = 0.95  # a smaller share of the loss of a single layer is better than it
MOST_SERIOUS = ("total", "leak")  # findings that come first
MANY_DUPLICATES = 0.02  # share of the test rows

# the order of remarks: the most serious come first
Rank = IntEnum("Rank", "BASELINE COLUMNS LEAK CALIBRATION CLASSES FEW_ROWS")
Remark = tuple[Rank, str]


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
    rival : float or None
        The accuracy or R² of another model on the same rows; see `Trained.equation`.
    """

    __test__ = False  # pytest must not collect this class

    evaluation: Evaluation
    numbers: Array
    truth: Array
    predicted: Array
    notes: list[str] = field(default_factory=list)
    rows: tuple[pl.DataFrame, Array] | None = None
    folds: list[dict[str, float]] = field(default_factory=list)
    rival: float | None = None

    def remarks(self, *, balanced: bool, selection: Sequence[Mapping[str, Any]] = ()) -> list[str]:
        """Return the most important remarks on the scores; see `remarks_on_scores`."""
        found = remarks_on_scores(self.evaluation, balanced=balanced, selection=selection)
        return most_important(found)

    def cheapest_threshold(self, costs: Sequence[str]) -> CheapestThreshold:
        """Return the threshold with the lowest cost; `costs` are texts such as 'fraud=20'."""
        labels = [line["class"] for line in self.evaluation.classes]
        return cheapest_threshold(self.truth, self.predicted, labels, parse_costs(costs, labels))


class ScoredRows:
    """Rows with a target and predictions for them, collected batch by batch.

    To limit memory, a random sample of the rows, in their order, is kept if there are more than
    MOST_NUMBERS predicted numbers.

    Parameters
    ----------
    schema : Schema
    seed : int
        Seed of the sample and of the bootstrap.

    Attributes
    ----------
    constants : list
        The outputs of the trivial baseline in each fold; see `trivial_outputs`. If it is empty,
        they follow from the training table or, if that is unknown, from the collected rows.
    most, seen : int
        The maximum number of rows in the sample, and the number of rows that were added.
    """

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema, self.seed = schema, seed
        self.most, self.seen = MOST_NUMBERS // max(1, len(schema.classes)), 0
        self.constants: list[Any] = []
        self._rng = np.random.default_rng(seed)
        self._batches: list[list[Array]] = []

    def codes(self, y: Array) -> Array:
        """Return the indices of classes; numbers are returned unchanged."""
        return np.searchsorted(np.array(self.schema.classes), y) if self.schema.classes else y

    def add(self, numbers: Array, truth: Array, outputs: Sequence[Array], fold: int = 0) -> None:
        """Add rows and what the models predict for them.

        Parameters
        ----------
        numbers : array of shape (n_rows,)
            The numbers of the rows in the table, counted from 1.
        truth : array of shape (n_rows,)
            The indices of the true classes, or the true numbers.
        outputs : sequence of array
            The outputs of the model and, if there are any, of the linear baseline and of a rival.
        fold : int
            The fold in which these rows are held out, counted from 0.
        """
        n = len(truth)
        self.seen += n
        self._batches.append([self._rng.random(n), numbers, truth, np.full(n, fold), *outputs])
        if sum(len(batch[0]) for batch in self._batches) > 2 * self.most:
            self._batches = [self._chosen()]

    def _chosen(self) -> list[Array]:
        """Return the rows with the smallest random keys, which come first."""
        arrays = [np.concatenate(parts) for parts in zip(*self._batches, strict=True)]
        if len(arrays[0]) <= self.most:
            return arrays
        rows = np.sort(np.argpartition(arrays[0], self.most)[: self.most])
        return [array[rows] for array in arrays]

    def evaluate(
        self, notes: Sequence[str] = (), rows: tuple[pl.DataFrame, Array] | None = None
    ) -> TestTable:
        """Score the rows of all folds together, and each of several folds.

        If rows were predicted several times, the result has the first prediction of each.
        """
        classes, task = self.schema.classes, self.schema.task
        _, numbers, truth, folds, model, *others = self._chosen()
        linear, rival = others[:1], [main_score(classes, truth, P) for P in others[1:]]
        trivial = trivial_outputs(self.schema, None if self.schema.rows else truth)
        constants = np.array(self.constants or [trivial])
        names = (TRIVIAL[task], LINEAR[task])
        baselines = dict(zip(names, [constants[folds], *linear], strict=False))
        several = [folds == fold for fold in np.unique(folds)]
        scores = [
            {
                name: main_score(classes, truth[inside], P[inside])
                for name, P in {MODEL: model, **baselines}.items()
            }
            for inside in several
            if len(several) > 1
        ]
        if self.seen > self.most:
            notes = [*notes, f"The scores are those of a random sample of {self.most:,} rows."]
        evaluation = evaluate(classes, truth, model, baselines, self.seed, numbers)
        _, first = np.unique(numbers, return_index=True)
        return TestTable(
            evaluation,
            numbers[first],
            truth[first],
            model[first],
            list(notes),
            rows,
            scores,
            *map(finite_or_none, rival),
        )


def outputs_of(
    model: Any, schema: Schema, X: Any, linear: LinearBaseline | None = None, rival: Any = None
) -> list[Array]:
    """Return what the model and, if given, the linear baseline and the rival predict.

    These are probabilities or numbers. A rival needs a linear baseline, which precedes it.
    """
    outputs = [model.predict_proba(X) if schema.classes else model.predict(X)]
    if linear is not None:
        outputs.append(linear.outputs(model[:-1].transform(X)))
    return outputs if rival is None else [*outputs, *outputs_of(rival, schema, X)]


def evaluate_table(
    model: Any,
    schema: Schema,
    source: Source,
    *,
    linear: LinearBaseline | None = None,
    rival: Any = None,
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
    rival : estimator, optional
        Another model, whose score is `rival` of the result. It needs a linear baseline.
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
    collected, rows = ScoredRows(schema, seed), _Rows(schema, not isinstance(model, TableNetwork))
    start, first = 0, None
    for frame in source.batches(ROWS_AT_ONCE):
        X, truth, numbers = rows.usable(frame, start)
        start += len(frame)
        if not len(truth):
            continue
        first = first or (X, np.array(schema.classes)[truth] if schema.classes else truth)
        try:
            outputs = outputs_of(model, schema, X, linear, rival)
        except ValueError as error:  # numbers too large for the model
            raise TableError(" ".join(str(error).split())) from None
        if outputs[0].ndim > 1 and not schema.classes:
            raise TableError("a network with several outputs that are not classes has no scores.")
        collected.add(
            numbers, truth, list(map(_normalized, outputs)) if schema.classes else outputs
        )
    if first is None:
        raise TableError(f"no row of {source.path} can be scored: {'; '.join(rows.notes())}")
    tested = collected.evaluate(rows.notes(), first)
    if not schema.rows:
        what = "shares of the classes" if schema.classes else "mean of the target"
        tested.notes.append(
            f"The model file does not contain the {what} in training. The baseline "
            f"{TRIVIAL[schema.task]!r} uses this table."
        )
    return tested


def check_target(schema: Schema, source: Source) -> None:
    """Raise TableError if the table lacks the target or an input."""
    check_inputs(schema, source.columns)
    if schema.target not in source.columns:
        raise TableError(
            f"{source.path} lacks the target {schema.target!r}, so there is nothing to compare the "
            f"predictions with. Its columns are {listed(map(repr, source.columns))}."
        )


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
        schema = self.schema
        target = to_text(cleaned(frame[column], schema.target_missing, schema.target_form))
        present = np.array([text is not None for text in target], dtype=bool)
        predicted = predictable_rows(X, imputes=self.imputes)
        self.without_target += int((~present).sum())
        self.empty += int((present & ~predicted).sum())
        kept, values = present & predicted, np.zeros(len(frame))
        if self.schema.classes:
            values = self._codes(target)
            unknown = np.flatnonzero(present & (values < 0))
            self.unknown.update(target[row] or "" for row in unknown)
            kept &= values >= 0
        else:
            values[present], _ = labels(self.schema, frame, start)
        return X.filter(kept), values[kept], start + 1 + np.flatnonzero(kept)

    def _codes(self, target: Sequence[str | None]) -> Array:
        """Return the index of the class of each row, or -1."""
        classes = self.schema.classes
        keys: Sequence[Any] = target
        if not isinstance(classes[0], str):  # so that 1, 1.0 and "1" are the same class
            keys = numbers(target, NumberForm(*self.schema.target_form)).tolist()
        codes = {label: k for k, label in enumerate(classes)}
        return np.array([codes.get(key, -1) for key in keys])

    def notes(self) -> list[str]:
        unknown = [f"{name!r} ({count})" for name, count in self.unknown.items()]
        return applying(
            {
                f"Ignored {counted(self.without_target, 'row')} without a value for "
                f"{self.schema.target!r}.": self.without_target,
                f"Ignored {counted(self.empty, 'row')} for which the model makes no "
                "prediction.": self.empty,
                f"Ignored {counted(self.unknown.total(), 'row')} of classes that the model does "
                f"not know and never predicts: {listed(unknown)}.": unknown,
            }
        )


def _normalized(P: Array) -> Array:
    """Return probabilities that sum to one; logistic outputs of a bare network need not."""
    P = np.asarray(P, dtype=np.float64)
    total = P.sum(axis=1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[1]), where=total > 0)


# ------------------------------------------------------------------------------- remarks


def most_important(remarks: Iterable[Remark], most: int = MOST_REMARKS) -> list[str]:
    """Return the sentences about columns, and the others of the highest ranks, without duplicates.

    >>> most_important([(Rank.FEW_ROWS, "c"), (Rank.LEAK, "b")], most=1)
    ['b']
    """
    chosen: dict[str, Rank] = {}
    for rank, text in sorted(remarks, key=lambda remark: remark[0]):
        if rank == Rank.COLUMNS or sum(one != Rank.COLUMNS for one in chosen.values()) < most:
            chosen.setdefault(text, rank)
    return list(chosen)


def remarks_on_scores(
    evaluation: Evaluation,
    *,
    balanced: bool = False,
    selection: Sequence[Mapping[str, Any]] = (),
) -> list[Remark]:
    """Compare the model with the baselines, and look for bad probabilities and missing classes.

    With `balanced` class weights, the balanced accuracy is compared instead of the accuracy. A
    linear baseline is worth a remark if it is better than the model by a standard error.
    `selection` lists the shapes that were tried, as in `QuadraticClassifier.selection_`.
    """
    name = "balanced accuracy" if balanced else METRIC[evaluation.task]
    score, linear = evaluation.scores[name], LINEAR[evaluation.task]
    hopeless = _hidden_shapes_fail(selection)
    remarks = _against_trivial(evaluation, name, hopeless)
    remarks += _on_calibration(evaluation, balanced=balanced)
    theirs, ours = shown(score.baselines.get(linear)), shown(score.value)
    if _advantage(score, linear) <= -1 and theirs != ours:
        text = f"{linear.capitalize()} is better than this model: {name} {theirs} against {ours}."
        remarks.append((Rank.BASELINE, text))
    never = [
        f"{line['class']!r} ({counted(line['rows'], 'test row')})"
        for line in evaluation.classes
        if line["rows"] and not line["predicted"]
    ]
    if never:
        weights = "" if balanced else " Try --class-weight balanced, or collect more rows."
        remarks.append((Rank.CLASSES, f"Never predicted: {listed(never)}.{weights}"))
    return remarks


def _hidden_shapes_fail(selection: Sequence[Mapping[str, Any]]) -> bool:
    """Whether networks with hidden neurons were tried, and none is better than a single layer."""
    losses: dict[bool, list[float]] = {True: [], False: []}
    for tried in selection:
        if "loss" in tried:
            losses["hidden" in tried["shape"]].append(tried["loss"])
    return bool(losses[True]) and min(losses[True]) > BETTER * min(losses[False], default=0.0)


def _on_calibration(evaluation: Evaluation, *, balanced: bool) -> list[Remark]:
    """Remark on probabilities that are further off than chance explains."""
    score, (least, chance) = evaluation.scores.get("calibration error"), MISCALIBRATED
    if score is None or score.value is None or score.value <= least:
        return []
    if evaluation.p_values["calibrated"] > chance:
        return []
    excess = sum(
        one["rows"] * (one["probability"] - one["accuracy"]) for one in evaluation.calibration
    )
    share = excess / evaluation.rows / score.value  # 1 if all bins are too confident
    how = " (too high)" if share > 0.5 else " (too low)" if share < -0.5 else ""
    advice = "use more rows, or CalibratedClassifierCV in Python"
    if balanced:
        advice = "with class weights they only rank the rows; omit --class-weight to use them"
    text = f"Its probabilities are off by {score.value:.2f} on average{how}: {advice}."
    return [(Rank.CALIBRATION, text)]


def _against_trivial(evaluation: Evaluation, name: str, hopeless: bool) -> list[Remark]:
    """Remark on a model that is not better than the trivial baseline by two standard errors.

    The inputs may be unrelated to the target if networks are `hopeless` and if permuted targets
    often have as good a score.
    """
    score, trivial = evaluation.scores[name], TRIVIAL[evaluation.task]
    if _advantage(score, trivial) > 2:
        return []
    constant = "the most frequent class" if evaluation.classes else "the mean"
    text = (
        f"The model is not clearly better than always predicting {constant}: {name} "
        f"{shown(score.value)} against {shown(score.baselines[trivial])}"
    )
    loss = evaluation.scores.get("log-loss")
    if loss is not None and _advantage(loss, trivial) < -2:  # a lower loss is better
        area = shown(evaluation.scores["ROC AUC"].value)
        return [(Rank.CLASSES, f"{text}. Its probabilities are better (ROC AUC {area}).")]
    is_chance = evaluation.p_values.get("unrelated", 0.0) > UNRELATED
    why = " The inputs may be unrelated to the target." if hopeless and is_chance else ""
    return [(Rank.BASELINE, f"{text}.{why}")]


def _advantage(score: Score, baseline: str) -> float:
    """Return the difference from a baseline in standard errors."""
    other, error = score.baselines.get(baseline), score.differences.get(baseline)
    if score.value is None or other is None or error is None:
        return float("inf")  # not defined, so there is nothing to remark on
    difference = score.value - other
    return difference / error if error else float(np.sign(difference)) * float("inf")


def remarks_on_table(
    schema: Schema, *, may_use_cv: bool = False, at_random: bool = False
) -> list[Remark]:
    """Return the findings about the columns, and look for too few rows, in total and of a class.

    `at_random` says whether the rows to test on are chosen at random, although they may have dates.
    """
    rows = schema.rows - schema.missing_targets
    advice = " With --cv 5, every row is used for testing." if may_use_cv else ""
    rare = [
        f"{label!r} ({count})"
        for label, count in zip(schema.classes, schema.class_counts, strict=True)
        if count < FEW_OF_A_CLASS
    ]
    few = applying(
        {
            f"There are only {counted(rows, 'row')}, so the scores are uncertain.{advice}": (
                rows < FEW_ROWS
            ),
            f"Classes with too few rows to learn from: {listed(rare, 5)}.": rare,
        }
    )
    dated = [column.name for column in schema.columns if "days" in column.parts][:1]
    dated_rows = applying(
        {
            f"The rows have dates ({name!r}), but those to test on are chosen at random. For a "
            f"model that predicts later rows, use --time {shlex.quote(name)}.": at_random
            for name in dated
        }
    )
    findings = sorted(schema.findings, key=lambda one: one.kind not in MOST_SERIOUS)
    remarks = [(Rank.COLUMNS, finding.sentence) for finding in findings]
    remarks += [(Rank.COLUMNS, text) for text in dated_rows]
    return remarks + [(Rank.FEW_ROWS, text) for text in few]


def remarks_on_duplicates(train: tuple[Any, Array], test: tuple[Any, Array]) -> list[Remark]:
    """Look for test rows that also occur, with the same target, among the training rows."""
    seen, tested = (
        X.with_columns(pl.Series("", y)).hash_rows().to_numpy() for X, y in (train, test)
    )
    count = int(np.isin(tested, seen).sum())
    if count < max(3, MANY_DUPLICATES * len(tested)):
        return []
    return [
        (
            Rank.LEAK,
            f"{count:,} of {counted(len(tested), 'test row')} also occur in the training data, "
            "with the same target, so the scores are too optimistic if new data does not repeat "
            "old rows. Remove the duplicates first.",
        )
    ]
