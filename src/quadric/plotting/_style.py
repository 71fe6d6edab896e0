"""What all plots have in common: colors, markers, axes, windows, and the points of labeled data."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, ScalarFormatter

from quadric.checks import Array, unmasked
from quadric.geometry import Window
from quadric.utils import spaced, visible

# Okabe and Ito's colors, which color-blind readers can distinguish, without yellow
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
BOUNDARY = "#222222"
MOST_LINES = 7  # one per class
LONGEST_TICK = 17  # characters of a category below an axis
ROOM_FOR_TICKS = 24  # characters of all categories below a small plot
MOST_POINTS = 2000  # more points cover each other
MOST_NAMES = 60  # of the rows and columns of a heat map
ROUNDS = 8  # the points are drawn in rounds, so that no class covers another


def color_of(k: int) -> str:
    """Return the color of class or line k.

    Parameters
    ----------
    k : int
        The index of the class or line.

    Returns
    -------
    str
        One of `COLORS`, which repeat after the last one.
    """
    return COLORS[k % len(COLORS)]


def marker_of(k: int) -> str:
    """Return the marker of class or line k.

    Parameters
    ----------
    k : int
        The index of the class or line.

    Returns
    -------
    str
        A marker of matplotlib. There are ten, which repeat after the last one.
    """
    return MARKERS[k % len(MARKERS)]


def pale(k: int) -> Any:
    """The pale color of the region of a class, darker from the eighth class on."""
    strength = 0.36 if k < len(COLORS) else 0.6
    return tuple(1 - strength * (1 - channel) for channel in to_rgb(color_of(k)))


def dashes_of(k: int) -> Any:
    """A line style that, combined with the color, distinguishes 28 classes."""
    return DASHES[k // len(COLORS) % len(DASHES)]


def plain(name: Any) -> str:
    r"""A name from the user, escaped so that matplotlib does not parse it as mathematics.

    >>> print(plain("$a$"))
    \$a\$
    """
    return visible(str(name)).replace("$", r"\$")


def get_ax(ax: Axes | None, *, space: bool = False) -> Any:
    """The given axes, or new ones created by pyplot."""
    if ax is not None:
        if space and getattr(ax, "name", "") != "3d":
            raise ValueError("ax must be three-dimensional: figure.add_subplot(projection='3d').")
        return ax
    from matplotlib import pyplot

    options = {"projection": "3d"} if space else {}
    return pyplot.subplots(subplot_kw=options, layout="constrained")[1]


def get_figure(figure: Any, width: float, height: float) -> Any:
    """The given figure or part of one, or a new figure of this size in inches."""
    return figure or Figure(figsize=(width, height), layout="constrained", dpi=150)


def plain_ticks(ax: Axes) -> None:
    """Write large numbers on the axes in full (57 540), without powers of ten."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        is_plain = isinstance(axis.get_major_formatter(), ScalarFormatter)
        if is_plain and 1e4 <= max(abs(low), abs(high)) < 1e15 and abs(high - low) >= 10:
            axis.set_major_formatter(FuncFormatter(lambda value, _: spaced(f"{value:.0f}")))
            if axis is ax.xaxis:  # so that the numbers do not touch
                axis.set_major_locator(MaxNLocator(4))


def drawn_rows(rows: Array) -> Array:
    """The given rows, or a random choice of MOST_POINTS of them; always the same."""
    if len(rows) <= MOST_POINTS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, MOST_POINTS, replace=False))


def write_numbers(ax: Axes, numbers: Array, form: str, dark: Array, fontsize: int) -> None:
    """Write each number of a heat map into its cell, in white where the cell is dark."""
    for (i, j), number in np.ndenumerate(numbers):
        ax.text(
            j,
            i,
            format(number, form),
            ha="center",
            va="center",
            color="white" if dark[i, j] else "black",
            fontsize=fontsize,
        )


def name_categories(ax: Any, places: Any, names: list[str]) -> None:
    """Write the names of categories below an axis, shortened and slanted if they are long."""
    short = [
        name if len(name) <= LONGEST_TICK else f"{name[: LONGEST_TICK - 1]}…" for name in names
    ]
    slanted = len(names) > 4 or sum(map(len, short)) > ROOM_FOR_TICKS
    style: dict[str, Any] = {"ha": "right", "va": "center", "rotation_mode": "anchor"}
    style["rotation"] = 90 if len(names) > 8 else 30  # more would overlap
    ax.set_xticks(places, short, **(style if slanted else {}))


def name_rows_and_columns(
    ax: Axes, rows: list[str], columns: list[str], *, rotation: float
) -> None:
    """Write the names beside a heat map, unless there are too many to read them."""
    if max(len(rows), len(columns)) <= MOST_NAMES:
        ax.set_xticks(range(len(columns)), columns, rotation=rotation, fontsize=8)
        ax.set_yticks(range(len(rows)), rows, fontsize=8)


def show_window(ax: Any, window: Window) -> None:
    """Show the window; inverted axes remain inverted."""
    ax.set_xlim(*(window[1::-1] if ax.xaxis_inverted() else window[:2]))
    ax.set_ylim(*(window[:1:-1] if ax.yaxis_inverted() else window[2:]))


def plot_points(
    X: Any, y: Any, ax: Axes | None = None, *, size: float = 14.0, classes: Any = None
) -> Axes:
    """Draw the points of each class in its color and with its marker.

    The classes take turns, a part of their points at a time, so that no class covers another.

    Parameters
    ----------
    X : array of shape (n_samples, 2)
        Points.
    y : array of shape (n_samples,)
        Class of each point.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    size : float
        Size of the markers, as in `Axes.scatter`.
    classes : sequence, optional
        All classes in the order of their colors. The default is the classes in y.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    X, y = points_of(X, 2), np.asarray(unmasked("y", y))
    if y.shape != (len(X),):
        raise ValueError(f"y must hold {len(X)} labels, one per point. Got shape {y.shape}.")
    ax = get_ax(ax)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    unknown = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(f"y must hold the model's classes, {classes.tolist()}. Got {unknown}.")
    for turn in range(ROUNDS):
        for k, label in enumerate(classes.tolist()):
            rows = np.flatnonzero(y == label)[turn::ROUNDS]
            if turn == 0 or len(rows):
                ax.scatter(
                    X[rows, 0],
                    X[rows, 1],
                    s=size,
                    c=color_of(k),
                    marker=marker_of(k),
                    linewidths=0.4,
                    edgecolors="white",
                    zorder=1.8,  # below the boundaries
                    label=plain(label) if turn == 0 else None,
                )
    return ax


def points_of(X: Any, n: int) -> Array:
    """X as an array of shape (n_samples, n)."""
    X = np.asarray(unmasked("X", X), dtype=float)
    if X.ndim != 2 or X.shape[1] != n or (n > 2 and not len(X)):
        hint = "; for more features use plot_slices" if n == 2 else " instead"
        raise ValueError(f"X must have shape (n_samples, {n}). Got {X.shape}{hint}.")
    return X


def get_window(window: Window | None, X: Any, margin: float = 0.15) -> Window:
    """The given window, or one around points in the plane."""
    if window is not None:
        return window
    if X is None:
        raise ValueError("window must be given if X is None.")
    X = points_of(X, 2)
    if not len(X):
        raise ValueError("X must hold at least one point to draw a window around. Got none.")
    low, high = X.min(axis=0), X.max(axis=0)
    pad = margin * np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    (left, bottom), (right, top) = (low - pad).tolist(), (high + pad).tolist()
    return left, right, bottom, top
