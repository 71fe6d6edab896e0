"""One row of the user's data, and copies of it with other values of the coordinates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.certify._distances import EPS
from quadric.certify._model import Classifier, Coordinates
from quadric.checks import Array
from quadric.models import NotAffineError, affine_map, partly_affine


class Row:
    """A single row of X.

    Parameters
    ----------
    classifier, inputs : Classifier and Coordinates
        The model.
    x : array of shape (1, n_features), or pandas or Polars table with one row
        The row, as returned by `one_row`.
    low, high : arrays of shape (n_coordinates,)
        The bounds of the coordinates. They are infinite until they are set.
    """

    def __init__(self, classifier: Classifier, inputs: Coordinates, x: Any) -> None:
        self.classifier, self.inputs, self.x = classifier, inputs, x
        self.low, self.high = np.full((2, len(inputs.names)), [[-np.inf], [np.inf]])
        self.columns = _columns(classifier, inputs)
        self.coarse = self._coarse()
        self.eps = max([float(np.finfo(dtype).eps) for dtype, _ in self.coarse], default=EPS)
        self.point = inputs.space.reach(x)[0]
        if len(self.point) != len(inputs.names):
            raise ValueError(
                f"x must have {len(inputs.names)} values, one for each input of the model. "
                f"Got {len(self.point)}."
            )
        if not np.isfinite(self.point).all():
            raise ValueError("x must be finite. Got a missing or infinite value; impute it first.")

    def in_precision(self, points: Array) -> Array:
        """The points in the precision of x."""
        found = points.copy()
        with np.errstate(over="ignore"):  # infinite values are refused by the model
            for dtype, some in self.coarse:
                found[..., some] = points[..., some].astype(dtype)
        return found

    def rounded(self, points: Array) -> Array:
        """The points in the precision of x, within the bounds."""
        low, high = self.in_precision(self.low), self.in_precision(self.high)
        for dtype, some in self.coarse:
            up = np.nextafter(low[some].astype(dtype), dtype.type(np.inf))
            down = np.nextafter(high[some].astype(dtype), dtype.type(-np.inf))
            low[some] = np.where(low[some] < self.low[some], up, low[some])
            high[some] = np.where(high[some] > self.high[some], down, high[some])
        return self.in_precision(points).clip(low, high)

    def at(self, points: Array) -> Any:
        """Copies of the row, one per point, with the values of the point."""
        changed = [k for k, column in enumerate(self.columns) if column >= 0]
        if not hasattr(self.x, "columns"):
            x = self.x if self.x.dtype.kind in "fO" else self.x.astype(float)
            rows = np.repeat(x, len(points), axis=0)
            for k in changed:
                rows[:, self.columns[k]] = points[:, k]
            return rows
        listed = self._listed()
        values = {listed[self.columns[k]]: points[:, k] for k in changed}
        zeros = [0] * len(points)
        if hasattr(self.x, "with_columns"):  # Polars
            columns = [self._like(name, column) for name, column in values.items()]
            return self.x[zeros].with_columns(columns)
        table = self.x.iloc[zeros].reset_index(drop=True)
        for name, column in values.items():
            dtype = _float_of(self.x[name].dtype)
            table[name] = column if dtype is None else column.astype(dtype)
        return table

    def _like(self, name: Any, column: Array) -> Any:
        """A column of Polars with the given values, of the floating-point dtype of x."""
        own = self.x[name]
        made = type(own)(name, column)
        return made if _float_of(own.dtype) is None else made.cast(own.dtype)

    def _listed(self) -> list[Any]:
        """The names of the columns of a table, in the order of the model."""
        names = getattr(self.classifier.model, "feature_names_in_", None)
        return list(self.x.columns) if names is None else list(names)

    def _coarse(self) -> list[tuple[np.dtype[Any], Array]]:
        """The coordinates whose values in x are less precise than float64, by their dtype."""
        if hasattr(self.x, "columns"):
            listed = self._listed()
            own = [None if k < 0 else _float_of(self.x[listed[k]].dtype) for k in self.columns]
        else:
            own = [_float_of(self.x.dtype)] * len(self.columns)
        found = [(dtype, [d == dtype for d in own]) for dtype in {*own} - {None}]
        return [(dtype, np.flatnonzero(some)) for dtype, some in found if dtype is not None]

    def classes(self, points: Array) -> Array:
        """The index of the class that the model predicts for each point."""
        with np.errstate(all="ignore"):  # points far away may overflow in low precision
            return self.classifier.predict(self.at(points))


def _float_of(dtype: Any) -> np.dtype[Any] | None:
    """The dtype of a column if it is less precise than float64."""
    name = str(dtype).lower()
    return np.dtype(name) if name in ("float16", "float32") else None


def one_row(x: Any, *, named: bool) -> Any:
    """Check that x is one row; return it as an array of shape (1, n_features) or as a table.

    A pandas Series is a row of a table if the model was fitted with `named` columns.
    """
    if hasattr(x, "columns"):
        rows = x
    elif named and hasattr(x, "to_frame") and hasattr(x, "index"):
        rows = x.to_frame().T.infer_objects()
    else:
        rows = np.asarray(x.toarray() if hasattr(x, "toarray") else x)
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
