"""Colours, markers and axes that all plots share."""

from typing import Any

from matplotlib.axes import Axes

from quadric._utils.text import visible
from quadric.geometry._conic_arcs import Window

# Okabe and Ito's colours, which colour-blind readers can distinguish, without yellow
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
BOUNDARY = "#222222"


def color_of(k: int) -> str:
    return COLORS[k % len(COLORS)]


def marker_of(k: int) -> str:
    return MARKERS[k % len(MARKERS)]


def dashes_of(k: int) -> Any:
    """A line style that, combined with the colour, distinguishes 28 classes."""
    return DASHES[k // len(COLORS) % len(DASHES)]


def plain(name: Any) -> str:
    r"""A user's name, escaped so that matplotlib does not read it as mathematics.

    >>> print(plain("$a$"))
    \$a\$
    """
    return visible(str(name)).replace("$", r"\$")


def get_ax(ax: Axes | None, *, space: bool = False) -> Any:
    """The given axes, or new ones made by pyplot."""
    if ax is not None:
        if space and getattr(ax, "name", "") != "3d":
            raise ValueError("ax must be three-dimensional: figure.add_subplot(projection='3d').")
        return ax
    from matplotlib import pyplot

    _, ax = pyplot.subplots(subplot_kw={"projection": "3d"} if space else {}, layout="constrained")
    return ax


def shown_window(ax: Any) -> Window:
    """The part of the plane that axes show, whatever their direction."""
    (x0, x1), (y0, y1) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    return float(x0), float(x1), float(y0), float(y1)


def show_window(ax: Any, window: Window) -> None:
    """Show the window; inverted axes stay inverted."""
    ax.set_xlim(*(window[1::-1] if ax.xaxis_inverted() else window[:2]))
    ax.set_ylim(*(window[:1:-1] if ax.yaxis_inverted() else window[2:]))
