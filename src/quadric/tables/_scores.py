"""Scores of a model, a trivial model and a linear model on held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.tables._schema import Schema

MODEL = "this model"
TRIVIAL = {"classification": "most frequent class", "regression": "the mean"}
LINEAR = {"classification": "logistic regression", "regression": "linear regression"}
METRIC = {"classification": "accuracy", "regression": "R²"}


@dataclass
class Confusion:
    """Counts of (true class, predicted class), added up batch by batch; the classes are sorted."""

    classes: Sequence[Any]
    counts: Array = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)

    def add(self, truth: Array, predicted: Array) -> None:
        places = np.searchsorted(np.array(self.classes), [truth, predicted])
        np.add.at(self.counts, tuple(places), 1)

    @property
    def score(self) -> float:
        """The accuracy."""
        total = int(self.counts.sum())
        return float(np.trace(self.counts)) / total if total else float("nan")


@dataclass
class Residuals:
    """Sums for R² and the mean absolute error, added up batch by batch."""

    count: int = 0
    squares: float = 0.0
    absolute: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, truth: Array, predicted: Array) -> None:
        error = predicted - truth
        self.squares += float(error @ error)
        self.absolute += float(np.abs(error).sum())
        n, mean = len(truth), float(truth.mean())
        total, difference = self.count + n, mean - self.mean
        self.m2 += float(((truth - mean) ** 2).sum())
        self.m2 += difference**2 * self.count * n / total
        self.mean += difference * n / total
        self.count = total

    @property
    def score(self) -> float:
        """R²: 1 for perfect predictions, 0 for the mean."""
        return 1 - self.squares / self.m2 if self.m2 > 0 else float("nan")


@dataclass(frozen=True)
class Report:
    """The scores of a trained model beside those of two baselines.

    Attributes
    ----------
    metric : {'accuracy', 'R²'}
    how : str
        The rows that the scores are computed on.
    scores : dict
        The score of the model and of each baseline; empty if no row was held out.
    trained, held_out : int
        The number of rows that the saved model was and was not trained on.
    spread : dict
        The standard deviations of the scores over the folds of a cross-validation.
    confusion : Confusion or None
        The confusion matrix of a classifier.
    error : float or None
        The mean absolute error of a regressor.
    """

    metric: str
    how: str
    scores: dict[str, float]
    trained: int
    held_out: int
    spread: dict[str, float] = field(default_factory=dict)
    confusion: Confusion | None = None
    error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        optional = {
            "spread": self.spread or None,
            "confusion": None if self.confusion is None else self.confusion.counts.tolist(),
            "mean_absolute_error": self.error,
        }
        return {
            "metric": self.metric,
            "how": self.how,
            "scores": self.scores,
            "trained": self.trained,
            "held_out": self.held_out,
            **{name: value for name, value in optional.items() if value is not None},
        }


class Scores:
    """Scores of the model and of the baselines, added up fold by fold."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.names = (MODEL, TRIVIAL[schema.task], LINEAR[schema.task])
        self.folds: list[dict[str, Any]] = []

    def start_fold(self) -> None:
        classes = self.schema.classes
        self.folds.append(
            {name: Confusion(classes) if classes else Residuals() for name in self.names}
        )

    def add(self, truth: Array, model: Array, trivial: Any, linear: Array) -> None:
        """Add predictions to the current fold; `trivial` is the same for every row."""
        predictions = (model, np.full(len(truth), trivial), linear)
        for name, predicted in zip(self.names, predictions, strict=True):
            self.folds[-1][name].add(truth, predicted)

    def report(self, how: str, trained: int, held_out: int) -> Report:
        """Average the scores over the folds."""
        metric = METRIC[self.schema.task]
        if not self.folds:
            return Report(metric, "no row was held out", {}, trained, held_out)
        scores = {name: [fold[name].score for fold in self.folds] for name in self.names}
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        several = len(self.folds) > 1
        spread = {name: float(np.std(values)) for name, values in scores.items() if several}
        ours = [fold[MODEL] for fold in self.folds]
        if self.schema.task == "regression":
            error = sum(one.absolute for one in ours) / sum(one.count for one in ours)
            return Report(metric, how, means, trained, held_out, spread, error=error)
        total = Confusion(self.schema.classes)
        total.counts += sum(one.counts for one in ours)
        return Report(metric, how, means, trained, held_out, spread, total)
