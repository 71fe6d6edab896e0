"""Plots of a model in the plane of two inputs: regions of classes, and predicted numbers.

A model with more inputs is drawn in a slice: two inputs vary, and the others are fixed at a typical
row.
"""

import itertools
import textwrap
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from quadric.checks import Array
from quadric.explain import (
    ExplainedLayer,
    InputData,
    count_values,
    grid_of,
    predictions,
    rank_inputs,
    select_layer,
    tie,
    written,
)
from quadric.geometry import Window, arcs
from quadric.models import classes_of, input_names_of, typical_text
from quadric.network import Network
from quadric.plotting._style import (
    BOUNDARY,
    MOST_POINTS,
    drawn_rows,
    get_ax,
    get_window,
    name_categories,
    pale,
    plain,
    plain_ticks,
    plot_points,
    show_window,
)
from quadric.utils import listed, rounded

LEGEND_CLASSES = 20
MOST_CLASSES = 200
GRID = 160  # values of a numeric input in a slice
FINE_GRID = 400  # values of each input if the model has only two
LISTED = 4  # fixed inputs that are listed by name
NO_BREAK = "\u00a0"  # a space at which a line is not wrapped


@dataclass(frozen=True)
class InputAxis:
    """The values of one input along an axis; a category is drawn at its index."""

    name: str
    values: list[Any]
    has_categories: bool
    n_values: int = 0  # of all categories, of which the most frequent are drawn

    @classmethod
    def of(cls, columns: InputData, k: int) -> "InputAxis":
        numbers = columns.numbers(k)
        if numbers is None:
            grid, count = grid_of(columns, k, GRID), count_values(columns, k)
            return cls(columns.names[k], grid, has_categories=True, n_values=count)
        present = numbers[np.isfinite(numbers)]
        low, high = map(float, np.quantile(present, [0.005, 0.995]))  # without a few outliers
        pad = 0.05 * (high - low) if high > low else max(abs(high), 1.0)
        values = np.linspace(low - pad, high + pad, GRID).tolist()
        return cls(columns.names[k], values, has_categories=False)

    @property
    def places(self) -> Array:
        """Where the values are on the axis."""
        return np.array(range(len(self.values)) if self.has_categories else self.values, float)

    def coarse(self) -> "InputAxis":
        """The same axis with every eighth value of a number; categories are all kept."""
        return self if self.has_categories else replace(self, values=self.values[::8])

    @property
    def limits(self) -> tuple[float, float]:
        """The range of the axis."""
        half = 0.5 if self.has_categories else 0.0
        return float(self.places[0]) - half, float(self.places[-1]) + half

    def positions(self, values: Array, rng: np.random.Generator) -> Array:
        """Where to draw the values: categories are spread a little, NaN where not drawn."""
        if not self.has_categories:
            return values.astype(float)
        index = {value: float(k) for k, value in enumerate(self.values)}
        found = np.array([index.get(value, np.nan) for value in values.tolist()])
        return found + rng.uniform(-0.3, 0.3, len(found))

    def label(self, ax: Any, axis: str) -> None:
        """Write the name of the input and its categories on an axis."""
        all_drawn = self.n_values <= len(self.values)
        name = self.name if all_drawn else f"{self.name} ({len(self.values)} of {self.n_values})"
        style: dict[str, Any] = {"label": plain(name), "lim": self.limits}
        texts = [plain(written(value)) for value in self.values] if self.has_categories else []
        if texts and axis == "x":
            name_categories(ax, self.places, texts)
        elif texts:
            style |= {"ticks": self.places, "ticklabels": texts}
        ax.set(**{axis + key: value for key, value in style.items()})


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


