"""Scores of predictions for a table that contains the target, accumulated batch by batch."""

import math
from dataclasses import dataclass
from typing import Any

import polars as pl

from quadric.apps.shell.tables._features import labels
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._scores import Residuals
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted


@dataclass
class TargetScores:
    """The accuracy, or R² and the mean absolute error, of the rows that have a target.

    Attributes
    ----------
    target : str
        The name of the target.
    rows, correct : int
        The number of rows, and of those whose class is predicted correctly.
    residuals : Residuals or None
        The errors of a regressor.
    problem : str
        Why the target cannot be used; empty if it can.
    """

    target: str = ""
    rows: int = 0
    correct: int = 0
    residuals: Residuals | None = None
    problem: str = ""

    def add(
        self, schema: Schema, frame: pl.DataFrame, predicted: pl.DataFrame, kept: Array, start: int
    ) -> None:
        """Add a batch; `kept` is a mask of the rows with a prediction."""
        if self.problem or schema.target not in predicted.columns:
            return
        self.target = schema.target
        try:
            y, present = labels(schema, frame, start)
        except TableError as error:
            self.problem = str(error)
            return
        y, found = y[kept[present]], predicted[schema.target].to_numpy()[kept & present]
        self.rows += len(y)
        if schema.classes:
            self.correct += int((y == found).sum())
        elif len(y):
            self.residuals = self.residuals or Residuals()
            self.residuals.add(y, found)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON values; empty if no row has a target."""
        if self.problem or not self.rows:
            return {}
        if self.residuals is None:
            return {"rows": self.rows, "accuracy": self.correct / self.rows}
        found = {"rows": self.rows, "R²": self.residuals.score}
        if math.isnan(found["R²"]):  # all targets are equal
            del found["R²"]
        return found | {"mean_absolute_error": self.residuals.absolute / self.rows}

    def notes(self) -> list[str]:
        """Return the scores as a sentence."""
        if self.problem:
            return [f"The predictions are not scored: {self.problem}"]
        found = self.to_dict()
        if not found:
            return []
        forms = {"accuracy": "accuracy {:.3f}", "R²": "R² {:.3f}"}
        forms["mean_absolute_error"] = "mean absolute error {:.4g}"
        scores = [form.format(found[name]) for name, form in forms.items() if name in found]
        rows = counted(self.rows, "row")
        return [f"Scores on {rows} with a value for {self.target!r}: {', '.join(scores)}."]
