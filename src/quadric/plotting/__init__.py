"""Pictures (matplotlib): functions take an `ax` and return it, or return a figure of several."""

from quadric._utils.extras import require

require("matplotlib", extra="plot", by="quadric.plotting")

from quadric.plotting._animation import animate
from quadric.plotting._conics import plot_conic
from quadric.plotting._eigenvectors import plot_eigenvectors
from quadric.plotting._history import plot_history
from quadric.plotting._regions import plot_clusters, plot_points, plot_regions
from quadric.plotting._slices import plot_slice, plot_slices
from quadric.plotting._surface import plot_surface

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
