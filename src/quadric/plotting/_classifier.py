"""Plots of a classifier with two inputs: regions and clusters."""

import itertools
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from quadric.checks import Array
from quadric.explain import ExplainedLayer, quadrics, select_layer, tie
from quadric.geometry import Window, arcs
from quadric.network import Network
from quadric.plotting._boundaries import region_legend
from quadric.plotting._quadrics import plot_conic
from quadric.plotting._style import (
    BOUNDARY,
    color_of,
    dashes_of,
    get_ax,
    get_window,
    pale,
    plain,
    plot_points,
    show_window,
)

GRID = 400


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
        last = selected.activation
        raise ValueError(f"model must be a classifier of exclusive classes. Got {last!r} outputs.")
    if selected.space.kind == "inputs" and len(names) != 2:
        raise ValueError(
            f"model must have two inputs. Got {len(names)}; use plot_boundaries for more."
        )
    window = get_window(window, X)
    ax = get_ax(ax)
    side_x, side_y = np.linspace(*window[:2], GRID), np.linspace(*window[2:], GRID)
    grid = np.stack(np.meshgrid(side_x, side_y), axis=-1).reshape(-1, 2)
    winners = _scores(model, grid).argmax(axis=1).reshape(GRID, GRID)
    count = len(selected.labels)
    ax.imshow(
        winners,
        extent=window,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
        cmap=ListedColormap([pale(k) for k in range(count)]),
        vmin=0,
        vmax=count - 1,
    )
    if selected.space.kind == "inputs":
        for piece in _ties(model, selected, window):
            ax.plot(*piece.T, color=BOUNDARY, linewidth=1.6, zorder=2)
    else:
        for k in np.unique(winners) if winners.min() < winners.max() else ():
            inside = (winners == k).astype(float)
            ax.contour(side_x, side_y, inside, [0.5], colors=BOUNDARY, linewidths=1.2)
    if X is not None and y is not None:
        plot_points(X, y, ax, size=size, classes=selected.labels)
    show_window(ax, window)
    if selected.space.kind == "hidden":
        fitted = getattr(model, "feature_names_in_", None)
        names = ["x1", "x2"] if fitted is None else list(fitted)
    if len(names) == 2:
        ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]))
    if legend:
        region_legend(ax, selected.labels, range(count))
    return ax


def plot_clusters(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    window: Window | None = None,
    size: float = 8.0,
) -> Axes:
    """Draw the points of each class and the boundary z = 0 of its neuron in the same color.

    Parameters
    ----------
    model : fitted classifier, Pipeline, Network, or list of Quadric
        A model with two inputs and one neuron per class, or the boundaries of such neurons.
    X : array of shape (n_samples, 2)
        Points.
    y : array of shape (n_samples,)
        Class of each point, which determines its color.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it surrounds X.
    size : float
        Size of the markers.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    conics, classes = model, None
    if not isinstance(model, (list, tuple)):
        conics, classes = quadrics(model), select_layer(model).view.classes
    ax = get_ax(ax)
    window = get_window(window, X)
    plot_points(X, y, ax, size=size, classes=classes)
    first = 1 if len(conics) == 1 else 0  # a single neuron scores the second class
    for k, conic in enumerate(conics, start=first):
        plot_conic(conic, ax, window=window, color=color_of(k), linestyle=dashes_of(k))
    ax.set_aspect("equal")
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
    z = model.logits(X) if isinstance(model, Network) else _decision(model, X)
    if z.ndim == 1 or z.shape[1] == 1:
        z = np.column_stack([np.zeros(len(X)), z.reshape(len(X))])
    return z


def _decision(model: Any, X: Any) -> Array:
    with warnings.catch_warnings():  # the grid points have no column names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        names = getattr(model, "feature_names_in_", None)
        if names is not None:  # a ColumnTransformer may need them
            with suppress(ImportError):
                import pandas as pd

                X = pd.DataFrame(X, columns=names)
        return np.asarray(model.decision_function(X))