def plot_boundaries(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    inputs: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    points: bool = True,
) -> Axes:
    """Draw the predicted classes in the plane of two inputs, for any number of inputs.

    The other inputs are fixed at a typical row: the median of a number or of dates, and the most
    frequent category. Of the data, the quarter of the rows that is nearest to this plane is drawn.

    Parameters
    ----------
    model : fitted classifier, or Pipeline
        A classifier with `predict_proba`.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, in the form that the model accepts.
    y : array of shape (n_samples,), optional
        Class of each row, which determines its color. Without y, no points are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    inputs : sequence of two str, optional
        Names of two columns. The default is the two most important inputs.
    classes : sequence, optional
        Up to 200 classes to compare. The default is all classes.
    points : bool
        Whether to draw the points.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    known = classes_of(model)
    _check_fitted(model, "classifier", known is not None)
    labels = list(known)
    shown = labels if classes is None else list(classes)
    if len(shown) < 2 or not set(shown) <= set(labels):
        raise ValueError(
            f"classes must hold two or more of {', '.join(map(str, labels))}. Got {shown}."
        )
    if len(shown) > MOST_CLASSES:
        raise ValueError(
            f"plot_boundaries draws at most {MOST_CLASSES} classes, and this model has "
            f"{len(labels)}. Choose some of them with classes=[...]."
        )
    if np.ndim(model.predict(InputData.of(model, X).take(np.arange(1)).X)) > 1:
        raise ValueError(
            "model must choose one of several classes. This one predicts labels that are not "
            "mutually exclusive; use plot_dependence."
        )
    found = slice_model(model, X, inputs)
    order = [labels.index(label) for label in shown]
    P = found.predicted[:, :, order]
    winners = np.array(order)[P.argmax(axis=2)]
    ax = get_ax(ax)
    _draw_regions(ax, winners, found.extent, len(labels))
    _edges(ax, found, P)
    drawn = points and y is not None
    rows = np.flatnonzero(found.near & np.isin(y, shown)) if drawn else np.arange(0)
    if drawn:
        some = drawn_rows(rows)
        plot_points(found.points[some], np.asarray(y)[some], ax, size=20, classes=np.array(labels))
    _describe(ax, found, len(rows))
    _region_legend(ax, labels, order, outside=True)
    return ax


def _draw_regions(
    ax: Axes, winners: Array, extent: tuple[float, float, float, float], n_classes: int
) -> None:
    """Color each point of a grid with the pale color of its class."""
    ax.imshow(
        winners,
        extent=extent,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
        cmap=ListedColormap([pale(k) for k in range(n_classes)]),
        vmin=0,
        vmax=n_classes - 1,
    )


def _region_legend(
    ax: Axes, labels: Sequence[Any], shown: Sequence[int], *, outside: bool = False
) -> None:
    """A legend with the region of every class, and its marker if points are drawn."""
    handles: dict[str, Any] = {}
    markers = {text: handle for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    for k in list(shown)[:LEGEND_CLASSES]:
        text = plain(labels[k])
        patch = Patch(facecolor=pale(k), edgecolor=BOUNDARY, linewidth=0.5)
        handles[text] = (patch, markers[text]) if text in markers else patch
    if len(shown) > LEGEND_CLASSES:
        handles[f"and {len(shown) - LEGEND_CLASSES} more"] = Patch(facecolor="none")
    ax.legend(
        list(handles.values()),
        list(handles),
        title="predicted class",
        fontsize=8,
        title_fontsize=8,
        **({"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if outside else {"loc": "best"}),
    )


def plot_prediction(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    inputs: Sequence[str] | None = None,
    target: str = "y",
    points: bool = True,
) -> Axes:
    """Draw the number that a regressor predicts in the plane of two inputs.

    Parameters
    ----------
    model : fitted regressor, or Pipeline
        A regressor with one output.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, in the form that the model accepts.
    y : array of shape (n_samples,), optional
        True values of the rows near the plane, drawn on the same color scale.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    inputs : sequence of two str, optional
        Names of two columns. The default is the two most important inputs.
    target : str
        Name of the predicted number.
    points : bool
        Whether to draw the points.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    _check_fitted(model, "regressor", hasattr(model, "predict"))
    found = slice_model(model, X, inputs)
    Z = found.predicted[:, :, 0]
    drawn = points and y is not None
    rows = np.flatnonzero(found.near) if drawn else np.arange(0)
    some = drawn_rows(rows)
    values = np.asarray(y, dtype=float)[some] if drawn else Z
    low, high = min(Z.min(), values.min()), max(Z.max(), values.max())
    ax = get_ax(ax)
    style = {"cmap": "viridis", "vmin": low, "vmax": high}
    image = ax.imshow(
        Z, extent=found.extent, origin="lower", aspect="auto", interpolation="nearest", **style
    )
    if high > low and not any(axis.has_categories for axis in found.axes):
        places = (axis.places for axis in found.axes)
        lines = ax.contour(*places, Z, 8, colors="white", linewidths=0.6)
        ax.clabel(lines, fontsize=7, fmt=rounded)
    if drawn:
        across, along = found.points[some].T
        ax.scatter(across, along, c=values, s=22, edgecolors="black", linewidths=0.5, **style)
    bar = ax.figure.colorbar(image, ax=ax, label=f"predicted {plain(target)}")
    plain_ticks(bar.ax)
    _describe(ax, found, len(rows))
    return ax


