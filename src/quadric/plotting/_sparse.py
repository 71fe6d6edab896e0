"""Plots of sparse models: the path of their coefficients, stable terms, and pairs as a graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from quadric.checks import check_integer
from quadric.estimators import SparsePath, Stability
from quadric.explain import Explanation
from quadric.plotting._style import BOUNDARY, COLORS, color_of, dashes_of, get_ax, plain
from quadric.utils import rounded

WIDEST = 7.0  # points, of the line of the strongest pair
FAINT = "#9AA3AE"


def _name(term: tuple[int, ...], names: Sequence[str] | None) -> str:
    """The term in words: 'age', 'age²' or 'age·bmi'; by default, inputs are x1, x2, ..."""
    words = [plain(names[i]) if names is not None else f"x{i + 1}" for i in term]
    return f"{words[0]}²" if len(term) == 2 and term[0] == term[1] else "·".join(words)


def plot_path(
    path: SparsePath,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    output: int = 0,
    top: int = 8,
) -> Axes:
    """Draw the coefficients of the standardized terms for each penalty.

    Parameters
    ----------
    path : SparsePath
        The result of `fit_path`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    names : sequence of str, optional
        Names of the inputs.
    output : int
        The class, or output, whose coefficients are drawn.
    top : int
        Number of terms that are named: those that enter first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with penalties in decreasing order.
    """
    top = check_integer("top", top, at_least=1)
    values, ax = path.coefficients[:, :, output], get_ax(ax)
    entered = np.where(values.any(axis=0), (values != 0).argmax(axis=0), len(values))
    order = np.lexsort((-np.abs(values[-1]), entered)) if len(values) else np.zeros(0, int)
    for rank, k in enumerate(order.tolist()):
        if rank < top and entered[k] < len(values):
            style: dict[str, Any] = {"color": color_of(rank), "linestyle": dashes_of(rank)}
            style |= {"label": _name(path.terms[k], names), "linewidth": 1.8, "zorder": 3}
        else:
            style = {"color": FAINT, "linewidth": 0.7, "alpha": 0.6}
        ax.plot(path.alphas, values[:, k], **style)
    ax.axhline(0, color=BOUNDARY, linewidth=0.8)
    ax.set_xscale("log")
    ticks = np.geomspace(path.alphas[-1], path.alphas[0], 5)
    ax.set_xticks(ticks, [rounded(tick, 2) for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.invert_xaxis()
    ax.set(xlabel="penalty alpha, decreasing", ylabel="coefficient of the standardized term")
    ax.legend(fontsize=8, title="in order of entry", title_fontsize=8, loc="best")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_frequencies(
    found: Stability,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    top: int = 15,
) -> Axes:
    """Draw how often each term is selected on halves of the samples.

    Parameters
    ----------
    found : Stability
        The result of `stability`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    names : sequence of str, optional
        Names of the inputs.
    top : int
        Maximum number of terms to draw, the most frequent first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. The dashed line is the frequency from which a term counts as stable.
    """
    top, ax = check_integer("top", top, at_least=1), get_ax(ax)
    shares = 100 * found.frequencies[:top]
    stable = shares >= 100 * found.threshold
    places = np.arange(len(shares))
    ax.barh(places, shares, height=0.7, color=np.where(stable, COLORS[0], FAINT).tolist())
    ax.axvline(100 * found.threshold, color=BOUNDARY, linestyle="--", linewidth=1)
    ax.set_yticks(places, [_name(term, names) for term in found.terms[:top]])
    ax.invert_yaxis()
    ax.set(xlim=(0, 102), xlabel="selected on halves of the samples (%)")
    title = f"{len(found.stable)} stable of {found.n_candidates:,} terms".replace(",", " ")
    ax.set_title(f"{title}; at most {found.expected_false:.2g} false ones expected", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_pairs(
    explanation: Explanation, ax: Axes | None = None, *, output: Any = None, top: int = 15
) -> Axes:
    """Draw the inputs of an equation as a graph, with a line for each product.

    Parameters
    ----------
    explanation : Explanation
        The result of `explain` for a model that is an equation.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    output : object, optional
        The class or output to draw; by default, the first one.
    top : int
        Maximum number of products to draw, the strongest first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. The width of a line and the size of a point are the effects of the product and of
        the input's own terms, and its color is the sign. The frequency is next to a line if it is
        known.
    """
    top, ax = check_integer("top", top, at_least=1), get_ax(ax)
    rows = explanation.rows()
    label = rows[0]["output"] if rows and output is None else output
    rows = sorted((r for r in rows if r["output"] == label), key=lambda r: -r["effect"])
    pairs = [row for row in rows if row["kind"] == "interaction"][:top]
    own: dict[str, float] = {}
    for row in rows:
        if row["kind"] != "interaction":
            own[row["input"]] = float(np.hypot(own.get(row["input"], 0.0), row["effect"]))
    ends = [row[key] for row in pairs for key in ("input", "other_input")]
    inputs = list(dict.fromkeys([*own, *ends]))
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(inputs)) / max(1, len(inputs))
    at = dict(zip(inputs, np.column_stack([np.cos(angles), np.sin(angles)]), strict=True))
    largest = max([row["effect"] for row in rows], default=0.0) or 1.0
    for row in pairs:
        start, end = at[row["input"]], at[row["other_input"]]
        color = color_of(0 if row["coefficient"] > 0 else 1)
        width = max(0.8, WIDEST * row["effect"] / largest)
        ax.plot(*np.array([start, end]).T, color=color, linewidth=width, alpha=0.75, zorder=1)
        if row["frequency"] is not None:
            middle = 0.4 * start + 0.6 * end  # lines that cross in the middle have labels apart
            box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            often = f"{100 * row['frequency']:.0f} %"
            ax.text(
                middle[0],
                middle[1],
                often,
                bbox=box,
                ha="center",
                va="center",
                fontsize=8,
                zorder=3,
            )
    for name, (x, y) in at.items():
        effect = own.get(name, 0.0) / largest
        face = COLORS[6] if name in own else "white"
        ax.scatter([x], [y], s=40 + 260 * effect, color=face, edgecolor=COLORS[6], zorder=2)
        side = "left" if x > 0.1 else "right" if x < -0.1 else "center"
        ax.text(1.13 * x, 1.13 * y, plain(name), ha=side, va="center", fontsize=9)
    for k, sign in enumerate(("positive", "negative")):
        ax.plot([], [], color=color_of(k), linewidth=3, alpha=0.75, label=f"{sign} product")
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False)
    ax.set(xlim=(-1.75, 1.75), ylim=(-1.35, 1.35), aspect="equal", title=plain(label))
    ax.set_axis_off()
    return ax
