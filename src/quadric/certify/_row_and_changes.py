"""One row of the user's data, copies of it with other values, and their changes in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.certify._model_and_rounding import EPS, CertifiedModel
from quadric.checks import Array
from quadric.utils import spaced, visible

MOST_DIGITS = 16


class Row:
    """A single row of X.

    Parameters
    ----------
    model : CertifiedModel
        The model.
    x : array of shape (1, n_features), or pandas or Polars table with one row
        The row, as returned by `one_row`.
    low, high : arrays of shape (n_coordinates,)
        The bounds of the coordinates. They are infinite until they are set.
    """

    def __init__(self, model: CertifiedModel, x: Any) -> None:
        self.model, self.x, space = model, x, model.view.coordinates
        self.low, self.high = np.full((2, len(space.names)), [[-np.inf], [np.inf]])
        # the column of the user's data for each coordinate, or -1 for an encoded category
        origins = [] if space.encoded is None else space.encoded.origins
        encoded = [column if source == "input" else -1 for source, column in origins]
        self.columns = encoded or range(len(space.names))
        self.coarse = self._coarse()
        self.eps = max([float(np.finfo(dtype).eps) for dtype, _ in self.coarse], default=EPS)
        self.point = space.reach(x)[0]
        if len(self.point) != len(space.names):
            raise ValueError(
                f"x must have {len(space.names)} values, one for each input of the model. "
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
            rows[:, [self.columns[k] for k in changed]] = points[:, changed]
            return rows
        listed, values, zeros = self._listed(), {}, [0] * len(points)
        for k in changed:
            name = listed[self.columns[k]]
            values[name] = points[:, k].astype(_float_of(self.x[name].dtype) or float)
        if hasattr(self.x, "with_columns"):  # Polars
            return self.x[zeros].with_columns(
                [type(self.x[name])(name, column) for name, column in values.items()]
            )
        table = self.x.iloc[zeros].reset_index(drop=True)
        for name, column in values.items():
            table[name] = column
        return table

    def _listed(self) -> list[Any]:
        """The names of the columns of a table, in the order of the model."""
        names = self.model.view.input_names
        return list(self.x.columns) if names is None else list(names)

    def _coarse(self) -> list[tuple[np.dtype[Any], Array]]:
        """The coordinates whose values in x are less precise than float64, by their dtype."""
        if hasattr(self.x, "columns"):
            listed = self._listed()
            own = [None if k < 0 else _float_of(self.x[listed[k]].dtype) for k in self.columns]
        else:
            own = [_float_of(self.x.dtype)] * len(self.columns)
        coarse = {dtype for dtype in own if dtype is not None}
        return [(dtype, np.flatnonzero([d == dtype for d in own])) for dtype in coarse]

    def classes(self, points: Array) -> Array:
        """The index of the class that the model predicts for each point."""
        with np.errstate(all="ignore"):  # points far away may overflow in low precision
            return self.model.predict(self.at(points))


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


def weights_of_inputs(model: CertifiedModel, weights: Any) -> Array:
    """The weights as an array; 1 for inputs that are not named."""
    found = np.ones(len(model.names))
    if isinstance(weights, Mapping):
        for name, value in weights.items():
            found[model.index("weights", name)] = value
    elif weights is not None:
        found = np.asarray(weights, dtype=float)
    if found.shape != (len(model.names),) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(
            f"weights must be {len(model.names)} positive numbers. To hold an input, use fixed."
        )
    return found


def set_bounds(row: Row, bounds: Mapping[Any, tuple[float | None, float | None]] | None) -> None:
    """Set the lower and upper limits of the inputs."""
    for name, (least, most) in (bounds or {}).items():
        i = row.model.index("bounds", name)
        low, high = -np.inf if least is None else least, np.inf if most is None else most
        if not low <= row.point[i] <= high:
            raise ValueError(
                f"bounds must contain x. {row.model.names[i]} is {written(row.point[i])}, which "
                f"is not between {written(low)} and {written(high)}."
            )
        row.low[i], row.high[i] = low, high


# --------------------------------------------------------------------- changes in words


@dataclass(frozen=True)
class Change:
    """An input that changes.

    Parameters
    ----------
    name : str
        The name of the input.
    before, after : float
        Its value in the row, and its new value.
    """

    name: str
    before: float
    after: float

    def __str__(self) -> str:
        before = _short(self.before, self.after - self.before)
        return f"{visible(self.name)} {written(self.after)} instead of {written(before)}"


def _short(before: float, change: float) -> float:
    """A value with many digits, rounded to four digits or to a hundredth of its change."""
    if not change or float(f"{before:.6g}") == before:
        return before
    size = min(abs(before) / 100, abs(change)) or abs(change)
    places = 2 - math.floor(math.log10(size))
    return round(before, places) if -300 < places < 300 else before


def changes_of(
    row: Row,
    point: Array,
    becomes: int,
    sizes: Array,
    whole: Sequence[int],
) -> list[Change]:
    """The changes from the row to the point, rounded away from the row, but within the bounds.

    The result has as few digits and inputs as possible such that the model still predicts the class
    of the point.
    """
    start, low, high = row.point, row.low, row.high
    lengths = np.abs(point - start) / sizes
    for digits in range(2, MOST_DIGITS):
        points = []
        for share in (0.05, 0.01, 0.0):  # of the largest change; smaller changes are left out
            kept = (lengths > 0) & (lengths >= share * lengths.max())
            found = start.copy()
            found[whole] = np.where(kept, point, start)[whole]
            for i in np.setdiff1d(np.flatnonzero(kept), whole):
                more = (_outwards(start[i], point[i], d) for d in range(digits, MOST_DIGITS))
                found[i] = next((v for v in more if low[i] <= v <= high[i]), point[i])
            points.append(found)
        tried = row.in_precision(np.array(points))
        good = np.flatnonzero(row.classes(tried) == becomes)
        # a tie may be rounded in another way if a row is predicted alone
        first = next((k for k in good if row.classes(tried[[k]])[0] == becomes), None)
        if first is not None:
            point = points[first]
            break
    changed = np.flatnonzero(point != start)
    changed = changed[np.argsort(-lengths[changed])]
    return [Change(row.model.names[i], float(start[i]), float(point[i])) for i in changed]


def _outwards(before: float, after: float, digits: int) -> float:
    """`after`, rounded away from `before` to this number of digits of their difference."""
    places = digits - 1 - math.floor(math.log10(abs(after - before)))
    if not -300 < places < 300:
        return after
    unit = 10.0**-places
    ends = math.ceil(after / unit) if after > before else math.floor(after / unit)
    return round(ends * unit, places) if places > 0 else float(ends * round(unit))


def written(value: float) -> str:
    """A number without superfluous digits, with spaces between thousands.

    >>> written(31200.0), written(0.25), written(1234567.5)
    ('31 200', '0.25', '1 234 567.5')
    """
    text = repr(float(value)).removesuffix(".0")
    return text if "e" in text or "n" in text else spaced(text)


def in_words(changes: Sequence[Change], most: int = 8) -> str:
    """The changes as a list, the largest first."""
    texts = [str(change) for change in changes[:most]]
    if len(changes) > most:
        texts.append(f"{len(changes) - most} smaller changes")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
