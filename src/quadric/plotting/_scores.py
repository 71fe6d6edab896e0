"""Plots of how well a model learns and predicts, and of how far its predictions are certified."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from quadric.certify import Radii
from quadric.checks import Array, check_integer
from quadric.models import classes_of
from quadric.plotting._style import (
    BOUNDARY,
    MOST_LINES,
    color_of,
    dashes_of,
    drawn_rows,
    get_ax,
    get_figure,
    marker_of,
    name_rows_and_columns,
    plain,
    plain_ticks,
    write_numbers,
)
from quadric.utils import rounded

BINS = 10
MOST_NUMBERS = 15  # classes up to which a confusion matrix shows its numbers


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
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    return calibration_figure(
        np.asarray(model.predict_proba(X)), y, list(classes_of(model)), figure
    )


def calibration_figure(P: Array, y: Any, labels: Sequence[Any], figure: Any = None) -> Figure:
    """Draw how often a class occurs against given probabilities; see `plot_calibration`.

    Parameters
    ----------
    P : array of shape (n_samples, n_classes)
        The predicted probabilities.
    y : array of shape (n_samples,)
        The true classes.
    labels : sequence of length n_classes
        The class of each column of P.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    y = np.asarray(y)
    shown = [1] if len(labels) == 2 else list(range(len(labels)))[:MOST_LINES]
    figure = get_figure(figure, 5.2, 5.6)
    ax, below = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    ax.plot([0, 1], [0, 1], "--", color=BOUNDARY, linewidth=1, label="perfectly calibrated")
    for k in shown:
        p = P[:, k]
        ax.errorbar(
            *_bins(p, y == labels[k]),
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


def plot_precision_recall(model: Any, X: Any, y: Any, *, figure: Any = None) -> Figure:
    """Draw the precision against the recall for every threshold of the probability.

    For two classes, the curve is that of the rarer one among `y`; for more classes, there is a
    curve for each. A dotted line is the share of a class, the precision of random predictions.

    Parameters
    ----------
    model : fitted classifier, or Pipeline
        A classifier with `predict_proba`.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    P = np.asarray(model.predict_proba(X))
    return precision_recall_figure(P, y, list(classes_of(model)), figure)


def precision_recall_figure(P: Array, y: Any, labels: Sequence[Any], figure: Any = None) -> Figure:
    """Draw precision against recall for given probabilities; see `plot_precision_recall`.

    Parameters
    ----------
    P : array of shape (n_samples, n_classes)
        The predicted probabilities.
    y : array of shape (n_samples,)
        The true classes.
    labels : sequence of length n_classes
        The class of each column of P.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """

    def draw(ax: Axes, truth: Array, p: Array, k: int, name: str) -> None:
        precision, recall, _ = precision_recall_curve(truth, p)
        score = average_precision_score(truth, p)
        label = f"{name}: average precision {score:.3f}"
        # a step: between two thresholds, the recall does not change with the precision
        ax.step(recall, precision, where="post", color=color_of(k), linewidth=1.8, label=label)
        ax.axhline(truth.mean(), linestyle=":", color=color_of(k), linewidth=1)

    figure = _curves(draw, P, y, labels, figure)
    figure.axes[-1].set(xlabel="recall", ylabel="precision")
    return figure


def plot_roc(model: Any, X: Any, y: Any, *, figure: Any = None) -> Figure:
    """Draw the ROC curve: the recall against the false positive rate for every threshold.

    For two classes, the curve is that of the rarer one among `y`; for more classes, there is a
    curve of each class against the others.

    Parameters
    ----------
    model : fitted classifier, or Pipeline
        A classifier with `predict_proba`.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    return roc_figure(np.asarray(model.predict_proba(X)), y, list(classes_of(model)), figure)


def roc_figure(P: Array, y: Any, labels: Sequence[Any], figure: Any = None) -> Figure:
    """Draw the ROC curve for given probabilities; see `plot_roc`.

    Parameters
    ----------
    P : array of shape (n_samples, n_classes)
        The predicted probabilities.
    y : array of shape (n_samples,)
        The true classes.
    labels : sequence of length n_classes
        The class of each column of P.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """

    def draw(ax: Axes, truth: Array, p: Array, k: int, name: str) -> None:
        wrong, right, _ = roc_curve(truth, p)
        label = f"{name}: AUC {roc_auc_score(truth, p):.3f}"
        ax.plot(wrong, right, color=color_of(k), linewidth=1.8, label=label)

    figure = _curves(draw, P, y, labels, figure)
    ax = figure.axes[-1]
    ax.plot([0, 1], [0, 1], ":", color=BOUNDARY, linewidth=1)
    ax.set(xlabel="false positive rate", ylabel="recall (true positive rate)")
    return figure


def _curves(
    draw: Callable[[Axes, Array, Array, int, str], None],
    P: Array,
    y: Any,
    labels: Sequence[Any],
    figure: Any,
) -> Any:
    """Draw a curve for the rarer of two classes, or for each of several, against the others."""
    y = np.asarray(y)
    truth = np.array([y == label for label in labels])
    possible = np.flatnonzero(truth.any(axis=1) & ~truth.all(axis=1)).tolist()
    if not possible:
        raise ValueError("y must hold at least two of the model's classes.")
    if len(labels) == 2:
        possible = [0 if truth[0].sum() < truth[1].sum() else 1]
    figure = get_figure(figure, 5.2, 4.8)
    ax = figure.subplots()
    for k in possible[:MOST_LINES]:
        draw(ax, truth[k], P[:, k], k, plain(labels[k]))
    left = len(possible) - MOST_LINES
    more = f" (first {MOST_LINES} of {len(possible)} classes)" if left > 0 else ""
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.05))
    ax.set_title(f"{len(y)} rows{more}", fontsize=10)
    ax.legend(fontsize=8)
    ax.grid(alpha=0.25)
    return figure


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
    labels, y = classes_of(model), np.asarray(y)
    if labels is None:
        raise TypeError(f"model must be a fitted classifier. Got {type(model).__name__}.")
    labels = np.asarray(labels).tolist()
    unknown = sorted(set(y.tolist()) - set(labels), key=str)
    if unknown:
        raise ValueError(f"y must hold the model's classes, {labels}. Got {unknown}.")
    counts = confusion_matrix(y.tolist(), np.asarray(model.predict(X)).tolist(), labels=labels)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax = get_ax(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ax.figure.colorbar(image, ax=ax, label="share of the true class")
    if len(labels) <= MOST_NUMBERS:
        write_numbers(ax, counts, "d", shares > 0.6, fontsize=8)
    names = [plain(label) for label in labels]
    name_rows_and_columns(ax, names, names, rotation=45 if len(labels) > 4 else 0)
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
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    return residuals_figure(np.asarray(model.predict(X), dtype=float), y, target, figure)


def residuals_figure(predicted: Array, y: Any, target: str = "y", figure: Any = None) -> Figure:
    """Draw the true values and the residuals against given predictions; see `plot_residuals`.

    Parameters
    ----------
    predicted : array of shape (n_samples,)
        The predicted values.
    y : array of shape (n_samples,)
        The true values.
    target : str
        Name of the predicted number.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    y = np.asarray(y, dtype=float)
    if predicted.shape != y.shape or y.ndim != 1:
        raise ValueError(
            f"y must have shape ({len(predicted)},), one number per prediction. Got {y.shape}."
        )
    residuals, name = y - predicted, plain(target)
    figure = get_figure(figure, 9, 4.2)
    left, right = figure.subplots(1, 2)
    dots = {"s": 12, "c": color_of(0), "alpha": 0.6, "linewidths": 0}
    some = drawn_rows(np.arange(len(y)))
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
    drawn = f"{len(y)} rows" if len(some) == len(y) else f"{len(some)} of {len(y)} rows drawn"
    plain_ticks(left)
    plain_ticks(right)
    figure.suptitle(f"{drawn}, R² {score:.3f}, RMSE {rounded(rmse)}", fontsize=10)
    return figure


def plot_history(history: Any, ax: Axes | None = None, *, label: str = "loss") -> Axes:
    """Draw the loss of each epoch and, on a second axis, the validation score if there is one.

    Parameters
    ----------
    history : History, or fitted estimator with `loss_curve_`
        The record of training.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    label : str
        Name of the loss.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    of_network = isinstance(getattr(history, "loss", None), list)
    names = ("loss", "validation_score") if of_network else ("loss_curve_", "validation_scores_")
    loss, score = (getattr(history, name, None) for name in names)
    if not loss:
        raise ValueError(
            "history must be the result of Network.fit or a fitted estimator, with at least one "
            f"epoch. Got {type(history).__name__}."
        )
    ax = get_ax(ax)
    epochs = np.arange(1, max(len(loss), len(score or ())) + 1)
    lines = ax.plot(epochs[: len(loss)], loss, color=color_of(0), linewidth=1.8, label=label)
    ax.set(xlabel="epoch", ylabel=label)
    values = np.asarray(loss)
    if (values > 0).all() and values.max() > 20 * values.min():
        ax.set_yscale("log")
    if score:
        other = ax.twinx()
        name = "validation score"
        lines += other.plot(
            epochs[: len(score)], score, "--", color=color_of(1), linewidth=1.8, label=name
        )
        other.set_ylabel(name)
        ax.legend(handles=lines, frameon=False, loc="center right")
    return ax


def plot_certified_accuracy(
    found: Radii, y: Any = None, ax: Axes | None = None, *, label: str | None = None
) -> Axes:
    """Draw the share of rows that are right and certified, for every radius.

    Parameters
    ----------
    found : Radii
        The result of `quadric.certify.radius`.
    y : array of shape (n_samples,), optional
        The true classes. If None, all certified rows count.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created. Call the function several times with the
        same axes to compare models.
    label : str, optional
        Name of the curve in the legend.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = get_ax(ax)
    finite = found.radius[np.isfinite(found.radius) & (found.radius < 1e9)]
    end = float(np.quantile(finite, 0.995)) if len(finite) else 1.0
    at = np.linspace(0.0, end or 1.0, 400)
    k = len(ax.get_lines())
    ax.plot(
        at,
        found.certified_accuracy(y, at),
        color=color_of(k),
        linestyle=dashes_of(k),
        linewidth=2.0,
        label=None if label is None else plain(label),
    )
    name = "certified share of rows" if y is None else "certified accuracy"
    end = max(end, ax.get_xlim()[1]) if k else end
    ax.set(xlabel="radius", ylabel=name, ylim=(0, 1.02), xlim=(0, end))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    if label is not None:
        ax.legend(frameon=False)
    return ax


def plot_flips(
    found: Radii,
    X: Any,
    shape: tuple[int, int],
    *,
    rows: Sequence[int] | None = None,
    count: int = 8,
    figure: Any = None,
) -> Figure:
    """Draw images and, below each of them, the nearest image of another class.

    Parameters
    ----------
    found : Radii
        The result of `quadric.certify.radius` for images.
    X : array of shape (n_samples, height * width)
        The images.
    shape : (height, width)
        Shape of the images.
    rows : sequence of int, optional
        The images to draw. By default, images with a typical distance, of each predicted class in
        turn.
    count : int
        Number of images to draw if `rows` is not given.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with one column per image: the image, its nearest flip, and their difference.
    """
    X = np.asarray(X, dtype=float)
    if X.shape != found.nearest.shape or X.shape[1] != shape[0] * shape[1]:
        raise ValueError(
            f"X must have shape ({len(found.radius)}, {shape[0] * shape[1]}). Got {X.shape}."
        )
    count = check_integer("count", count, at_least=1)
    chosen = _typical_of_each_class(found, count) if rows is None else [int(row) for row in rows]
    if not chosen:
        raise ValueError("found has no row with a nearest image of another class to draw.")
    figure = get_figure(figure, 1.25 * len(chosen) + 0.7, 4.4)
    axes = figure.subplots(3, len(chosen), squeeze=False)
    low, high = X[chosen].min(), X[chosen].max()
    steps = found.nearest[chosen] - X[chosen]
    for column, (row, step) in enumerate(zip(chosen, steps, strict=True)):
        limit = np.abs(np.nan_to_num(step)).max() or 1.0  # NaN if there is no flip
        gray = {"cmap": "gray_r", "vmin": low, "vmax": high}
        colored = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        images = [(X[row], gray), (found.nearest[row], gray), (step, colored)]
        texts = [found.predicted[row], found.becomes[row], f"{found.distance[row]:.2g} away"]
        for ax, (image, style), text in zip(axes[:, column], images, texts, strict=True):
            ax.imshow(image.reshape(shape), interpolation="nearest", **style)
            ax.set_title(plain(text), fontsize=9)
            ax.set(xticks=[], yticks=[])
    for ax, name in zip(axes[:, 0], ("image", "nearest flip", "difference"), strict=True):
        ax.set_ylabel(name, fontsize=9)
    return figure


def _typical_of_each_class(found: Radii, count: int) -> list[int]:
    """The rows whose distance is closest to the median of their class, of each class in turn."""
    ranked = []
    for label in np.unique(found.predicted):
        rows = np.flatnonzero((found.predicted == label) & np.isfinite(found.distance))
        if len(rows):
            unusual = np.abs(found.distance[rows] - np.median(found.distance[rows]))
            ranked += list(enumerate(rows[np.argsort(unusual, kind="stable")].tolist()))
    chosen = [row for _, row in sorted(ranked)[:count]]
    return sorted(chosen, key=lambda row: (str(found.predicted[row]), row))