def _check_fitted(model: Any, kind: str, fitted: bool) -> None:
    if isinstance(model, Network) or not fitted:
        raise TypeError(
            f"model must be a fitted {kind}, or a Pipeline that ends with one. Got "
            f"{type(model).__name__}; plot_regions draws a Network with two inputs."
        )


def _describe(ax: Axes, found: ModelSlice, near: int) -> None:
    """Write the names of the inputs, the fixed values and the number of points."""
    title, count = found.title, len(found.near)
    rows = f"the {near} of {count} rows nearest to this plane"
    if near > MOST_POINTS:
        title += f"\nPoints: a random choice of {MOST_POINTS} of {rows if near < count else count}"
    elif 0 < near < count:
        title += f"\nPoints: {rows}"
    for axis, input_axis in zip("xy", found.axes, strict=True):
        input_axis.label(ax, axis)
    plain_ticks(ax)
    ax.set_title(title.strip(), fontsize=9, loc="left")


def _edges(ax: Axes, found: ModelSlice, P: Array) -> None:
    """Draw the lines between regions, where the two largest probabilities are equal."""
    if any(axis.has_categories for axis in found.axes):
        return  # the regions are strips of one color per category
    x, y = (axis.places for axis in found.axes)
    winners = P.argmax(axis=2)
    second, first = np.moveaxis(np.partition(P, -2, axis=2)[:, :, -2:], 2, 0)
    for k in np.unique(winners):
        margin = P[:, :, k] - np.where(winners == k, second, first)
        if margin.min() < 0 < margin.max():
            ax.contour(x, y, margin, [0.0], colors=BOUNDARY, linewidths=1.0)


