"""Plots of models and quadrics with matplotlib.

Functions that draw one plot take an `ax` and return it; functions that draw several return a
figure. The package may import everything below it in the architecture; the curves and meshes
themselves come from `quadric.geometry`. Start with `_quadrics.py` and `_regions.py`.
"""

from quadric._utils.extras import require

require("matplotlib", extra="plot", by="quadric.plotting")

from quadric.plotting._animation import animate
from quadric.plotting._eigenvectors import plot_eigenvectors
from quadric.plotting._history import plot_history
from quadric.plotting._points import plot_points
from quadric.plotting._quadrics import plot_conic, plot_slice, plot_slices, plot_surface
from quadric.plotting._regions import plot_clusters, plot_regions

__all__ = [
    "animate",
    "plot_clusters",
    "plot_conic",
    "plot_eigenvectors",
    "plot_history",
    "plot_points",
    "plot_regions",
    "plot_slice",
    "plot_slices",
    "plot_surface",
]
