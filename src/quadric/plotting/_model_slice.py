"""A plane through the inputs of a model: two inputs vary, the others are fixed at a typical row."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.explain import Columns, dependences, explain, predictions, written
from quadric.plotting._style import plain

GRID = 160  # values of a numeric input
MOST_CATEGORIES = 12
NEAR = 0.25  # share of the rows that are drawn if there are other inputs
LISTED = 4  # fixed inputs that are listed by name
UNCERTAIN_ROWS = 5
NO_BREAK = "\u00a0"  # a space at which a line is not wrapped
OUTSIDE = 0.005  # share of the rows on each side that may lie outside the axes


@dataclass(frozen=True)
class InputAxis:
    """The values of one input along an axis; a category is drawn at its index."""

    name: str
    values: list[Any]
    places: Array
    categories: list[str] | None

    @classmethod
    def of(cls, columns: Columns, k: int) -> "InputAxis":
        numbers = columns.numbers(k)
        if numbers is None:
            common = Counter(columns.values(k).tolist()).most_common(MOST_CATEGORIES)
            values = sorted((value for value, _ in common), key=str)
            texts = [written(value) for value in values]
            return cls(columns.names[k], values, np.arange(len(values), dtype=float), texts)
        present = numbers[np.isfinite(numbers)]
        low, high = map(float, np.quantile(present, [OUTSIDE, 1 - OUTSIDE]))
        pad = 0.05 * (high - low) if high > low else max(abs(high), 1.0)
        places = np.linspace(low - pad, high + pad, GRID)
        return cls(columns.names[k], places.tolist(), places, None)

    def coarse(self) -> "InputAxis":
        """The same axis with every eighth value of a number; categories are all kept."""
        every = 1 if self.categories is not None else 8
        return replace(self, values=self.values[::every], places=self.places[::every])

    @property
    def limits(self) -> tuple[float, float]:
        """The range of the axis."""
        half = 0.5 if self.categories is not None else 0.0
        return float(self.places[0]) - half, float(self.places[-1]) + half

    def positions(self, values: Array, rng: np.random.Generator) -> Array:
        """Where to draw the values: categories are spread a little, NaN where not drawn."""
        if self.categories is None:
            return values.astype(float)
        index = {value: float(k) for k, value in enumerate(self.values)}
        found = np.array([index.get(value, np.nan) for value in values.tolist()])
        return found + rng.uniform(-0.3, 0.3, len(found))

    def label(self, ax: Any, axis: str) -> None:
        """Write the name of the input and its categories on an axis."""
        getattr(ax, f"set_{axis}label")(plain(self.name))
        if self.categories is not None:
            texts = [plain(text) for text in self.categories]
            getattr(ax, f"set_{axis}ticks")(self.places, texts)
        getattr(ax, f"set_{axis}lim")(*self.limits)


@dataclass(frozen=True)
class ModelSlice:
    """Predictions of a model in a plane, and the rows of the data near it.

    `predicted` has shape (values of the second input, values of the first input, n_outputs).
    `points` are the positions of the rows `near` the plane.
    """

    axes: tuple[InputAxis, InputAxis]
    predicted: Array
    points: Array
    near: Array
    title: str

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The limits of both axes."""
        return *self.axes[0].limits, *self.axes[1].limits


def rank_inputs(model: Any, X: Any) -> list[tuple[str, float]]:
    """The inputs with their importances, most important first; see `quadric.explain`."""
    names = Columns(X, getattr(model, "feature_names_in_", None)).names
    try:
        found = [(one.name, abs(one.total)) for one in explain(model, X).importances]
    except (TypeError, ValueError):  # not a model of quadric, or rows with missing values
        found = []
    if {name for name, _ in found} != set(names):
        found = [(one.inputs[0], one.strength) for one in dependences(model, X)]
    return found


def slice_model(model: Any, X: Any, inputs: Sequence[str] | None = None) -> ModelSlice:
    """Predict in the plane of two inputs, by default the two most important ones.

    The other inputs are fixed at a typical row: the median of a number, and the most frequent
    category. If a classifier predicts the same class in all of this plane, another plane is drawn;
    see `_with_a_boundary`.
    """
    columns = Columns(X, getattr(model, "feature_names_in_", None))
    if len(columns.names) < 2:
        raise ValueError("a model with a single input has no plane to draw. Plot the dependence.")
    ranked = [(name, 1.0) for name in columns.names]
    if len(ranked) > 2 or inputs is None:
        ranked = rank_inputs(model, X)
    chosen = list(inputs or [name for name, _ in ranked[:2]])
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(columns.names):
        raise ValueError(f"inputs must be two of {', '.join(columns.names)}. Got {chosen}.")
    if len(columns.names) == 2 and inputs is None:
        chosen = columns.names
    dims = [columns.names.index(name) for name in chosen]
    first, second = (InputAxis.of(columns, k) for k in dims)
    others = [name for name, _ in ranked if name not in chosen]
    typical = {columns.names.index(name): typical_value(columns, name) for name in others}
    predicted = predictions(model, _plane(columns, dims, (first, second), typical))
    where = "at typical values"
    if getattr(model, "classes_", None) is not None and _n_classes(predicted) < 2:
        typical, where, predicted = _with_a_boundary(model, columns, dims, (first, second), typical)
    near = _near(columns, typical, dict(ranked))
    rng = np.random.default_rng(0)
    points = np.column_stack(
        [
            axis.positions(columns.values(k), rng)
            for axis, k in zip((first, second), dims, strict=True)
        ]
    )
    near &= np.isfinite(points).all(axis=1)  # only categories on the axis
    shape = len(second.values), len(first.values), -1
    fixed = [(name, typical[columns.names.index(name)]) for name in others]
    title = _title(chosen, fixed, where, given=inputs is not None)
    return ModelSlice((first, second), predicted.reshape(shape), points, near, title)


