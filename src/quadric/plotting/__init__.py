"""Pictures (matplotlib): functions take an `ax` and return it, or return a figure of several."""

from quadric.plotting.animation import animate
from quadric.plotting.conics import plot_conic
from quadric.plotting.history import plot_history
from quadric.plotting.images import plot_eigenvectors
from quadric.plotting.regions import plot_clusters, plot_points, plot_regions
from quadric.plotting.slices import plot_slice, plot_slices
from quadric.plotting.surfaces import plot_surface

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
