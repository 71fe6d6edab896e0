"""Plots of models and quadrics with matplotlib.

Functions that draw one plot take an `ax` and return it; functions that draw several take a `figure`
and return it. The classes have the colors in `COLORS` (`color_of`), in order, and the markers of
`marker_of`; boundaries have the color `BOUNDARY`. The package may import everything below it in the
architecture; the curves and meshes themselves come from `quadric.geometry`. Start with
`_quadrics.py` and `_classifier.py`; `_boundaries.py` draws models with any number of inputs in the
planes of `_model_slice.py`.
"""

from quadric.utils import require

require("matplotlib", extra="plot", by="quadric.plotting")

from quadric.plotting._boundaries import plot_boundaries, plot_prediction
from quadric.plotting._certificates import (
    curve_figure as curve_figure,
    plot_certified_accuracy,
    plot_flips,
)
from quadric.plotting._classifier import plot_clusters, plot_regions
from quadric.plotting._dependence import plot_dependence
from quadric.plotting._eigenvectors import (
    plot_eigenvectors,
    plot_image_classifier as plot_image_classifier,
)
from quadric.plotting._figures import (
    NEED_NO_ROWS as NEED_NO_ROWS,
    Wanted as Wanted,
    figure_bytes as figure_bytes,
    model_figure as model_figure,
)
from quadric.plotting._importances import plot_importances
from quadric.plotting._quadrics import plot_conic, plot_slice, plot_slices, plot_surface
from quadric.plotting._scores import (
    calibration_figure as calibration_figure,
    plot_calibration,
    plot_confusion,
    plot_residuals,
    residuals_figure as residuals_figure,
)
from quadric.plotting._spectrum import plot_similarity, plot_spectrum, plot_truncation
from quadric.plotting._style import (
    BOUNDARY,
    COLORS,
    color_of,
    marker_of,
    plot_points,
)
from quadric.plotting._training import animate, plot_history

__all__ = [
    "BOUNDARY",
    "COLORS",
    "animate",
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
    "plot_history",
    "plot_importances",
    "plot_points",
    "plot_prediction",
    "plot_regions",
    "plot_residuals",
    "plot_similarity",
    "plot_slice",
    "plot_slices",
    "plot_spectrum",
    "plot_surface",
    "plot_truncation",
]
