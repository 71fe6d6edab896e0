"""Training as a curve."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric.plotting._style import color_of, get_ax


def plot_history(history: Any, ax: Axes | None = None, *, label: str = "loss") -> Axes:
    """The loss of each epoch and, where there is one, the validation score on a second axis.

    Parameters
    ----------
    history : History, or a fitted estimator with `loss_curve_`
    ax : matplotlib Axes, optional
    label : str
        What the loss is called.
    """
    loss = getattr(history, "loss", None)
    score = getattr(history, "validation_score", None)
    if not isinstance(loss, list):
        loss = getattr(history, "loss_curve_", None)
        score = getattr(history, "validation_scores_", None)
    if not loss:
        raise ValueError(
            "history must be what Network.fit returned, or a fitted estimator, with at least one "
            f"epoch. Got {type(history).__name__}."
        )
    ax = get_ax(ax)
    epochs = np.arange(1, len(loss) + 1)
    lines = ax.plot(epochs, loss, color=color_of(0), linewidth=1.8, label=label)
    ax.set_xlabel("epoch")
    ax.set_ylabel(label)
    values = np.asarray(loss)
    if (values > 0).all() and values.max() > 20 * values.min():
        ax.set_yscale("log")
    if score:
        other = ax.twinx()
        lines += other.plot(
            np.arange(1, len(score) + 1), score, color=color_of(1), linewidth=1.8, linestyle="--",
            label="validation score",
        )  # fmt: skip
        other.set_ylabel("validation score")
        ax.legend(handles=lines, frameon=False, loc="center right")
    return ax
