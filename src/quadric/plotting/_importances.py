"""Importances of inputs as bars, divided into linear, squared and interaction terms."""

import numpy as np
from matplotlib.axes import Axes

from quadric.checks import check_integer
from quadric.explain import Explanation
from quadric.plotting._style import BOUNDARY, color_of, get_ax, plain

PARTS = ("linear", "squared", "interactions")


def plot_importances(explanation: Explanation, ax: Axes | None = None, *, top: int = 10) -> Axes:
    """Draw the importance of each input as a bar of its linear, squared and interaction terms.

    Parameters
    ----------
    explanation : Explanation
        The result of `explain` for a single layer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    top : int
        Maximum number of inputs to draw, the most important first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Notes
    -----
    A negative part offsets other terms. It is drawn to the left of zero.
    """
    top = check_integer("top", top, at_least=1)
    if not explanation.importances:
        raise ValueError(
            "explanation must be that of a single layer. After a hidden layer, use plot_dependence."
        )
    shown = explanation.importances[:top]
    ax = get_ax(ax)
    places = np.arange(len(shown))
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    for k, part in enumerate(PARTS):
        width = np.array([100 * getattr(one, part) for one in shown])
        start = np.where(width > 0, right, left)
        ax.barh(places, width, left=start, height=0.7, color=color_of(k), label=part)
        right += np.maximum(width, 0)
        left += np.minimum(width, 0)
    if left.min() < 0:
        ax.axvline(0, color=BOUNDARY, linewidth=0.8)
    ax.set_yticks(places, [plain(one.name) for one in shown])
    ax.invert_yaxis()
    ax.set_xlabel("share of the variance of z (%)")
    ax.legend(title="terms", fontsize=8, title_fontsize=8, loc="lower right")
    return ax
