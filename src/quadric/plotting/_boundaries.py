"""Plots of a model in the plane of two inputs: regions of classes, and predicted numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from quadric.checks import Array
from quadric.explain import Columns
from quadric.network import Network
from quadric.plotting._model_slice import ModelSlice, slice_model
from quadric.plotting._style import BOUNDARY, get_ax, pale, plain, plot_points

LEGEND_CLASSES = 20
MOST_CLASSES = 200


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

    The other inputs are fixed at a typical row: the median of a number, and the most frequent
    category. Of the data, the quarter of the rows that is nearest to this plane is drawn.

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
    _check_fitted(model, "classifier", "classes_")
    labels = list(model.classes_)
    shown = labels if classes is None else list(classes)
    if len(shown) < 2 or not set(shown) <= set(labels):
        names = ", ".join(map(str, labels))
        raise ValueError(f"classes must hold two or more of {names}. Got {shown}.")
    if len(shown) > MOST_CLASSES:
        raise ValueError(
            f"plot_boundaries draws at most {MOST_CLASSES} classes, and this model has "
            f"{len(labels)}. Choose some of them with classes=[...] (--classes)."
        )
    row = Columns(X, getattr(model, "feature_names_in_", None)).take(np.arange(1)).X
    if np.ndim(model.predict(row)) > 1:
        raise ValueError(
            "model must choose one of several classes. This one predicts labels that are not "
            "mutually exclusive; use plot_dependence."
        )
    found = slice_model(model, X, inputs)
    order = [labels.index(label) for label in shown]
    P = found.predicted[:, :, order]
    winners = np.array(order)[P.argmax(axis=2)]
    ax = get_ax(ax)
    ax.imshow(
        winners,
        extent=found.extent,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
        cmap=ListedColormap([pale(k) for k in range(len(labels))]),
        vmin=0,
        vmax=len(labels) - 1,
    )
    _edges(ax, found, P)
    drawn = points and y is not None
    rows = found.near & np.isin(y, shown) if drawn else np.zeros(len(found.near), dtype=bool)
    if drawn:
        plot_points(found.points[rows], np.asarray(y)[rows], ax, size=20, classes=np.array(labels))
    _describe(ax, found, int(rows.sum()))
    region_legend(ax, labels, order, outside=True)
    return ax


def region_legend(
    ax: Axes, labels: Sequence[Any], shown: Sequence[int], *, outside: bool = False
) -> None:
    """A legend with the region of every class, and its marker if points are drawn."""
    handles, texts = [], []
    markers = {text: handle for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    for k in list(shown)[:LEGEND_CLASSES]:
        text = plain(labels[k])
        patch = Patch(facecolor=pale(k), edgecolor=BOUNDARY, linewidth=0.5)
        handles.append((patch, markers[text]) if text in markers else patch)
        texts.append(text)
    if len(shown) > LEGEND_CLASSES:
        handles.append(Patch(facecolor="none"))
        texts.append(f"and {len(shown) - LEGEND_CLASSES} more")
    ax.legend(
        handles,
        texts,
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
    _check_fitted(model, "regressor", "predict")
    found = slice_model(model, X, inputs)
    Z = found.predicted[:, :, 0]
    drawn = points and y is not None
    values = np.asarray(y, dtype=float)[found.near] if drawn else Z
    low, high = min(Z.min(), values.min()), max(Z.max(), values.max())
    ax = get_ax(ax)
    style = {"cmap": "viridis", "vmin": low, "vmax": high}
    image = ax.imshow(
        Z, extent=found.extent, origin="lower", aspect="auto", interpolation="nearest", **style
    )
    if all(axis.categories is None for axis in found.axes) and high > low:
        lines = ax.contour(*(axis.places for axis in found.axes), Z, 8, colors="white")
        lines.set_linewidth(0.6)
        ax.clabel(lines, fontsize=7)
    if drawn:
        across, along = found.points[found.near].T
        ax.scatter(across, along, c=values, s=22, edgecolors="black", linewidths=0.5, **style)
    ax.figure.colorbar(image, ax=ax, label=f"predicted {plain(target)}")
    _describe(ax, found, len(values) if drawn else 0)
    return ax


def _check_fitted(model: Any, kind: str, attribute: str) -> None:
    if isinstance(model, Network) or not hasattr(model, attribute):
        raise TypeError(
            f"model must be a fitted {kind}, or a Pipeline that ends with one. Got "
            f"{type(model).__name__}; plot_regions draws a Network with two inputs."
        )


def _describe(ax: Axes, found: ModelSlice, drawn: int) -> None:
    """Write the names of the inputs, the fixed values and the number of points."""
    title = found.title
    if drawn and not found.near.all():
        title += f"\nPoints: the {drawn} of {len(found.near)} rows nearest to this plane"
    for axis, input_axis in zip("xy", found.axes, strict=True):
        input_axis.label(ax, axis)
    ax.set_title(title, fontsize=9, loc="left")


def _edges(ax: Axes, found: ModelSlice, P: Array) -> None:
    """Draw the lines between regions, where the two largest probabilities are equal."""
    if any(axis.categories is not None for axis in found.axes):
        return  # the regions are strips of one color per category
    x, y = (axis.places for axis in found.axes)
    winners = P.argmax(axis=2)
    second, first = np.moveaxis(np.partition(P, -2, axis=2)[:, :, -2:], 2, 0)
    for k in np.unique(winners):
        margin = P[:, :, k] - np.where(winners == k, second, first)
        if margin.min() < 0 < margin.max():
            ax.contour(x, y, margin, [0.0], colors=BOUNDARY, linewidths=1.0)
