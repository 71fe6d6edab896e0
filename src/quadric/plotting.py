"""Pictures (matplotlib). Functions take an `ax` and return it, or return a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from quadric.arrays import Array
from quadric.geometry import conic_equation

__all__ = ["conic_panels", "plot_conic"]

# Okabe and Ito's colours for two classes, told apart by colour-blind readers too
CLASS_COLORS = ("#0072B2", "#D55E00")
CLASS_MARKERS = ("o", "s")
BOUNDARY_COLOR = "#222222"


def plot_conic(
    Q: Any, w: Any, b: float, X: Array, y: Array, *, ax: Axes, extent: float = 2.2
) -> Axes:
    """The points of two classes, the regions z < 0 and z > 0, and the boundary z = 0."""
    Q, w = np.asarray(Q), np.asarray(w)
    side = np.linspace(-extent, extent, 601)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    z = np.einsum("...i,ij,...j->...", grid, Q, grid) + grid @ w + b
    ax.contourf(
        side, side, z > 0, levels=[-0.5, 0.5, 1.5], cmap=ListedColormap(CLASS_COLORS), alpha=0.15
    )
    ax.contour(side, side, z, levels=[0.0], colors=BOUNDARY_COLOR, linewidths=2)
    for label in (0, 1):
        points = X[y == label]
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=110,
            c=CLASS_COLORS[label],
            marker=CLASS_MARKERS[label],
            edgecolors="white",
            linewidths=1.2,
            zorder=3,
        )
    ax.set_aspect("equal")
    ax.set_xlabel("$x$")
    ax.set_ylabel("$y$", rotation=0)
    return ax


def conic_panels(panels: Sequence[tuple[str, Any, Any, float]], X: Array, y: Array) -> Figure:
    """One panel for each (title, Q, w, b), with its equation under the title."""
    figure = Figure(figsize=(4.6 * len(panels), 5.2), layout="constrained", dpi=150)
    for ax, (title, Q, w, b) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True
    ):
        plot_conic(Q, w, b, X, y, ax=ax)
        ax.set_title(f"{title}\n{conic_equation(Q, w, b)}", fontsize=10)
    handles = [
        Line2D([], [], marker=CLASS_MARKERS[k], color=CLASS_COLORS[k], ls="", ms=9, label=text)
        for k, text in enumerate(("class 0", "class 1"))
    ]
    handles.append(Line2D([], [], color=BOUNDARY_COLOR, lw=2, label="the neuron's boundary"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
