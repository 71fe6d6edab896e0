"""Plots of spectra: eigenvalues of each class, truncation curves and similarities of classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.checks import check_integer
from quadric.convert import scored_truncations
from quadric.explain import Spectrum, interactions, similarity, spectrum
from quadric.plotting._style import BOUNDARY, COLORS, get_ax, get_figure, plain

POSITIVE, NEGATIVE = "#542788", "#E08214"  # the ends of the color map of eigenvectors
MOST_PANELS = 20
MOST_NUMBERS = 12  # classes up to which a similarity is printed in its cell
NEAR = 0.01  # largest loss of score at the rank that is marked


def plot_spectrum(model: Any, count: int = 10, *, figure: Any = None) -> Figure:
    """Draw the largest positive and the lowest negative eigenvalues of each class as bars.

    Parameters
    ----------
    model : Spectrum, or a model that `spectrum` accepts
        The model.
    count : int
        Number of positive and of negative eigenvalues per class.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Each panel states the effective rank, (sum |lambda|)² / sum lambda².
    """
    count = check_integer("count", count, at_least=1)
    found = model if isinstance(model, Spectrum) else spectrum(model)
    shown = min(len(found.labels), MOST_PANELS)
    count = min(count, len(found.names))
    columns = min(shown, 5)
    rows = -(-shown // columns)
    figure = get_figure(figure, max(2.2 * columns, 4.5), 2.1 * rows + 0.6)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for k, ax in enumerate(axes.flat):
        if k >= shown:
            ax.remove()
            continue
        for pairs, color in ((found.positive[k], POSITIVE), (found.negative[k], NEGATIVE)):
            values = pairs.eigenvalues[:count]
            ax.bar(np.arange(1, len(values) + 1), values, color=color, width=0.8)
        ax.axhline(0, color=BOUNDARY, linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(
            f"{plain(found.labels[k])}  (rank {found.effective_rank[k]:.1f})", fontsize=9, pad=3
        )
        ax.set_xticks([1, *([] if count == 1 else [count])])
        ax.tick_params(labelsize=8)
    figure.supylabel("eigenvalue", fontsize=9)
    figure.supxlabel("number of the eigenvalue, by decreasing magnitude", fontsize=9)
    more = "" if shown == len(found.labels) else f", the first {shown} of {len(found.labels)}"
    figure.suptitle(f"Eigenvalues of Q, with the effective rank of each class{more}", fontsize=10)
    return figure


def plot_truncation(
    model: Any, X: Any, y: Any, ax: Axes | None = None, *, ranks: Sequence[int] | None = None
) -> Axes:
    """Draw the accuracy of a model, or R² of a regressor, against the rank that is kept.

    The smallest rank whose score is at most 0.01 below the last one is marked.

    Parameters
    ----------
    model : model that `truncate` accepts
        The model.
    X : array or table of shape (n_samples, n_features)
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes or numbers.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    ranks : sequence of int, optional
        The ranks to draw. By default, all of them.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    found, scores, name = scored_truncations(model, X, y, ranks)
    ax = get_ax(ax)
    ax.axhline(scores[-1], color=BOUNDARY, linestyle="--", linewidth=1)
    ax.plot(found, scores, color=COLORS[0], marker="o", markersize=3.5, linewidth=1.4)
    enough = int(np.argmax(scores >= scores[-1] - NEAR))
    ax.plot(found[enough], scores[enough], "o", color=COLORS[1], markersize=7)
    ax.annotate(
        f"rank {found[enough]}: {scores[enough]:.3f}",
        (found[enough], scores[enough]),
        xytext=(8, -14),
        textcoords="offset points",
        fontsize=9,
        color=COLORS[1],
    )
    ax.annotate(
        f"rank {found[-1]}: {scores[-1]:.3f}",
        (found[-1], scores[-1]),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
    ax.set_xscale("symlog", linthresh=8, linscale=1.6)
    ticks = [t for t in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if t <= found[-1]]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.margins(y=0.1)
    ax.set(xlabel="eigenvectors kept per class", ylabel=name)
    return ax


def plot_similarity(
    a: Any, b: Any = None, ax: Axes | None = None, *, centered: bool | None = None
) -> Axes:
    """Draw the cosine similarity of the interaction matrices of classes as a heat map.

    Parameters
    ----------
    a : model that `similarity` accepts
        The model.
    b : like a, optional
        Another model with the same inputs. By default, the classes of `a` are compared with each
        other.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    centered : bool, optional
        As in `spectrum`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    S = similarity(a, b, centered=centered)
    names = [
        [plain(one) for one in interactions(model).labels] for model in (a, a if b is None else b)
    ]
    ax = get_ax(ax)
    image = ax.imshow(S, cmap="PuOr", vmin=-1, vmax=1)
    ax.figure.colorbar(image, ax=ax, label="cosine similarity of Q", shrink=0.85)
    if max(S.shape) <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(S):
            color = "white" if abs(value) > 0.5 else "black"
            text = f"{round(value, 2) + 0.0:.2f}"  # never -0.00
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=7)
    if max(S.shape) <= 60:
        turned = 45 if max(map(len, names[1])) > 3 else 0
        ax.set_xticks(range(S.shape[1]), names[1], rotation=turned, fontsize=8)
        ax.set_yticks(range(S.shape[0]), names[0], fontsize=8)
    if b is not None:
        ax.set(xlabel="second model", ylabel="first model")
    return ax
