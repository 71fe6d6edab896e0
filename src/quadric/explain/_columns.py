"""The columns of the data that a model accepts: arrays, and pandas or Polars frames."""

import math
from typing import Any

import numpy as np

from quadric.checks import Array, unmasked


class Columns:
    """Data whose columns can be read, and replaced to ask what a model would predict.

    Parameters
    ----------
    X : array of shape (n_samples, n_features) or DataFrame
        The data, which is never modified.
    names : sequence of str, optional
        The names of an array's columns, by default x1, x2, ..., or the columns of a frame that the
        model uses, in its order.
    """

    def __init__(self, X: Any, names: Any = None) -> None:
        self.is_frame = hasattr(X, "columns")
        self.X: Any = X if self.is_frame else np.asarray(unmasked("X", X))
        if self.is_frame:
            if names is not None and set(names) <= set(X.columns):
                self.X = X[list(names)]
            names = list(self.X.columns)
        elif self.X.ndim != 2 or (names is not None and len(names) != self.X.shape[1]):
            expected = "two dimensions" if names is None else f"shape (n_samples, {len(names)})"
            raise ValueError(f"X must have {expected}. Got shape {self.X.shape}.")
        elif names is None:
            names = [f"x{i + 1}" for i in range(self.X.shape[1])]
        self.names = [str(name) for name in names]

    def __len__(self) -> int:
        return len(self.X)

    def values(self, k: int) -> Array:
        """Return the values of a column."""
        if not self.is_frame:
            return self.X[:, k]
        return np.asarray(self.X[self.X.columns[k]])

    def numbers(self, k: int) -> Array | None:
        """Return a column as numbers, NaN where missing; None if it is not numeric."""
        values = self.values(k)
        if values.dtype.kind in "OUS" and any(isinstance(v, str) for v in values):
            return None
        try:
            return values.astype(float)
        except (TypeError, ValueError):
            return None

    def take(self, rows: Array) -> "Columns":
        """Return some of the rows."""
        if not self.is_frame:
            return Columns(self.X[rows], self.names)
        return Columns(self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows.tolist()])

    def replaced(self, new: dict[int, Any]) -> Any:
        """Return the data with new values in some columns, in the form of X."""
        if not self.is_frame:
            # integers become floats, because the new values may lie between them
            X = self.X.astype(float) if self.X.dtype.kind in "iub" else self.X.copy()
            for k, values in new.items():
                X[:, k] = values
            return X
        X = self.X
        for k, values in new.items():
            old = X[X.columns[k]]
            values = np.broadcast_to(np.asarray(values, dtype=object), len(X)).tolist()
            if hasattr(X, "with_columns"):  # Polars
                between = old.dtype.is_integer() and _has_fractions(values)
                dtype = None if between else old.dtype
                X = X.with_columns(type(old)(old.name, values, dtype=dtype, strict=False))
            else:
                numeric = old.dtype.kind in "iub" and all(
                    v is not None and float(v).is_integer() for v in values
                )
                dtype = old.dtype if numeric else float if old.dtype.kind in "iufb" else object
                X = X.copy()
                X[X.columns[k]] = type(old)(values, index=old.index, dtype=dtype)
        return X


def _has_fractions(values: list[Any]) -> bool:
    """Whether one of the numbers is not an integer; missing ones are ignored."""
    return any(v is not None and math.isfinite(v) and v % 1 for v in values)
