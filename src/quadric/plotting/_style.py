"""Colours, markers and axes that all pictures share."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric._utils.arrays import Array
from quadric._utils.text import visible
from quadric.geometry._conic_arcs import Window

# Okabe and Ito's colours, told apart by colour-blind readers too; yellow is too light for lines
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
BOUNDARY = "#222222"


def color_of(k: int) -> str:
    return COLORS[k % len(COLORS)]


def marker_of(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


def dashes_of(k: int) -> Any:
    """A line style that, with the colour, differs for 28 classes."""
    return DASHES[k // len(COLORS) % len(DASHES)]


def plain(name: Any) -> str:
    r"""A name of the user's as matplotlib draws it: not as mathematics.

    >>> print(plain("$a$"))
    \$a\$
    """
    return visible(str(name)).replace("$", r"\$")


def get_ax(ax: Axes | None, *, space: bool = False) -> Any:
    """The given axes, or new ones in pyplot's way."""
    if ax is not None:
        if space and getattr(ax, "name", "") != "3d":
            raise ValueError("ax must be three-dimensional: figure.add_subplot(projection='3d').")
        return ax
    from matplotlib import pyplot

    _, ax = pyplot.subplots(subplot_kw={"projection": "3d"} if space else {}, layout="constrained")
    return ax


def shown_window(ax: Any) -> Window:
    """What the axes show, whichever way they point."""
    (x0, x1), (y0, y1) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    return float(x0), float(x1), float(y0), float(y1)


def show_window(ax: Any, window: Window) -> None:
    """Show the window; axes that point the other way go on to do so."""
    ax.set_xlim(*(window[1::-1] if ax.xaxis_inverted() else window[:2]))
    ax.set_ylim(*(window[:1:-1] if ax.yaxis_inverted() else window[2:]))


def window_of(X: Array, margin: float = 0.15) -> Window:
    """A window around points."""
    if not len(X):
        raise ValueError("X must hold at least one point to draw a window around. Got none.")
    low, high = X.min(axis=0), X.max(axis=0)
    pad = margin * np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    low, high = low - pad, high + pad
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])
