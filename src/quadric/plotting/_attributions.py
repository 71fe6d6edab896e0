"""Plots of Shapley values: the contributions to one row, and the interactions of pairs."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric.checks import check_integer
from quadric.explain import Attributions, written
from quadric.plotting._style import (
    BOUNDARY,
    get_ax,
    name_rows_and_columns,
    plain,
    plain_ticks,
    write_numbers,
)
from quadric.utils import counted, rounded

UP, DOWN = "#D55E00", "#0072B2"  # contributions that raise and lower the score
MOST_NUMBERS = 12  # inputs up to which an interaction is printed in its cell


def plot_waterfall(
    attributions: Attributions,
    row: int = 0,
    ax: Axes | None = None,
    *,
    score: int = 0,
    top: int = 10,
) -> Axes:
    """Draw how the inputs of one row lead from the mean score to the score of the row.

    Parameters
    ----------
    attributions : Attributions
        The result of `quadric.explain.attribute`.
    row : int
        The index of the row.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    score : int
        The index of the score.
    top : int
        Maximum number of inputs to draw, the strongest first. The others are one bar.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    top = check_integer("top", top, at_least=1)
    values, base = attributions.of(score)
    order = np.argsort(-np.abs(values[row]), kind="stable")
    shown, rest = order[:top], order[top:]
    names = [_named(attributions, row, i) for i in shown]
    steps = values[row][shown].tolist()
    if len(rest):
        names.append(counted(len(rest), "other input"))
        steps.append(float(values[row][rest].sum()))
    ax = get_ax(ax)
    ends = base + np.cumsum(steps)
    starts = ends - steps
    colors = [UP if step >= 0 else DOWN for step in steps]
    places = np.arange(len(steps))
    ax.barh(places, steps, left=starts, color=colors, height=0.62, zorder=2)
    for place, step, end in zip(places, steps, ends, strict=True):
        ax.plot([end, end], [place - 0.31, place + 1.31], color="0.6", linewidth=0.8, zorder=1)
        ax.annotate(
            f"{'−' if step < 0 else '+'}{rounded(abs(step), 3)}",
            (end, place),
            xytext=(4 if step >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if step >= 0 else "right",
            va="center",
            fontsize=8,
        )
    ax.axvline(base, color=BOUNDARY, linewidth=0.9, linestyle=":", zorder=1)
    ax.set_yticks(places, names, fontsize=8)
    ax.set_ylim(len(steps) - 0.4, -0.6)
    ax.use_sticky_edges = False  # room for the numbers
    ax.margins(x=0.16)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel(plain(attributions.scores[score]))
    ax.set_title(
        f"mean of the background {rounded(base)}, this row {rounded(float(ends[-1]))}", fontsize=9
    )
    plain_ticks(ax)
    return ax


def _named(attributions: Attributions, row: int, i: int) -> str:
    """The name and the value of an input in a row."""
    value = attributions.data[row][i]
    text = written(value.item() if isinstance(value, np.generic) else value)
    return plain(f"{attributions.names[i]} = {text}")


def plot_interactions(
    attributions: Attributions,
    row: int | None = None,
    ax: Axes | None = None,
    *,
    score: int = 0,
    top: int = 10,
) -> Axes:
    """Draw the Shapley interaction values of pairs of inputs as a heat map.

    Parameters
    ----------
    attributions : Attributions
        The result of `quadric.explain.attribute`.
    row : int, optional
        The index of the row. By default, the mean absolute values of all rows are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    score : int
        The index of the score.
    top : int
        Maximum number of inputs to draw, those with the strongest interactions first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. A cell below the diagonal contains the whole interaction value of two inputs, and
        the diagonal contains the effect of an input without interactions.
    """
    top = check_integer("top", top, at_least=1)
    pairs: Any = attributions.interactions(score)
    single = row is not None
    whole = pairs[row] if single else np.abs(pairs).mean(axis=0)
    p = len(whole)
    off = whole * (1 - np.eye(p))
    chosen = np.argsort(-np.abs(off).sum(axis=0) - 1e-9 * np.abs(np.diag(whole)), kind="stable")
    chosen = chosen[:top]
    drawn = (2 * off + np.diag(np.diag(whole)))[np.ix_(chosen, chosen)]
    ax = get_ax(ax)
    size = float(np.abs(drawn).max()) or 1.0
    limits = (-size, size) if single else (0.0, size)
    hidden = np.triu(np.ones(drawn.shape, dtype=bool), 1)
    picture = ax.imshow(
        np.ma.masked_array(drawn, hidden),
        cmap="PuOr_r" if single else "Purples",
        vmin=limits[0],
        vmax=limits[1],
    )
    names = [plain(attributions.names[i]) for i in chosen]
    name_rows_and_columns(ax, names, names, rotation=45 if len(names) > 3 else 0)
    if len(names) <= MOST_NUMBERS:
        cells = np.where(hidden, np.nan, drawn)
        dark = np.abs(drawn) > 0.65 * size
        write_numbers(ax, cells, ".2g", dark, 7)
        for text in ax.texts:
            if text.get_text() == "nan":
                text.set_visible(False)
    ax.spines[:].set_visible(False)
    what = "interaction value" if single else "mean absolute interaction value"
    ax.figure.colorbar(picture, ax=ax, label=what, shrink=0.8)
    ax.set_title(plain(attributions.scores[score]), fontsize=9)
    return ax
