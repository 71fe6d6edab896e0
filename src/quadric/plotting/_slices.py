"""Planes cut through a quadric of many dimensions."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric._utils.arrays import Array, unmasked
from quadric.geometry import Quadric
from quadric.geometry._equation import default_names
from quadric.plotting._conics import plot_conic, surroundings
from quadric.plotting._regions import plot_points
from quadric.plotting._style import BOUNDARY, color_of, get_ax, plain, window_of

MOST_PANELS = 12


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
    window: Any = None,
) -> Axes:
    """The conic in which a plane along two coordinates cuts the surface.

    Parameters
    ----------
    surface : Quadric
        Of three dimensions or more.
    dims : two int
        The coordinates of the plane.
    at : array of shape (n,), optional
        The point that the plane runs through; the default is the mean of X, or the centre.
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        Of all coordinates.
    X, y : arrays, optional
        Points, projected on the plane; y for their colours.
    outline : bool
        Draw, dashed, also the outline of the whole surface as seen along the other coordinates,
        where it has one.
    window : (x from, x to, y from, y to), optional
    """
    ax = get_ax(ax)
    names = default_names(surface.n_dims) if names is None else list(names)
    if len(names) != surface.n_dims:
        raise ValueError(f"names must hold {surface.n_dims} names. Got {len(names)}.")
    if len(dims) != 2 or not all(0 <= dim < surface.n_dims for dim in dims):
        raise ValueError(f"dims must be two coordinates below {surface.n_dims}. Got {dims}.")
    first, second = dims
    points = _points(X, surface.n_dims)
    if points is not None:
        at = points.mean(axis=0) if at is None else at
        window = window_of(points[:, [first, second]]) if window is None else window
    cut = surface.slice([first, second], at)
    if window is None:
        window = surroundings(cut)
    if points is not None:
        if y is None:
            ax.scatter(points[:, first], points[:, second], s=6, c=color_of(6), alpha=0.5)
        else:
            plot_points(points[:, [first, second]], y, ax, size=9)
    plot_conic(cut, ax, window=window)
    if outline:
        try:
            shadow = surface.project([first, second])
        except ValueError:
            shadow = None
        if shadow is not None:
            plot_conic(shadow, ax, window=window, color=BOUNDARY, linestyle="--", linewidth=1.2)
    ax.set_xlabel(plain(names[first]))
    ax.set_ylabel(plain(names[second]))
    ax.set_title(cut.kind, fontsize=10)
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
) -> Figure:
    """Several slices beside each other; the parameters are those of `plot_slice`.

    `pairs` are the coordinates of each; the default is those of the strongest terms, x_i x_j
    with the largest |q_ij|.
    """
    if pairs is None:
        every = itertools.combinations(range(surface.n_dims), 2)
        points = _points(X, surface.n_dims)
        scale = np.ones(surface.n_dims) if points is None else points.std(axis=0)
        strength = np.abs(surface.Q) * np.outer(scale, scale)
        pairs = sorted(every, key=lambda pair: -strength[pair])[:6]
    pairs = [tuple(pair) for pair in pairs]
    if not 0 < len(pairs) <= MOST_PANELS:
        raise ValueError(f"pairs must hold 1 to {MOST_PANELS} pairs. Got {len(pairs)}.")
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.4 * rows), layout="constrained", dpi=150)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax, pair in zip(axes, pairs, strict=False):
        plot_slice(surface, pair, at, ax, names=names, X=X, y=y, outline=outline)
    for ax in axes[len(pairs) :]:
        ax.remove()
    return figure


def _points(X: Any, n: int) -> Array | None:
    if X is None:
        return None
    points = np.asarray(unmasked("X", X), dtype=float)
    if points.ndim != 2 or points.shape[1] != n or not len(points):
        raise ValueError(f"X must have shape (n_samples, {n}). Got {points.shape} instead.")
    return points
