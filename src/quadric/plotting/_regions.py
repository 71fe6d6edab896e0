"""Points, the regions that a model gives to each class, and its neurons' boundaries."""

import itertools
import warnings
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb

from quadric._utils.arrays import Array, unmasked
from quadric.explain import boundary, quadrics
from quadric.explain._model import select_layer
from quadric.geometry import Quadric
from quadric.geometry._conic_arcs import Window, arcs
from quadric.network import Network
from quadric.plotting._conics import plot_conic
from quadric.plotting._style import (
    BOUNDARY,
    COLORS,
    color_of,
    dashes_of,
    get_ax,
    marker_of,
    plain,
    show_window,
    window_of,
)

GRID = 400


def plot_points(
    X: Any, y: Any, ax: Axes | None = None, *, size: float = 14.0, classes: Any = None
) -> Axes:
    """The points of each class, in its colour and with its marker.

    Parameters
    ----------
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
    ax : matplotlib Axes, optional
    size : float
        Of a marker, as in `Axes.scatter`.
    classes : sequence, optional
        All classes in the order of their colours; the default is those in y.
    """
    X, y = _plane_points(X), np.asarray(unmasked("y", y))
    if y.shape != (len(X),):
        raise ValueError(f"y must hold {len(X)} labels, one a point. Got shape {y.shape}.")
    ax = get_ax(ax)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    unknown = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(f"y must hold the model's classes, {classes.tolist()}. Got {unknown}.")
    for k, label in enumerate(classes.tolist()):
        points = X[y == label]
        ax.scatter(
            points[:, 0], points[:, 1], s=size, c=color_of(k), marker=marker_of(k), linewidths=0.4,
            edgecolors="white", zorder=1.8, label=plain(label),  # boundaries run above
        )  # fmt: skip
    return ax


def plot_regions(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    window: Window | None = None,
    size: float = 14.0,
) -> Axes:
    """The regions in which a classifier of two inputs decides for each class.

    The lines between them are exact conics where one layer of neurons decides; behind a hidden
    layer they are the edges of the coloured grid.

    Parameters
    ----------
    model : fitted classifier, Pipeline, or Network
    X, y : arrays, optional
        Points to draw on top.
    ax : matplotlib Axes, optional
    window : (x from, x to, y from, y to), optional
        The default surrounds X.
    size : float
        Of the points' markers.
    """
    parts = select_layer(model, -1)
    last = parts.network.activations[-1]
    if last not in ("logistic", "softmax") or parts.multilabel:
        raise ValueError(f"model must be a classifier of exclusive classes. Got {last!r} outputs.")
    if parts.space.kind == "inputs" and len(parts.space.names) != 2:
        raise ValueError(
            f"model must have two inputs. Got {len(parts.space.names)}; for more use plot_slices."
        )
    window = _window(window, X)
    ax = get_ax(ax)
    side_x, side_y = np.linspace(*window[:2], GRID), np.linspace(*window[2:], GRID)
    grid = np.stack(np.meshgrid(side_x, side_y), axis=-1).reshape(-1, 2)
    winners = _scores(model, grid).argmax(axis=1).reshape(GRID, GRID)
    count = max(2, parts.network.n_outputs)
    ax.imshow(
        winners, extent=window, origin="lower", aspect="auto", interpolation="nearest", zorder=0,
        cmap=ListedColormap([_pale(k) for k in range(count)]), vmin=0, vmax=count - 1,
    )  # fmt: skip
    if parts.space.kind == "inputs":
        for piece in _ties(model, parts.classes, count, window):
            ax.plot(*piece.T, color=BOUNDARY, linewidth=1.6, zorder=2)
    else:
        for k in range(count):
            inside = (winners == k).astype(float)
            if 0 < inside.mean() < 1:
                ax.contour(side_x, side_y, inside, [0.5], colors=BOUNDARY, linewidths=1.2)
    if X is not None and y is not None:
        classes = np.arange(count) if parts.classes is None else parts.classes
        plot_points(X, y, ax, size=size, classes=classes)
    show_window(ax, window)
    _name_axes(ax, parts.space.names)
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
    """The points of each class and the boundary z = 0 of its neuron, in the same colour.

    Parameters
    ----------
    model : fitted classifier, Pipeline, Network, or a list of Quadric
        With one neuron a class, and two inputs.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
    ax : matplotlib Axes, optional
    window : (x from, x to, y from, y to), optional
    size : float
        Of the points' markers.
    """
    classes = None
    if isinstance(model, (list, tuple)):
        conics = list(model)
    else:
        conics, classes = quadrics(model), select_layer(model).classes
    ax = get_ax(ax)
    window = _window(window, X)
    plot_points(X, y, ax, size=size, classes=classes)
    first = 1 if len(conics) == 1 else 0  # a single neuron speaks for the second class
    for k, conic in enumerate(conics, start=first):
        plot_conic(conic, ax, window=window, color=color_of(k), linestyle=dashes_of(k))
    ax.set_aspect("equal")
    return ax


def _ties(model: Any, classes: Array | None, count: int, window: Window) -> list[Array]:
    """The parts of the conics z_i = z_j on which no third class has a larger z."""
    labels = list(range(count)) if classes is None else classes.tolist()
    pieces = []
    for i, j in itertools.combinations(range(count), 2):
        conic: Quadric = boundary(model, labels[i], labels[j])
        for arc in arcs(conic, window, step=1 / 400):
            if len(arc) == 1:
                continue
            z = _scores(model, arc)
            if z.shape[1] > 2:
                others = np.delete(z, [i, j], axis=1).max(axis=1)
                seen = np.maximum(z[:, i], z[:, j]) >= others
            else:
                seen = np.ones(len(arc), dtype=bool)
            edges = np.flatnonzero(np.diff(seen)) + 1
            runs = np.split(arc, edges)
            pieces += [run for run in runs[0 if seen[0] else 1 :: 2] if len(run) > 1]
    return pieces


def _scores(model: Any, X: Array) -> Array:
    """z of each class; a single output is z_1 beside z_0 = 0."""
    z = model.logits(X) if isinstance(model, Network) else _decision(model, X)
    if z.ndim == 1 or z.shape[1] == 1:
        z = np.column_stack([np.zeros(len(X)), z.reshape(len(X))])
    return z


def _decision(model: Any, X: Array) -> Array:
    with warnings.catch_warnings():  # the points of a picture have no column names, and need none
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        names = getattr(model, "feature_names_in_", None)
        if names is not None:  # a transformer of columns may ask for them by name
            try:
                import pandas as pd
            except ImportError:
                pass
            else:
                return np.asarray(model.decision_function(pd.DataFrame(X, columns=names)))
        return np.asarray(model.decision_function(X))


def _pale(k: int) -> tuple[float, ...]:
    """The colour of a class for areas; from the eighth class on darker."""
    strength = 0.36 if k < len(COLORS) else 0.6
    return tuple(1 - strength * (1 - channel) for channel in to_rgb(color_of(k)))


def _window(window: Window | None, X: Any) -> Window:
    if window is not None:
        return window
    if X is None:
        raise ValueError("window must be given where there are no points X to surround.")
    return window_of(_plane_points(X))


def _plane_points(X: Any) -> Array:
    X = np.asarray(unmasked("X", X), dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(
            f"X must have shape (n_samples, 2). Got {X.shape}; for more features use plot_slices."
        )
    return X


def _name_axes(ax: Axes, names: list[str]) -> None:
    if len(names) == 2:
        ax.set_xlabel(plain(names[0]))
        ax.set_ylabel(plain(names[1]))
