"""Plots of models and quadrics with matplotlib.

Functions that draw one plot take an `ax` and return it; functions that draw several take a `figure`
and return it. The classes have the colors in `COLORS` (`color_of`), in order, and the markers of
`marker_of`; boundaries have the color `BOUNDARY`. The package may import everything below it in the
architecture; the curves and meshes themselves come from `quadric.geometry`. Start with
`_quadrics.py` and `_boundaries.py`.
"""

from quadric.utils import require

require("matplotlib", extra="plot", by="quadric.plotting")

from quadric.plotting._attributions import plot_interactions, plot_waterfall
from quadric.plotting._boundaries import plot_boundaries, plot_prediction, plot_regions
from quadric.plotting._explanations import (
    plot_dependence,
    plot_eigenvectors,
    plot_importances,
    plot_similarity,
    plot_spectrum,
    plot_truncation,
)
from quadric.plotting._quadrics import (
    animate,
    plot_clusters,
    plot_conic,
    plot_slice,
    plot_slices,
    plot_surface,
)
from quadric.plotting._scores import (
    calibration_figure,
    plot_calibration,
    plot_certified_accuracy,
    plot_confusion,
    plot_flips,
    plot_history,
    plot_precision_recall,
    plot_residuals,
    plot_roc,
    precision_recall_figure,
    residuals_figure,
    roc_figure,
)
from quadric.plotting._sparse import plot_frequencies, plot_pairs, plot_path
from quadric.plotting._style import (
    BOUNDARY,
    COLORS,
    color_of,
    marker_of,
    plot_points,
)

__all__ = [
    "BOUNDARY",
    "COLORS",
    "animate",
    "calibration_figure",
    "color_of",
    "marker_of",
    "plot_boundaries",
    "plot_calibration",
    "plot_certified_accuracy",
    "plot_clusters",
    "plot_confusion",
    "plot_conic",
    "plot_dependence",
    "plot_eigenvectors",
    "plot_flips",
    "plot_frequencies",
    "plot_history",
    "plot_importances",
    "plot_interactions",
    "plot_pairs",
    "plot_path",
    "plot_points",
    "plot_precision_recall",
    "plot_prediction",
    "plot_regions",
    "plot_residuals",
    "plot_roc",
    "plot_similarity",
    "plot_slice",
    "plot_slices",
    "plot_spectrum",
    "plot_surface",
    "plot_truncation",
    "plot_waterfall",
    "precision_recall_figure",
    "residuals_figure",
    "roc_figure",
]
