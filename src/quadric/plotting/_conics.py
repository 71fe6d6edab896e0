"""A conic, drawn from its geometry."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric.geometry import Quadric
from quadric.geometry._conic_arcs import Window, arcs, check_plane
from quadric.plotting._style import BOUNDARY, get_ax, show_window, shown_window


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
    """Draw a conic: one line for each arc, whose points satisfy the equation to rounding.

    Parameters
    ----------
    conic : Quadric
        Of two dimensions; cut a larger one first (`Quadric.slice`).
    ax : matplotlib Axes, optional
    window : (x from, x to, y from, y to), optional
        What to draw; the default is what `ax` shows, or the surroundings of the curve.
    color, linestyle, linewidth, label
        Of the lines; the label is given once.
    """
    check_plane(conic)
    fresh = ax is None or not ax.has_data()
    ax = get_ax(ax)
    if window is None:
        window = surroundings(conic) if fresh else shown_window(ax)
    for piece in arcs(conic, window):
        (line,) = ax.plot(
            *piece.T, color=color, linestyle=linestyle, linewidth=linewidth, label=label
        )
        if len(piece) == 1:
            line.set(marker="o", markersize=3 * linewidth)
        label = None
    show_window(ax, window)
    if fresh:
        ax.set_aspect("equal")
    return ax


def surroundings(conic: Quadric) -> Window:
    """A square window in which the conic shows what it is."""
    middle = np.zeros(2) if conic.is_empty else conic.nearest(np.zeros(2))
    reach = 1.0
    if conic.center is not None:
        middle = conic.center
        lengths = conic.axes.half_lengths
        lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
        reach = float(lengths.max()) * (1.3 if conic.is_ellipsoid else 3.0) if len(lengths) else 1.0
    elif conic.kind == "parabola":
        middle = conic._form.origin
        reach = 4 * conic._form.slope / float(np.abs(conic._form.eigenvalues).max())
    x, y = (float(value) for value in middle)
    window = x - reach, x + reach, y - reach, y + reach
    if not (np.isfinite(window).all() and window[0] < window[1] and window[2] < window[3]):
        raise ValueError(
            f"the conic cannot be drawn: its centre ({x:.3g}, {y:.3g}) and its size {reach:.3g} do "
            "not make a window. Pass window, or rescale the data before fit."
        )
    return window
