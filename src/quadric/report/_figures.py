"""Figures of a report, as PNG images that are embedded in the page."""

import base64
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric._utils.arrays import Array
from quadric.plotting._figures import Wanted, figure_bytes, model_figure
from quadric.plotting._style import color_of, plain
from quadric.tables import Evaluation

MOST_POINTS = 2000


def as_data(figure: Figure) -> str:
    """Return a figure as a data URL."""
    return "data:image/png;base64," + base64.b64encode(figure_bytes(figure, ".png")).decode()


def calibration(evaluation: Evaluation) -> Figure:
    """Plot the accuracy against the probability of the predicted class."""
    figure = Figure(figsize=(5, 4.2), layout="constrained", dpi=150)
    ax = figure.subplots()
    bins = evaluation.calibration
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="perfect calibration")
    sizes = np.array([one["rows"] for one in bins])
    x, y = np.array([[one["probability"], one["accuracy"]] for one in bins]).T
    ax.scatter(
        x, y, s=20 + 180 * sizes / sizes.max(), color=color_of(0), alpha=0.8, label="this model"
    )
    ax.set(
        xlabel="mean probability of the predicted class",
        ylabel="share of correct predictions",
        xlim=(0, 1.04),
        ylim=(0, 1.04),
    )
    ax.legend(fontsize=8)
    return figure


def predictions(truth: Array, predicted: Array, target: str) -> Figure:
    """Plot the predicted numbers against the true ones."""
    figure = Figure(figsize=(5, 4.2), layout="constrained", dpi=150)
    ax = figure.subplots()
    step = max(1, len(truth) // MOST_POINTS)
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    ax.plot(ends, ends, color="0.6", linestyle="--", label="perfect prediction")
    ax.scatter(truth[::step], predicted[::step], s=8, alpha=0.6, color=color_of(0))
    ax.set(xlabel=f"true {plain(target)}", ylabel=f"predicted {plain(target)}")
    ax.legend(fontsize=8)
    return figure


def boundaries(model: Any, X: Any, y: Any, target: str) -> tuple[str, str]:
    """Return the picture of `quadric plot`, or no picture and the reason."""
    try:
        return as_data(model_figure("boundaries", Wanted(model, X, y, target))), ""
    except (ValueError, TypeError) as error:
        return "", str(error)
