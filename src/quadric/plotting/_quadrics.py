"""Quadrics: conics, surfaces in space, slices in more dimensions, and conics during training."""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from quadric.checks import Array, axis_names, check_number
from quadric.explain import quadrics, select_layer
from quadric.geometry import Quadric, Window, arcs, check_conic, surface_meshes
from quadric.plotting._style import (
    BOUNDARY,
    color_of,
    dashes_of,
    get_ax,
    get_figure,
    get_window,
    plain,
    plot_points,
    points_of,
    show_window,
)

MOST_PANELS = 12


def plot_conic(
    conic: Quadric,
    ax: Axes | None = None,
    *,
    window: Window | None = None,
    color: str = BOUNDARY,
    linestyle: Any = "-",
    linewidth: float = 2.0,
    label: str | None = None,
) -> Axes:
    """Draw a conic as arcs whose points satisfy the equation up to rounding errors.

    Parameters
    ----------
    conic : Quadric
        A quadric in two dimensions; use `Quadric.slice` for one in more dimensions.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it is the part that `ax` shows, or the surroundings
        of the curve.
    color : str
        Color of the lines.
    linestyle : str or tuple
        Style of the lines.
    linewidth : float
        Width of the lines.
    label : str, optional
        Label of the first line.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    check_conic(conic)
    fresh = ax is None or not ax.has_data()
    ax = get_ax(ax)
    if window is None:
        x, y = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        window = surroundings(conic) if fresh else (x[0], x[1], y[0], y[1])
    for k, piece in enumerate(arcs(conic, window)):
        ax.plot(
            *piece.T,
            color=color,
            linestyle=linestyle,
            linewidth=linewidth,
            marker="o" if len(piece) == 1 else None,
            markersize=3 * linewidth,
            label=label if k == 0 else None,
        )
    show_window(ax, window)
    if fresh:
        ax.set_aspect("equal")
    return ax


def surroundings(conic: Quadric) -> Window:
    """A square window that shows the characteristic part of a conic."""
    middle = np.zeros(2) if conic.is_empty else conic.nearest(np.zeros(2))
    reach = 1.0
    if conic.center is not None:
        middle, lengths = conic.center, _positive_half_lengths(conic)
        if len(lengths):
            reach = float(lengths.max()) * (1.3 if conic.is_ellipsoid else 3.0)
    elif conic.kind == "parabola":
        middle = conic._form.origin
        reach = 4 * conic._form.slope / float(np.abs(conic._form.eigenvalues).max())
    x, y = middle.tolist()
    window = x - reach, x + reach, y - reach, y + reach
    if not (np.isfinite(window).all() and window[0] < window[1] and window[2] < window[3]):
        raise ValueError(
            f"the conic cannot be drawn: its center ({x:.3g}, {y:.3g}) and its size {reach:.3g} do "
            "not define a window. Pass window, or rescale the data before fitting."
        )
    return window


def _positive_half_lengths(surface: Quadric) -> Array:
    lengths = surface.axes.half_lengths
    return lengths[np.isfinite(lengths) & (lengths > 0)]


def plot_surface(
    surface: Quadric,
    ax: Any = None,
    *,
    extent: float | None = None,
    color: str | None = None,
    alpha: float = 0.55,
    names: Sequence[str] | None = None,
) -> Any:
    """Draw a quadric in three dimensions as a mesh whose vertices lie on it.

    Parameters
    ----------
    surface : Quadric
        A quadric in three dimensions.
    ax : mpl_toolkits.mplot3d.axes3d.Axes3D, optional
        Axes to draw on. By default, new axes are created.
    extent : float, optional
        Distance from the center up to which to draw. The default is chosen to fit the part that
        `ax` shows, or the surface.
    color : str, optional
        Color of the surface.
    alpha : float
        Opacity of the surface.
    names : sequence of str, optional
        Names of the three coordinates.

    Returns
    -------
    mpl_toolkits.mplot3d.axes3d.Axes3D
        The axes.
    """
    if extent is not None:
        extent = check_number("extent", extent, above=0)
    names = axis_names(names, 3)
    ax = get_ax(ax, space=True)
    around: Array | None = None
    if ax.has_data():
        limits = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
        around = limits.mean(axis=1)
        shown = float(np.abs(limits[:, 1] - limits[:, 0]).max() / 2)
    else:
        lengths = _positive_half_lengths(surface)
        shown = 2.5 * float(np.median(lengths)) if len(lengths) else 2.0
    for mesh in surface_meshes(surface, shown if extent is None else extent, around):
        ax.plot_surface(
            *mesh,
            color=(*to_rgb(color or color_of(0)), alpha),
            edgecolor=(1, 1, 1, 0.35),
            linewidth=0.3,
            rstride=1,
            cstride=1,
            shade=True,
        )
    x, y, z = map(plain, names)
    ax.set(aspect="equal", xlabel=x, ylabel=y, zlabel=z)
    ax.locator_params(nbins=5)
    return ax


def plot_slice(
    surface: Quadric,
    dims: Sequence[int],
    at: Any = None,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
    outline: bool = False,
    window: Window | None = None,
) -> Axes:
    """Draw the conic in which a plane parallel to two coordinate axes intersects a surface.

    Parameters
    ----------
    surface : Quadric
        A quadric in three or more dimensions.
    dims : sequence of two int
        Coordinates of the plane.
    at : array of shape (n,), optional
        A point in the plane. The default is the mean of X, or the center of the surface.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    names : sequence of str, optional
        Names of all coordinates.
    X : array of shape (n_samples, n), optional
        Points to project onto the plane.
    y : array of shape (n_samples,), optional
        Class of each point, which determines its color.
    outline : bool
        Whether to draw, as a dashed line, the outline of the whole surface as seen along the other
        coordinates, if it has one.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it surrounds X or the conic.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    n = surface.n_dims
    ax = get_ax(ax)
    names = axis_names(names, n)
    if len(dims) != 2 or not all(0 <= dim < n for dim in dims):
        raise ValueError(f"dims must be two coordinates below {n}. Got {dims}.")
    dims = list(dims)
    if X is not None:
        points = points_of(X, n)
        at = points.mean(axis=0) if at is None else at
        window = get_window(window, points[:, dims])
        if y is None:
            ax.scatter(points[:, dims[0]], points[:, dims[1]], s=6, c=color_of(6), alpha=0.5)
        else:
            plot_points(points[:, dims], y, ax, size=9)
    section = surface.slice(dims, at)
    window = surroundings(section) if window is None else window
    plot_conic(section, ax, window=window)
    if outline:
        with suppress(ValueError):  # the surface has no outline
            plot_conic(surface.project(dims), ax, window=window, linestyle="--", linewidth=1.2)
    ax.set(xlabel=plain(names[dims[0]]), ylabel=plain(names[dims[1]]))
    ax.set_title(section.kind, fontsize=10)
    return ax


