"""Evaluation of predictions: scores with bootstrap intervals, next to those of baselines."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quadric.apps.shell.tables._metrics import (
    MOST_CONFUSED,
    ClassMetrics,
    Metrics,
    NumberMetrics,
    per_class,
)
from quadric.checks import Array
from quadric.utils import visible

MODEL = "this model"  # its name in tables and reports, next to those of the baselines
RESAMPLES = 500
MOST_RESAMPLED = 10_000  # rows in a resample
LEVEL = 0.95


@dataclass(frozen=True)
class Score:
    """One score of a model.

    Attributes
    ----------
    value : float or None
        None if the score is not defined, such as the ROC AUC if all rows are of one class.
    low, high : float or None
        The ends of the 95% bootstrap interval.
    baselines : dict
        The score of each baseline.
    differences : dict
        The standard error of the difference from each baseline on the same rows.
    """

    value: float | None
    low: float | None
    high: float | None
    baselines: dict[str, float | None]
    differences: dict[str, float | None]


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model and of baselines on the same rows.

    Attributes
    ----------
    task : {'classification', 'regression'}
    rows : int
        The number of rows.
    scores : dict of Score
        By name. For classification: accuracy, balanced accuracy, macro F1, ROC AUC (one class
        against the rest), log-loss, Brier score and the expected calibration error (10 bins).
        For regression: R², RMSE, MAE and the median absolute error.
    classes : list of dict
        For each class: its rows, how often it is predicted, precision, recall and F1.
    confusion : list of list of int
        The confusion matrix of a classifier with up to 200 classes; one row per true class.
    calibration : list of dict
        For bins of the probability of the predicted class: its mean, the accuracy and the rows.
    """

    task: str
    rows: int
    scores: dict[str, Score]
    classes: list[dict[str, Any]]
    confusion: list[list[int]]
    calibration: list[dict[str, float]]

    @property
    def baselines(self) -> list[str]:
        """The names of the baselines."""
        return list(next(iter(self.scores.values())).baselines)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON values, without the parts that do not apply."""
        return {name: value for name, value in asdict(self).items() if value != []}

    def to_json(self) -> str:
        """Return the evaluation as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def score_table(self) -> list[list[str]]:
        """Return the scores as text: a header, then one line per score."""
        header = ["", MODEL, f"{LEVEL:.0%} interval", *self.baselines]
        lines = [
            [name, shown(one.value), _interval(one), *map(shown, one.baselines.values())]
            for name, one in self.scores.items()
        ]
        return [header, *lines]

    def class_table(self) -> list[list[str]]:
        """Return the scores of each class as text: a header, then one line per class."""
        header = ["class", "rows", "predicted", "precision", "recall", "F1"]
        lines = [
            [visible(str(one["class"])), str(one["rows"]), str(one["predicted"])]
            + [shown(one[name]) for name in ("precision", "recall", "F1")]
            for one in self.classes
        ]
        return [header, *lines]

    def __str__(self) -> str:
        tables = [self.score_table(), *([self.class_table()] if self.classes else [])]
        return "\n\n".join(map(_aligned, tables))


def evaluate(
    classes: Sequence[Any],
    truth: Array,
    model: Array,
    baselines: Mapping[str, Array],
    seed: int = 0,
) -> Evaluation:
    """Score predicted probabilities or numbers.

    Parameters
    ----------
    classes : sequence
        The class of each column of probabilities; empty for regression.
    truth : array of shape (n_rows,)
        The index of the true class, or the true number.
    model : array of shape (n_rows, n_classes) or (n_rows,)
        The probabilities or numbers that the model predicts.
    baselines : dict of array
        The probabilities or numbers that each baseline predicts, by name.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> found = evaluate(["no", "yes"], np.array([0, 1, 1]), P, {"coin": P * 0 + 0.5})
    >>> round(found.scores["accuracy"].value, 3), found.confusion
    (0.667, [[1, 0], [1, 1]])
    """
    if not classes:
        others = {name: NumberMetrics(truth, predicted) for name, predicted in baselines.items()}
        scores = _scores(NumberMetrics(truth, model), others, seed)
        return Evaluation("regression", len(truth), scores, [], [], [])
    ours = ClassMetrics(truth, model)
    scores = _scores(ours, {name: ClassMetrics(truth, P) for name, P in baselines.items()}, seed)
    belong, predicted, right = (one[0] for one in ours.class_counts(np.ones((1, len(truth)))))
    recall, precision, f1 = per_class(belong, predicted, right)
    table = [
        {
            "class": label,
            "rows": int(belong[k]),
            "predicted": int(predicted[k]),
            "precision": finite_or_none(precision[k]),
            "recall": finite_or_none(recall[k]),
            "F1": finite_or_none(f1[k]),
        }
        for k, label in enumerate(classes)
    ]
    confusion = ours.confusion().tolist() if len(classes) <= MOST_CONFUSED else []
    return Evaluation("classification", len(truth), scores, table, confusion, ours.calibration())


def _scores(model: Metrics, baselines: Mapping[str, Metrics], seed: int) -> dict[str, Score]:
    """Return each score with its percentile interval over bootstrap resamples.

    With more than MOST_RESAMPLED rows, a random subset of this size is resampled, and the distances
    from the score are scaled by the square root of the ratio of the numbers of rows.
    """
    n = len(model)
    once = np.ones((1, n))  # every row counts once
    values = model.scores(once)
    others = {name: metrics.scores(once) for name, metrics in baselines.items()}
    rng = np.random.default_rng(seed)
    m = min(n, MOST_RESAMPLED)
    rows = np.arange(n) if m == n else np.sort(rng.choice(n, m, replace=False))
    counts = np.array([np.bincount(rng.integers(m, size=m), minlength=m) for _ in range(RESAMPLES)])
    counts = counts.astype(np.float64)
    scale = math.sqrt(m / n)
    resampled = model.rows(rows).scores(counts)
    # for the baselines, only the difference on the same resamples is needed
    paired = {name: metrics.rows(rows).scores(counts) for name, metrics in baselines.items()}
    center = values if m == n else model.rows(rows).scores(np.ones((1, m)))
    found = {}
    for name, (value,) in values.items():
        known = resampled[name][~np.isnan(resampled[name])]
        ends = np.full(2, math.nan)
        if len(known):
            ends = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low, high = value + scale * (ends - center[name][0])
        found[name] = Score(
            finite_or_none(value),
            finite_or_none(low),
            finite_or_none(high),
            {other: finite_or_none(scores[name][0]) for other, scores in others.items()},
            {
                other: finite_or_none(scale * np.std(resampled[name] - scores[name]))
                for other, scores in paired.items()
            },
        )
    return found


def shown(value: float | None) -> str:
    """Return a score as text with at least three digits; a hyphen if it is not defined."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value == 0 or 0.0005 <= abs(value) < 10 else f"{value:.4g}"


def _interval(score: Score) -> str:
    if score.low is None or score.high is None:
        return "-"
    # next to a much larger number, the digits of a tiny one are meaningless
    low = 0.0 if abs(score.low) < min(0.0005, 0.01 * abs(score.high)) else score.low
    return f"{shown(low)} to {shown(score.high)}"


def finite_or_none(value: Any) -> float | None:
    """Return a float, or None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Align lines of text in columns: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if i else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
