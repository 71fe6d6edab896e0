"""Curves of loss and validation score during training."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric.plotting._style import color_of, get_ax


def plot_history(history: Any, ax: Axes | None = None, *, label: str = "loss") -> Axes:
    """Draw the loss of each epoch and, on a second axis, the validation score if there is one.

    Parameters
    ----------
    history : History, or fitted estimator with `loss_curve_`
        The course of training.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. The default creates new ones.
    label : str
        Name of the loss.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    loss = getattr(history, "loss", None)
    score = getattr(history, "validation_score", None)
    if not isinstance(loss, list):
        loss = getattr(history, "loss_curve_", None)
        score = getattr(history, "validation_scores_", None)
    if not loss:
        raise ValueError(
            "history must be the result of Network.fit or a fitted estimator, with at least one "
            f"epoch. Got {type(history).__name__}."
        )
    ax = get_ax(ax)
    epochs = np.arange(1, max(len(loss), len(score or ())) + 1)
    lines = ax.plot(epochs[: len(loss)], loss, color=color_of(0), linewidth=1.8, label=label)
    ax.set_xlabel("epoch")
    ax.set_ylabel(label)
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