def plot_slices(
    surface: Quadric,
    at: Any = None,
    pairs: Sequence[Sequence[int]] | None = None,
    *,
    names: Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
    outline: bool = False,
    figure: Any = None,
) -> Figure:
    """Draw several slices of a surface side by side.

    Parameters
    ----------
    surface : Quadric
        A quadric in three or more dimensions.
    at : array of shape (n,), optional
        A point in all planes. The default is the mean of X, or the center of the surface.
    pairs : sequence of pairs of int, optional
        Coordinates of each plane. The default is the six pairs with the strongest terms
        q_ij x_i x_j.
    names, X, y, outline : optional
        As in `plot_slice`.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    if pairs is None:
        scale = 1.0 if X is None else points_of(X, surface.n_dims).std(axis=0)
        strength = np.abs(surface.Q * scale) * np.reshape(scale, (-1, 1))
        every = itertools.combinations(range(surface.n_dims), 2)
        pairs = sorted(every, key=lambda pair: -strength[pair])[:6]
    if not 0 < len(pairs) <= MOST_PANELS:
        raise ValueError(f"pairs must hold 1 to {MOST_PANELS} pairs. Got {len(pairs)}.")
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = get_figure(figure, 3.6 * columns, 3.4 * rows)
    for k, pair in enumerate(pairs):
        ax = figure.add_subplot(rows, columns, k + 1)
        plot_slice(surface, pair, at, ax, names=names, X=X, y=y, outline=outline)
    return figure


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


def animate(
    frames: Sequence[Sequence[Quadric]],
    X: Any,
    y: Any,
    *,
    window: Window | None = None,
    titles: Sequence[str] | None = None,
    interval: int = 80,
) -> FuncAnimation:
    """Animate the boundaries of neurons during training.

    Parameters
    ----------
    frames : sequence of lists of Quadric
        Boundaries of the neurons, one list per frame.
    X : array of shape (n_samples, 2)
        Points.
    y : array of shape (n_samples,)
        Class of each point.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it surrounds X.
    titles : sequence of str, optional
        Titles of the frames. By default, they count the epochs.
    interval : int
        Milliseconds between two frames.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        The animation.

    Examples
    --------
    Collect the boundaries after every epoch. To save the animation, call
    ``animation.save("learning.gif")``.

    >>> from quadric import Network, datasets
    >>> from quadric.explain import quadrics
    >>> X, y = datasets.xor()
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    >>> frames = []
    >>> history = net.fit(X, y, epochs=5, callback=lambda epoch: frames.append(quadrics(net)))
    >>> len(frames)
    5
    """
    frames = [list(frame) for frame in frames]
    if not frames or not all(frames):
        raise ValueError("frames must hold at least one list, each with at least one quadric.")
    if titles is not None and len(titles) != len(frames):
        raise ValueError(
            f"titles must hold {len(frames)} titles, one per frame. Got {len(titles)}."
        )
    X = points_of(X, 2)
    window = get_window(window, X, 0.35)
    figure = Figure(figsize=(4, 4), layout="constrained", dpi=90)
    ax = figure.subplots()
    several = max(map(len, frames)) > 1

    def draw(index: int) -> list[Any]:
        ax.clear()
        plot_points(X, y, ax, size=30)
        for k, conic in enumerate(frames[index]):
            color = color_of(k) if several else BOUNDARY
            plot_conic(conic, ax, window=window, color=color, linestyle=dashes_of(k))
        kind = "" if several else f": {frames[index][0].kind}"
        title = f"epoch {index + 1}{kind}" if titles is None else titles[index]
        ax.set(aspect="equal", title=title)
        return list(ax.lines)

    return FuncAnimation(figure, draw, frames=len(frames), interval=interval)
