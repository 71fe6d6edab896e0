"""Remarks: what a careful colleague would say about a trained model, in a few plain sentences.

Each check returns remarks with a rank. `most_important` chooses the sentences that are shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._evaluation import (
    LINEAR,
    METRIC,
    TRIVIAL,
    Evaluation,
    Score,
    shown,
)
from quadric.apps.shell.tables._schema import Schema
from quadric.checks import Array
from quadric.utils import counted, listed

MOST_REMARKS = 3
FEW_ROWS = 100
FEW_OF_A_CLASS = 10
MANY_DUPLICATES = 0.02  # share of the test rows


# the order of remarks: the most serious come first
Rank = IntEnum("Rank", "BASELINE COLUMNS LEAK SHAPE CLASSES FEW_ROWS LAST")


@dataclass(frozen=True)
class Remark:
    """A sentence for the user, and its importance."""

    rank: Rank
    text: str


def most_important(remarks: Iterable[Remark], most: int = MOST_REMARKS) -> list[str]:
    """Return the sentences of the highest ranks, without duplicates.

    >>> most_important([Remark(Rank.FEW_ROWS, "c"), Remark(Rank.LEAK, "b")], most=1)
    ['b']
    """
    ordered = sorted(remarks, key=lambda remark: remark.rank)
    return list(dict.fromkeys(remark.text for remark in ordered))[:most]


def remark_on_shape(other: Any, score: float, ours: float, metric: str) -> Remark:
    """Report what the given shape costs, compared with an estimator that chose its shape."""
    chosen = [tried["shape"] for tried in other.selection_ if tried.get("chosen")]
    shape = chosen[0] if chosen else "another shape"
    both = f"{metric} is {ours:.3f}, and {score:.3f} for the best shape ({shape})"
    if score <= ours:
        return Remark(Rank.LAST, f"No hidden layer is needed: the {both}.")
    return Remark(Rank.SHAPE, f"Without hidden layers, the {both}. Omit --hidden to use that.")


def remarks_on_scores(evaluation: Evaluation, *, balanced: bool = False) -> list[Remark]:
    """Compare the model with the baselines, and look for classes that it never predicts.

    With `balanced` class weights, the balanced accuracy is compared instead of the accuracy.
    """
    name = "balanced accuracy" if balanced else METRIC[evaluation.task]
    remarks = [
        *_against_trivial(evaluation, name),
        *_against_linear(evaluation.scores[name], LINEAR[evaluation.task], name),
    ]
    never = [
        f"{line['class']!r} ({counted(line['rows'], 'test row')})"
        for line in evaluation.classes
        if line["rows"] and not line["predicted"]
    ]
    if never:
        weights = "" if balanced else "Try --class-weight balanced, or collect more rows."
        text = f"Never predicted: {listed(never)}. {weights}".rstrip()
        remarks.append(Remark(Rank.CLASSES, text))
    return remarks


def _against_trivial(evaluation: Evaluation, name: str) -> list[Remark]:
    """Remark on a model that is not better than the trivial baseline by two standard errors."""
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
        return [Remark(Rank.CLASSES, f"{text}. Its probabilities are better (ROC AUC {area}).")]
    return [Remark(Rank.BASELINE, f"{text}. The inputs may be unrelated to the target.")]


def _against_linear(score: Score, linear: str, name: str) -> list[Remark]:
    """Remark on a linear baseline that is better than the model by a standard error."""
    if linear not in score.baselines or _advantage(score, linear) > -1:
        return []
    theirs, ours = shown(score.baselines[linear]), shown(score.value)
    if theirs == ours:
        return []
    values = f"{name} {theirs} against {ours}"
    return [Remark(Rank.BASELINE, f"{linear.capitalize()} is better than this model: {values}.")]


def _advantage(score: Score, baseline: str) -> float:
    """Return the difference from a baseline in standard errors."""
    other, error = score.baselines[baseline], score.differences[baseline]
    if score.value is None or other is None or error is None:
        return float("inf")  # not defined, so there is nothing to remark on
    difference = score.value - other
    return difference / error if error else float(np.sign(difference)) * float("inf")


def remarks_on_columns(schema: Schema) -> list[Remark]:
    """Return the findings about the table, such as likely identifiers and decimal commas."""
    return [Remark(Rank.COLUMNS, finding.sentence) for finding in schema.findings]


def remarks_on_rows(schema: Schema, *, may_use_cv: bool = False) -> list[Remark]:
    """Look for too few rows, in total and of a class."""
    rows, texts = schema.rows - schema.missing_targets, []
    if rows < FEW_ROWS:
        advice = " With --cv 5, every row is used for testing." if may_use_cv else ""
        texts.append(f"There are only {counted(rows, 'row')}, so the scores are uncertain.{advice}")
    rare = [
        f"{label!r} ({count})"
        for label, count in zip(schema.classes, schema.class_counts, strict=True)
        if count < FEW_OF_A_CLASS
    ]
    if rare:
        texts.append(f"Classes with too few rows to learn from: {listed(rare, 5)}.")
    return [Remark(Rank.FEW_ROWS, text) for text in texts]


def remarks_on_duplicates(train: tuple[Any, Array], test: tuple[Any, Array]) -> list[Remark]:
    """Look for test rows that also occur, with the same target, among the training rows."""
    seen = np.unique(_row_hashes(*train))
    count = int(np.isin(_row_hashes(*test), seen).sum())
    total = len(test[1])
    if count < max(3, MANY_DUPLICATES * total):
        return []
    return [
        Remark(
            Rank.LEAK,
            f"{count:,} of {counted(total, 'test row')} also occur in the training data, with the "
            "same target, so the scores are too optimistic if new data does not repeat old rows. "
            "Remove the duplicates first.",
        )
    ]


def _row_hashes(X: pl.DataFrame, y: Array) -> Array:
    return X.with_columns(pl.Series("", y)).hash_rows().to_numpy()
