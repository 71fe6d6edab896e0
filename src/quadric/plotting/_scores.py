"""Plots that compare predictions with the truth: calibration, confusion and residuals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.checks import Array
from quadric.plotting._style import BOUNDARY, color_of, get_ax, get_figure, marker_of, plain

BINS = 10
MOST_NUMBERS = 15  # classes up to which a confusion matrix shows its numbers
MOST_LINES = 7
MOST_POINTS = 5000


def plot_calibration(model: Any, X: Any, y: Any, *, figure: Any = None) -> Figure:
    """Draw how often a class occurs against its predicted probability.

    Rows are sorted into ten bins with equal numbers of rows. On the diagonal, the probabilities
    agree with the frequencies. Bars are standard errors.

    Parameters
    ----------
    model : fitted classifier, or Pipeline
        A classifier with `predict_proba`.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    P = np.asarray(model.predict_proba(X))
    return calibration_figure(P, y, list(model.classes_), figure)


def calibration_figure(P: Array, y: Any, labels: Sequence[Any], figure: Any = None) -> Figure:
    """Draw the calibration of probabilities, one column per class."""
    y = np.asarray(y)
    shown = [1] if len(labels) == 2 else list(range(len(labels)))[:MOST_LINES]
    figure = get_figure(figure, 5.2, 5.6)
    ax, below = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    ax.plot([0, 1], [0, 1], "--", color=BOUNDARY, linewidth=1, label="perfectly calibrated")
    for k in shown:
        p, is_k = P[:, k], y == labels[k]
        predicted, observed, error = _bins(p, is_k)
        ax.errorbar(
            predicted,
            observed,
            error,
            color=color_of(k),
            marker=marker_of(k),
            markersize=5,
            linewidth=1.4,
            elinewidth=0.8,
            label=plain(labels[k]),
        )
        below.hist(p, np.linspace(0, 1, 21), histtype="step", color=color_of(k), linewidth=1.4)
    more = f" (first {MOST_LINES} of {len(labels)} classes)" if len(labels) > MOST_LINES else ""
    ax.set(ylabel="observed frequency", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_title(f"Calibration on {len(y)} rows{more}", fontsize=10)
    ax.legend(fontsize=8)
    what = f" of {plain(labels[1])}" if len(labels) == 2 else ""
    below.set(xlabel=f"predicted probability{what}", ylabel="rows")
    return figure


def _bins(p: Array, truth: Array) -> tuple[Array, Array, Array]:
    """Mean prediction, frequency and its standard error in bins with equal numbers of rows."""
    groups = [g for g in np.array_split(np.argsort(p, kind="stable"), BINS) if len(g)]
    predicted = np.array([p[g].mean() for g in groups])
    observed = np.array([truth[g].mean() for g in groups])
    error = np.sqrt(observed * (1 - observed) / np.array([len(g) for g in groups]))
    return predicted, observed, error


def plot_confusion(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the confusion matrix: the predicted classes of the rows of each true class.

    Parameters
    ----------
    model : fitted classifier, or Pipeline
        A classifier.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    labels, y = np.asarray(model.classes_).tolist(), np.asarray(y)
    index = {label: k for k, label in enumerate(labels)}
    unknown = sorted(set(y.tolist()) - set(labels), key=str)
    if unknown:
        raise ValueError(f"y must hold the model's classes, {labels}. Got {unknown}.")
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    for true, predicted in zip(y.tolist(), np.asarray(model.predict(X)).tolist(), strict=True):
        counts[index[true], index[predicted]] += 1
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax = get_ax(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ax.figure.colorbar(image, ax=ax, label="share of the true class")
    if len(labels) <= MOST_NUMBERS:
        for (i, j), count in np.ndenumerate(counts):
            color = "white" if shares[i, j] > 0.6 else "black"
            ax.text(j, i, str(count), ha="center", va="center", color=color, fontsize=8)
    if len(labels) <= 60:
        names, turned = [plain(label) for label in labels], 45 if len(labels) > 4 else 0
        ax.set_xticks(range(len(labels)), names, rotation=turned, fontsize=8)
        ax.set_yticks(range(len(labels)), names, fontsize=8)
    ax.set(xlabel="predicted class", ylabel="true class")
    accuracy = np.trace(counts) / max(1, counts.sum())
    ax.set_title(f"{counts.sum()} rows, accuracy {accuracy:.3f}", fontsize=10)
    return ax


def plot_residuals(model: Any, X: Any, y: Any, *, target: str = "y", figure: Any = None) -> Figure:
    """Draw the true values and the residuals against the predicted values.

    Parameters
    ----------
    model : fitted regressor, or Pipeline
        A regressor with one output.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true values.
    target : str
        Name of the predicted number.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    return residuals_figure(np.asarray(model.predict(X), dtype=float), y, target, figure)


def residuals_figure(predicted: Array, y: Any, target: str, figure: Any = None) -> Figure:
    """Draw the true values and the residuals of predicted numbers."""
    y = np.asarray(y, dtype=float)
    if predicted.shape != y.shape or y.ndim != 1:
        raise ValueError(
            f"y must have shape ({len(predicted)},), one number per prediction. Got {y.shape}."
        )
    residuals, name = y - predicted, plain(target)
    figure = get_figure(figure, 9, 4.2)
    left, right = figure.subplots(1, 2)
    dots = {"s": 12, "c": color_of(0), "alpha": 0.6, "linewidths": 0}
    some = slice(None, None, max(1, len(y) // MOST_POINTS))
    left.scatter(predicted[some], y[some], **dots)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    left.plot(ends, ends, "--", color=BOUNDARY, linewidth=1, label="true = predicted")
    left.set(xlabel=f"predicted {name}", ylabel=f"true {name}")
    left.legend(fontsize=8)
    right.scatter(predicted[some], residuals[some], **dots)
    right.axhline(0, linestyle="--", color=BOUNDARY, linewidth=1)
    groups = np.array_split(np.argsort(predicted, kind="stable"), min(BINS, len(y)))
    means = [(predicted[g].mean(), residuals[g].mean()) for g in groups]
    right.plot(*np.array(means).T, "-o", color=color_of(1), markersize=4, label="mean of a tenth")
    right.set(xlabel=f"predicted {name}", ylabel="residual (true - predicted)")
    right.legend(fontsize=8)
    spread = float(((y - y.mean()) ** 2).sum())
    score = 1 - float((residuals**2).sum()) / spread if spread > 0 else float("nan")
    rmse = float(np.sqrt((residuals**2).mean()))
    figure.suptitle(f"{len(y)} rows, R² {score:.3f}, RMSE {rmse:.4g}", fontsize=10)
    return figure
