"""Plots of certified radii: the certified accuracy, and images above their nearest flips."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.certify import Radii
from quadric.checks import check_integer
from quadric.plotting._style import color_of, dashes_of, get_ax, get_figure, plain

CURVE_POINTS = 400
ROW_NAMES = ("image", "nearest flip", "difference")


def plot_certified_accuracy(
    found: Radii, y: Any = None, ax: Axes | None = None, *, label: str | None = None
) -> Axes:
    """Draw the share of rows that are right and certified, for every radius.

    Parameters
    ----------
    found : Radii
        The result of `quadric.certify.radius`.
    y : array of shape (n_samples,), optional
        The true classes. If None, all certified rows count.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created. Call the function several times with the
        same axes to compare models.
    label : str, optional
        Name of the curve in the legend.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = get_ax(ax)
    finite = found.radius[np.isfinite(found.radius) & (found.radius < 1e9)]
    end = float(np.quantile(finite, 0.995)) if len(finite) else 1.0
    at = np.linspace(0.0, end or 1.0, CURVE_POINTS)
    k = len(ax.get_lines())
    style = {"color": color_of(k), "linestyle": dashes_of(k), "linewidth": 2.0}
    style |= {} if label is None else {"label": plain(label)}
    ax.plot(at, found.certified_accuracy(y, at), **style)
    name = "certified share of rows" if y is None else "certified accuracy"
    end = max(end, ax.get_xlim()[1]) if k else end
    ax.set(xlabel="radius", ylabel=name, ylim=(0, 1.02), xlim=(0, end))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    if label is not None:
        ax.legend(frameon=False)
    return ax


def curve_figure(found: Radii, y: Any) -> Figure:
    """A figure of the certified accuracy, for the command line."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained", dpi=150)
    plot_certified_accuracy(found, y, figure.subplots())
    return figure


def plot_flips(
    found: Radii,
    X: Any,
    shape: tuple[int, int],
    *,
    rows: Sequence[int] | None = None,
    count: int = 8,
    figure: Any = None,
) -> Figure:
    """Draw images and, below each of them, the nearest image of another class.

    Parameters
    ----------
    found : Radii
        The result of `quadric.certify.radius` for images.
    X : array of shape (n_samples, height * width)
        The images.
    shape : (height, width)
        Shape of the images.
    rows : sequence of int, optional
        The images to draw. By default, images with a typical distance, of each predicted class in
        turn.
    count : int
        Number of images to draw if `rows` is not given.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with one column per image: the image, its nearest flip, and their difference.
    """
    X = np.asarray(X, dtype=float)
    if X.shape != found.nearest.shape or X.shape[1] != shape[0] * shape[1]:
        raise ValueError(
            f"X must have shape ({len(found.radius)}, {shape[0] * shape[1]}). Got {X.shape}."
        )
    count = check_integer("count", count, at_least=1)
    chosen = _typical_of_each_class(found, count) if rows is None else [int(row) for row in rows]
    if not chosen:
        raise ValueError("found has no row with a nearest image of another class to draw.")
    figure = get_figure(figure, 1.25 * len(chosen) + 0.7, 4.4)
    axes = figure.subplots(3, len(chosen), squeeze=False)
    low, high = X[chosen].min(), X[chosen].max()
    steps = found.nearest[chosen] - X[chosen]
    for column, (row, step) in enumerate(zip(chosen, steps, strict=True)):
        limit = np.abs(np.nan_to_num(step)).max() or 1.0  # NaN if there is no flip
        gray = {"cmap": "gray_r", "vmin": low, "vmax": high}
        colored = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        images = [(X[row], gray), (found.nearest[row], gray), (step, colored)]
        texts = [found.predicted[row], found.becomes[row], f"{found.distance[row]:.2g} away"]
        for ax, (image, style), text in zip(axes[:, column], images, texts, strict=True):
            ax.imshow(image.reshape(shape), interpolation="nearest", **style)
            ax.set_title(plain(text), fontsize=9)
            ax.set(xticks=[], yticks=[])
    for ax, name in zip(axes[:, 0], ROW_NAMES, strict=True):
        ax.set_ylabel(name, fontsize=9)
    return figure


def _typical_of_each_class(found: Radii, count: int) -> list[int]:
    """The rows whose distance is closest to the median of their class, of each class in turn."""
    ranked = []
    for label in np.unique(found.predicted):
        rows = np.flatnonzero((found.predicted == label) & np.isfinite(found.distance))
        if len(rows):
            unusual = np.abs(found.distance[rows] - np.median(found.distance[rows]))
            ranked += list(enumerate(rows[np.argsort(unusual, kind="stable")].tolist()))
    chosen = [row for _, row in sorted(ranked)[:count]]
    return sorted(chosen, key=lambda row: (str(found.predicted[row]), row))
