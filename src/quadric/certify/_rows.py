"""One row of the user's data, and copies of it with other values of the coordinates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.certify._model import Classifier, Coordinates
from quadric.pipelines._affine import NotAffineError, affine_map, partly_affine


class Row:
    """A single row of X.

    Parameters
    ----------
    classifier, inputs : Classifier and Coordinates
        The model.
    x : array of shape (1, n_features), or pandas or Polars table with one row
        The row, as returned by `one_row`.
    """

    def __init__(self, classifier: Classifier, inputs: Coordinates, x: Any) -> None:
        self.classifier, self.inputs, self.x = classifier, inputs, x
        self.columns = _columns(classifier, inputs)
        self.point = inputs.space.reach(x)[0]
        if len(self.point) != len(inputs.names):
            raise ValueError(
                f"x must have {len(inputs.names)} values, one for each input of the model. "
                f"Got {len(self.point)}."
            )
        if not np.isfinite(self.point).all():
            raise ValueError("x must be finite. Got a missing or infinite value; impute it first.")

    def rounded(self, points: Array) -> Array:
        """The points in the precision of x."""
        if hasattr(self.x, "columns") or self.x.dtype.kind != "f":
            return points
        return points.astype(self.x.dtype).astype(float)

    def at(self, points: Array) -> Any:
        """Copies of the row, one per point, with the values of the point."""
        changed = [k for k, column in enumerate(self.columns) if column >= 0]
        if not hasattr(self.x, "columns"):
            x = self.x if self.x.dtype.kind in "fO" else self.x.astype(float)
            rows = np.repeat(x, len(points), axis=0)
            for k in changed:
                rows[:, self.columns[k]] = points[:, k]
            return rows
        names = getattr(self.classifier.model, "feature_names_in_", None)
        listed = list(self.x.columns) if names is None else list(names)
        values = {listed[self.columns[k]]: points[:, k] for k in changed}
        zeros = [0] * len(points)
        if hasattr(self.x, "with_columns"):  # Polars
            series = type(self.x[listed[0]])
            return self.x[zeros].with_columns([series(name, v) for name, v in values.items()])
        table = self.x.iloc[zeros].reset_index(drop=True)
        for name, column in values.items():
            table[name] = column
        return table

    def classes(self, points: Array) -> Array:
        """The index of the class that the model predicts for each point."""
        return self.classifier.predict(self.at(points))


def one_row(x: Any) -> Any:
    """Check that x is one row; return it as an array of shape (1, n_features) or as the table."""
    if hasattr(x, "columns"):
        rows = x
    else:
        rows = np.asarray(x)
        rows = rows[None] if rows.ndim == 1 else rows
    if len(rows.shape) != 2 or rows.shape[0] != 1:
        raise ValueError(
            "x must be one row, of shape (n_features,) or (1, n_features). "
            f"Got shape {tuple(rows.shape)}; pass X[[i]]."
        )
    return rows


def _columns(classifier: Classifier, inputs: Coordinates) -> Sequence[int]:
    """The column of the user's data for each coordinate, or -1 for an encoded category."""
    if not classifier.steps:
        return range(len(inputs.names))
    try:
        affine_map(classifier.steps[0], classifier.steps[1:])
    except NotAffineError:
        parts = partly_affine(classifier.steps[0], classifier.steps[1:])
        assert parts is not None  # because the coordinates exist
        return [column if source == "input" else -1 for source, column in parts.origins]
    return range(len(inputs.names))