def plot_regions(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    window: Window | None = None,
    size: float = 14.0,
    legend: bool = True,
) -> Axes:
    """Draw the regions in which a classifier with two inputs predicts each class.

    For a single layer, the lines between the regions are exact conics. For a model with hidden
    layers, they are the edges of the colored grid.

    Parameters
    ----------
    model : fitted classifier, Pipeline, or Network
        A classifier with two inputs.
    X : array of shape (n_samples, 2), optional
        Points to draw on top.
    y : array of shape (n_samples,), optional
        Class of each point, which determines its color. Without y, no points are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it surrounds X.
    size : float
        Size of the markers.
    legend : bool
        Whether to draw a legend with the classes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    selected = select_layer(model, -1)
    names = selected.space.names
    if not selected.view.chooses_a_class:
        raise ValueError(
            f"model must be a classifier of exclusive classes. Got {selected.activation!r} outputs."
        )
    if selected.space.kind == "inputs" and len(names) != 2:
        raise ValueError(
            f"model must have two inputs. Got {len(names)}; use plot_boundaries for more."
        )
    window = get_window(window, X)
    ax = get_ax(ax)
    side_x, side_y = np.linspace(*window[:2], FINE_GRID), np.linspace(*window[2:], FINE_GRID)
    grid = np.stack(np.meshgrid(side_x, side_y), axis=-1).reshape(-1, 2)
    winners = _scores(model, grid).argmax(axis=1).reshape(FINE_GRID, FINE_GRID)
    count = len(selected.labels)
    _draw_regions(ax, winners, window, count)
    if selected.space.kind == "inputs":
        for piece in _ties(model, selected, window):
            ax.plot(*piece.T, color=BOUNDARY, linewidth=1.6, zorder=2)
    else:
        for k in np.unique(winners) if winners.min() < winners.max() else ():
            ax.contour(side_x, side_y, winners == k, [0.5], colors=BOUNDARY, linewidths=1.2)
    if X is not None and y is not None:
        plot_points(X, y, ax, size=size, classes=selected.labels)
    show_window(ax, window)
    if selected.space.kind == "hidden":
        fitted_names = input_names_of(model)
        names = ["x1", "x2"] if fitted_names is None else fitted_names
    if len(names) == 2:
        ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]))
    if legend:
        _region_legend(ax, selected.labels, range(count))
    return ax


def _ties(model: Any, selected: ExplainedLayer, window: Window) -> list[Array]:
    """The parts of the conics z_i = z_j on which no third class has a larger z."""
    pieces = []
    for i, j in itertools.combinations(range(len(selected.labels)), 2):
        for arc in arcs(tie(selected, i, j), window, step=1 / 400):
            z = _scores(model, arc)
            others = np.delete(z, [i, j], axis=1).max(axis=1, initial=-np.inf)
            seen = np.maximum(z[:, i], z[:, j]) >= others
            runs = np.split(arc, np.flatnonzero(np.diff(seen)) + 1)
            pieces += [run for run in runs[0 if seen[0] else 1 :: 2] if len(run) > 1]
    return pieces


def _scores(model: Any, X: Array) -> Array:
    """z of each class; with a single output, z_1 = z and z_0 = 0."""
    rows, names = X, input_names_of(model)
    if names is not None:  # a ColumnTransformer may need them
        with suppress(ImportError):
            import pandas as pd

            rows = pd.DataFrame(X, columns=names)
    with warnings.catch_warnings():  # without pandas, the grid points have no column names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        score = model.logits if isinstance(model, Network) else model.decision_function
        z = np.asarray(score(rows))
    if z.ndim == 1 or z.shape[1] == 1:
        z = np.column_stack([np.zeros(len(X)), z.reshape(len(X))])
    return z


def slice_model(model: Any, X: Any, inputs: Sequence[str] | None = None) -> ModelSlice:
    """Predict in the plane of two inputs, by default the two most important ones.

    The other inputs are fixed at a typical row: the median of a number or of dates, and the most
    frequent category. If a classifier predicts the same class in all of this plane, another plane
    is drawn; see `_with_a_boundary`.
    """
    columns = InputData.of(model, X)
    names = columns.names
    if len(names) < 2:
        raise ValueError("a model with a single input has no plane to draw. Plot the dependence.")
    ranked = dict.fromkeys((0, 1), 1.0)
    if len(names) > 2:
        ranked = {names.index(one.name): one.total for one in rank_inputs(model, X)}
    chosen = list(inputs or [names[k] for k in list(ranked)[:2]])
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise ValueError(f"inputs must be two of {', '.join(names)}. Got {chosen}.")
    dims = [names.index(name) for name in chosen]
    axes = InputAxis.of(columns, dims[0]), InputAxis.of(columns, dims[1])
    typical = {k: typical_value(columns, k) for k in ranked if k not in dims}
    predicted = predictions(model, _plane(columns, dims, axes, typical))
    where = "at typical values"
    if classes_of(model) is not None and _n_classes(predicted) < 2:
        typical, where, predicted = _with_a_boundary(model, columns, dims, axes, typical)
    rng = np.random.default_rng(0)
    points = np.column_stack(
        [axis.positions(columns.values(k), rng) for axis, k in zip(axes, dims, strict=True)]
    )
    on_axes = np.isfinite(points).all(axis=1)  # the axes may lack rare categories
    fixed = [(names[k], value) for k, value in typical.items()]
    return ModelSlice(
        axes,
        predicted.reshape(len(axes[1].values), len(axes[0].values), -1),
        points,
        near=_near(columns, typical, ranked) & on_axes,
        title=_title(chosen, fixed, where, given=inputs is not None),
    )


def typical_value(columns: InputData, k: int) -> Any:
    """The median of a number or of dates, or the most frequent category."""
    numbers = columns.numbers(k)
    if numbers is None:
        return typical_text(columns.values(k).tolist())
    present = np.sort(numbers[np.isfinite(numbers)])
    return float(present[len(present) // 2])  # one of the values, so that whole numbers stay whole


def _plane(
    columns: InputData, dims: list[int], axes: tuple[InputAxis, InputAxis], typical: dict[int, Any]
) -> Any:
    """One row per point of the grid; the first input varies fastest."""
    first, second = axes
    count = len(first.values) * len(second.values)
    rows = columns.take(np.arange(count) % len(columns))
    across = np.array(first.values, dtype=object)[np.arange(count) % len(first.values)]
    along = np.array(second.values, dtype=object)[np.arange(count) // len(first.values)]
    return rows.replaced({**typical, dims[0]: across, dims[1]: along})


def _near(columns: InputData, typical: dict[int, Any], weights: dict[int, float]) -> Array:
    """The quarter of the rows whose other inputs are nearest to the typical row, by importance."""
    if not typical:
        return np.ones(len(columns), dtype=bool)
    distance = np.zeros(len(columns))
    for k, value in typical.items():
        numbers = columns.numbers(k)
        if numbers is None:
            apart = np.array([one != value for one in columns.values(k).tolist()], dtype=float)
        else:
            spread = np.nanstd(numbers)
            # a missing value is imputed, by a typical one
            apart = np.nan_to_num((numbers - value) / (spread if spread > 0 else 1.0), nan=0.0)
        distance += weights[k] * apart**2
    return distance <= np.quantile(distance, 0.25)


def _with_a_boundary(
    model: Any,
    columns: InputData,
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
    rows = np.argsort(two_largest[:, 1] - two_largest[:, 0], kind="stable")[:5]
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


def _between_classes(model: Any, columns: InputData, typical: dict[int, Any]) -> dict[int, Any]:
    """The mean of the medians of the rows of each predicted class."""
    predicted = np.asarray(model.predict(columns.X))
    parts = [columns.take(np.flatnonzero(predicted == label)) for label in np.unique(predicted)]
    numeric = [k for k in typical if columns.numbers(k) is not None]
    medians = {k: [typical_value(part, k) for part in parts] for k in numeric}
    return {**typical, **{k: float(np.mean(values)) for k, values in medians.items()}}


def _title(chosen: list[str], fixed: list[tuple[str, Any]], where: str, *, given: bool) -> str:
    if not fixed:
        return ""
    which = "Inputs" if given else "The two most important inputs"
    pairs = (f"{plain(name)} = {plain(written(value))}" for name, value in fixed)
    values = listed((pair.replace(" ", NO_BREAK) for pair in pairs), LISTED)
    lines = [
        f"{which}: {plain(chosen[0])} and {plain(chosen[1])}",
        *textwrap.wrap(f"Fixed {where}: {values}", 78),
    ]
    return "\n".join(lines).replace(NO_BREAK, " ")
