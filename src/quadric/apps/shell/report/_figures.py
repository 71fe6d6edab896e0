"""Figures of a report, as PNG images that are embedded in the page."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.shell.tables import Schema, TestTable
from quadric.plotting import (
    Wanted,
    calibration_figure,
    figure_bytes,
    model_figure,
    residuals_figure,
)

MOST_ROWS = 2000  # drawn or averaged over; more would take longer and show the same


def figures(
    model: Any, points: tuple[Any, Any], found: TestTable, schema: Schema
) -> dict[str, dict[str, str]]:
    """Return figures by name, each with its "image", a data URL, or with the reason "why_not".

    Parameters
    ----------
    model : estimator
    points : (DataFrame, array)
        Rows and their targets.
    found : TestTable
        The predictions that are compared with the truth.
    schema : Schema
    """
    X, y = points
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    wanted = Wanted(model, X[rows], None if y is None else y[rows], schema.target)
    names = ["boundaries" if schema.classes else "surface", "dependence"]
    drawn = {name: _attempt(partial(model_figure, name, wanted)) for name in names}
    if schema.classes:
        truth = np.array(schema.classes)[found.truth]
        drawn["calibration"] = _attempt(
            lambda: calibration_figure(found.predicted, truth, schema.classes)
        )
    else:
        drawn["residuals"] = _attempt(
            lambda: residuals_figure(found.predicted, found.truth, schema.target)
        )
    return drawn


def _attempt(draw: Callable[[], Figure]) -> dict[str, str]:
    try:
        content = figure_bytes(draw(), ".png")
    except (ValueError, TypeError) as error:
        return {"why_not": str(error)}
    return {"image": "data:image/png;base64," + base64.b64encode(content).decode()}