def typical_value(columns: Columns, name: str) -> Any:
    """The median of a number, or the most frequent category."""
    k = columns.names.index(name)
    numbers = columns.numbers(k)
    if numbers is None:
        return Counter(columns.values(k).tolist()).most_common(1)[0][0]
    present = np.sort(numbers[np.isfinite(numbers)])
    return float(present[len(present) // 2])  # one of the values, so that whole numbers stay whole


def _plane(
    columns: Columns, dims: list[int], axes: tuple[InputAxis, InputAxis], typical: dict[int, Any]
) -> Any:
    """One row per point of the grid; the first input varies fastest."""
    first, second = axes
    count = len(first.values) * len(second.values)
    rows = columns.take(np.arange(count) % len(columns))
    across = np.array(first.values, dtype=object)[np.arange(count) % len(first.values)]
    along = np.array(second.values, dtype=object)[np.arange(count) // len(first.values)]
    return rows.replaced({**typical, dims[0]: across, dims[1]: along})


def _near(columns: Columns, typical: dict[int, Any], weights: dict[str, float]) -> Array:
    """The rows whose other inputs are nearest to the typical row, weighted by importance."""
    if not typical:
        return np.ones(len(columns), dtype=bool)
    distance = np.zeros(len(columns))
    for k, value in typical.items():
        numbers = columns.numbers(k)
        if numbers is None:
            apart = np.array([one != value for one in columns.values(k).tolist()], dtype=float)
        else:
            spread = np.nanstd(numbers)
            apart = np.nan_to_num((numbers - value) / (spread if spread > 0 else 1.0), nan=9.0)
        distance += weights[columns.names[k]] * apart**2
    return distance <= np.quantile(distance, NEAR)


def _with_a_boundary(
    model: Any,
    columns: Columns,
    dims: list[int],
    axes: tuple[InputAxis, InputAxis],
    typical: dict[int, Any],
) -> tuple[dict[int, Any], str, Array]:
    """Return other fixed values, their description and the predictions in their plane.

    The first choice is midway between the classes: the mean of the medians of the predicted
    classes. If that plane has only one class, too, the second choice is the plane with the most
    classes through one of the rows that the model is least certain about.
    """
    between = _between_classes(model, columns, typical)
    predicted = predictions(model, _plane(columns, dims, axes, between))
    if _n_classes(predicted) > 1:
        return between, "midway between the classes", predicted
    two_largest = np.sort(predictions(model, columns.X), axis=1)[:, -2:]
    rows = np.argsort(two_largest[:, 1] - two_largest[:, 0], kind="stable")[:UNCERTAIN_ROWS]
    candidates = [{k: columns.values(k)[row] for k in typical} for row in rows]
    coarse = axes[0].coarse(), axes[1].coarse()
    counts = [
        _n_classes(predictions(model, _plane(columns, dims, coarse, one))) for one in candidates
    ]
    best = int(np.argmax(counts))
    predicted = predictions(model, _plane(columns, dims, axes, candidates[best]))
    return candidates[best], f"as in row {rows[best] + 1}, an uncertain one", predicted


def _n_classes(predicted: Array) -> int:
    return len(np.unique(predicted.argmax(axis=1)))


def _between_classes(model: Any, columns: Columns, typical: dict[int, Any]) -> dict[int, Any]:
    """The mean of the medians of the rows of each predicted class."""
    predicted = np.asarray(model.predict(columns.X))
    parts = [columns.take(np.flatnonzero(predicted == label)) for label in np.unique(predicted)]
    found = dict(typical)
    for k in typical:
        if columns.numbers(k) is not None:
            medians = [typical_value(part, columns.names[k]) for part in parts]
            found[k] = float(np.mean(medians))
    return found


def _title(chosen: list[str], fixed: list[tuple[str, Any]], where: str, *, given: bool) -> str:
    if not fixed:
        return ""
    which = "Inputs" if given else "The two most important inputs"
    pairs = (f"{plain(name)} = {plain(written(value))}" for name, value in fixed[:LISTED])
    listed = ", ".join(pair.replace(" ", NO_BREAK) for pair in pairs)
    more = f" and {len(fixed) - LISTED} more" if len(fixed) > LISTED else ""
    lines = [
        f"{which}: {plain(chosen[0])} and {plain(chosen[1])}",
        *textwrap.wrap(f"Fixed {where}: {listed}{more}", 78),
    ]
    return "\n".join(lines).replace(NO_BREAK, " ")
