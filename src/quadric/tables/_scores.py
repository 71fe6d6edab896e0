"""How good a model is, beside what needs no model and what a linear model does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quadric._utils.arrays import Array

MODEL = "this model"
TRIVIAL = {"classification": "most frequent class", "regression": "the mean"}
LINEAR = {"classification": "logistic regression", "regression": "linear regression"}
METRIC = {"classification": "accuracy", "regression": "R²"}


@dataclass
class Confusion:
    """Counts of (true class, predicted class), added up batch by batch."""

    classes: Sequence[Any]
    counts: Array = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)

    def add(self, truth: Array, predicted: Array) -> None:
        places = {label: k for k, label in enumerate(self.classes)}
        rows = [places[label] for label in truth.tolist()]
        columns = [places[label] for label in predicted.tolist()]
        np.add.at(self.counts, (rows, columns), 1)

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
        if not len(truth):
            return
        error = predicted - truth
        self.squares += float(error @ error)
        self.absolute += float(np.abs(error).sum())
        difference, total = float(truth.mean()) - self.mean, self.count + len(truth)
        self.m2 += float(((truth - truth.mean()) ** 2).sum())
        self.m2 += difference**2 * self.count * len(truth) / total
        self.mean += difference * len(truth) / total
        self.count = total

    @property
    def score(self) -> float:
        """R²: 1 is perfect, 0 is as good as the mean."""
        return 1 - self.squares / self.m2 if self.m2 > 0 else float("nan")


@dataclass(frozen=True)
class Report:
    """What `train` found.

    Attributes
    ----------
    metric : str
        'accuracy' or 'R²'.
    how : str
        On which rows the scores were taken.
    scores : dict
        Of the model and of two baselines; empty if no row could be held out.
    spread : dict
        Their standard deviations over the folds of a cross-validation.
    confusion : Confusion or None
    error : float or None
        The mean absolute error, for regression.
    trained, held_out : int
        Rows that the saved model was trained on, and rows kept from it.
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
        """Plain values, for JSON."""
        state: dict[str, Any] = {
            "metric": self.metric, "how": self.how, "scores": self.scores, "trained": self.trained,
            "held_out": self.held_out,
        }  # fmt: skip
        if self.spread:
            state["spread"] = self.spread
        if self.confusion is not None:
            state["confusion"] = self.confusion.counts.tolist()
        if self.error is not None:
            state["mean_absolute_error"] = self.error
        return state
