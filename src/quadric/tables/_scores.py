"""Scores of a model, a trivial baseline and a linear baseline on held-out rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from quadric._utils.arrays import Array
from quadric.tables._schema import Schema

MODEL = "this model"
TRIVIAL = {"classification": "most frequent class", "regression": "the mean"}
LINEAR = {"classification": "logistic regression", "regression": "linear regression"}
METRIC = {"classification": "accuracy", "regression": "R²"}


class Confusion:
    """Counts of (true class, predicted class) pairs, accumulated batch by batch."""

    def __init__(self, classes: Sequence[Any]) -> None:
        self.classes = np.array(classes)
        self.counts = np.zeros((len(classes), len(classes)), dtype=np.int64)

    def add(self, truth: Array, predicted: Array) -> None:
        self.counts += confusion_matrix(truth, predicted, labels=self.classes)

    @property
    def score(self) -> float:
        """The accuracy."""
        return float(np.trace(self.counts) / self.counts.sum())


@dataclass
class Residuals:
    """Sums for R² and the mean absolute error, accumulated batch by batch."""

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
        """R²: 1 for perfect predictions, 0 for predicting the mean."""
        return 1 - self.squares / self.m2 if self.m2 > 0 else float("nan")


@dataclass(frozen=True)
class Report:
    """The scores of a trained model and of two baselines.

    Attributes
    ----------
    metric : {'accuracy', 'R²'}
    how : str
        A description of the rows on which the scores are computed.
    scores : dict
        The score of the model and of each baseline; empty if no row was held out.
    trained, held_out : int
        The number of rows that the saved model was trained on, and the number held out.
    spread : dict or None
        The standard deviations of the scores over the folds of a cross-validation.
    confusion : list of list of int, or None
        The confusion matrix of a classifier, with one row per true class.
    mean_absolute_error : float or None
        The mean absolute error of a regressor.
    """

    metric: str
    how: str
    scores: dict[str, float]
    trained: int
    held_out: int
    spread: dict[str, float] | None = None
    confusion: list[list[int]] | None = None
    mean_absolute_error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, without the fields that do not apply."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Scores:
    """Scores of the model and of the baselines, accumulated fold by fold."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.names = (MODEL, TRIVIAL[schema.task], LINEAR[schema.task])
        self.folds: defaultdict[int, dict[str, Any]] = defaultdict(self._new_fold)

    def _new_fold(self) -> dict[str, Any]:
        classes = self.schema.classes
        return {name: Confusion(classes) if classes else Residuals() for name in self.names}

    def add(self, fold: int, truth: Array, model: Array, trivial: Any, linear: Array) -> None:
        """Add predictions to a fold; `trivial` is the same for every row."""
        predictions = (model, np.full(len(truth), trivial), linear)
        for name, predicted in zip(self.names, predictions, strict=True):
            self.folds[fold][name].add(truth, predicted)

    def report(self, how: str, trained: int, held_out: int) -> Report:
        """Average the scores over the folds."""
        metric, folds = METRIC[self.schema.task], list(self.folds.values())
        if not folds:
            return Report(metric, "no row was held out", {}, trained, held_out)
        scores = {name: [fold[name].score for fold in folds] for name in self.names}
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        spread = {name: float(np.std(values)) for name, values in scores.items()}
        report = Report(metric, how, means, trained, held_out, spread if len(folds) > 1 else None)
        ours = [fold[MODEL] for fold in folds]
        if self.schema.task == "regression":
            error = sum(one.absolute for one in ours) / sum(one.count for one in ours)
            return replace(report, mean_absolute_error=error)
        return replace(report, confusion=sum(one.counts for one in ours).tolist())
