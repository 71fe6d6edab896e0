"""Plots of spectra: eigenvalues and eigenvectors, truncation curves, similarities of classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.checks import Array, check_integer
from quadric.convert import scored_truncations
from quadric.explain import Explanation, Spectrum, interactions, similarity, spectrum
from quadric.plotting._style import (
    BOUNDARY,
    COLORS,
    get_ax,
    get_figure,
    name_rows_and_columns,
    plain,
    write_numbers,
)

POSITIVE, NEGATIVE = "#542788", "#E08214"  # the ends of the color map of eigenvectors
MOST_PANELS = 20
MOST_NUMBERS = 12  # classes up to which a similarity is printed in its cell
TITLE = (
    "eigenvectors of Q: an image like one of these, or like its negative, raises (+) or lowers "
    "(-) the score"
)


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
    for ax in axes.flat[shown:]:
        ax.remove()
    for k, ax in enumerate(axes.flat[:shown]):
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
    enough = int(np.argmax(scores >= scores[-1] - 0.01))
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
        write_numbers(ax, np.round(S, 2) + 0.0, ".2f", np.abs(S) > 0.5, fontsize=7)  # never -0.00
    name_rows_and_columns(ax, *names, rotation=45 if max(map(len, names[1])) > 3 else 0)
    if b is not None:
        ax.set(xlabel="second model", ylabel="first model")
    return ax


def plot_eigenvectors(
    model: Any,
    shape: tuple[int, int],
    count: int = 4,
    *,
    separate: bool = False,
    pixels: Sequence[int] | None = None,
    figure: Any = None,
) -> Figure:
    """Draw the eigenvectors of Q whose eigenvalues are largest in magnitude, one row per class.

    An input that resembles an eigenvector, or its negative, raises the score of the class if the
    eigenvalue is positive (+) and lowers it if the eigenvalue is negative (-).

    Parameters
    ----------
    model : Spectrum, Explanation, or a model that `spectrum` accepts
        The model.
    shape : tuple (rows, columns)
        Shape of the images.
    count : int
        Number of eigenvectors per class.
    separate : bool
        Whether to draw the `count` largest positive eigenvalues on the left and the `count` lowest
        negative ones on the right, instead of the `count` largest magnitudes.
    pixels : sequence of int, optional
        Index of each input's pixel, counted row by row. By default, the inputs are all pixels in
        order.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, which pyplot does not know.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    count = check_integer("count", count, at_least=1)
    found = model if isinstance(model, (Explanation, Spectrum)) else spectrum(model)
    n = len(found.names)
    size = shape[0] * shape[1] if np.shape(shape) == (2,) else -1
    pixels = list(range(size)) if pixels is None else list(pixels)
    if len(pixels) != n or min(pixels) < 0 or max(pixels) >= size:
        raise ValueError(f"shape must be (rows, columns) with {n} pixels in all. Got {shape}.")
    labels, rows = _rows(found, count, separate)
    # more than five classes are drawn in two blocks, so that ten fit on a page
    blocks = 2 if len(rows) > 5 else 1
    height = -(-len(rows) // blocks)
    # a column without images is a gap between positive and negative eigenvalues
    widths = [1.0 if any(column) else 0.25 for column in zip(*rows, strict=True)]
    figure = get_figure(figure, (1.15 * sum(widths) + 0.7) * blocks, 1.28 * height + 0.3)
    figure.suptitle(TITLE, fontsize=9)
    axes = [
        row
        for block in figure.subfigures(1, blocks, squeeze=False)[0]
        for row in block.subplots(height, len(widths), squeeze=False, width_ratios=widths)
    ]
    for label, row, images in zip(labels, axes, rows, strict=False):
        row[0].set_ylabel(plain(label), rotation=0, ha="right", va="center")
        for ax, pair in zip(row, images, strict=True):
            ax.set(xticks=[], yticks=[])
            if pair is None:
                ax.set_frame_on(False)
                continue
            value, vector = pair
            image = np.zeros(size)
            image[pixels] = vector
            limit = float(np.abs(vector).max())
            colors = {"cmap": "PuOr", "vmin": -limit, "vmax": limit}
            ax.imshow(image.reshape(shape), interpolation="nearest", **colors)
            ax.set_title(f"{value:+.2f}", fontsize=8, pad=2)
    for ax in np.ravel(axes[len(rows) :]):
        ax.remove()
    return figure


Pair = tuple[float, Array]


def _rows(
    found: Explanation | Spectrum, count: int, separate: bool
) -> tuple[list[Any], list[list[Pair | None]]]:
    """The labels, and the eigenpairs that are drawn in each row; None for an empty place."""
    if isinstance(found, Explanation):
        if separate:
            raise ValueError("separate needs a Spectrum or a model, not an Explanation.")
        parts = [item.eigenvectors(count) for item in found.classes]
        return [item.label for item in found.classes], [_padded(*part, count) for part in parts]
    strongest = zip(found.eigenvalues, found.eigenvectors, strict=True)
    if not separate:
        return found.labels, [_padded(*pairs, count) for pairs in strongest]
    signs = zip(found.positive, found.negative, strict=True)
    return found.labels, [
        [*_padded(*plus, count), None, *_padded(*minus, count)] for plus, minus in signs
    ]


def _padded(values: Array, vectors: Array, count: int) -> list[Pair | None]:
    pairs: list[Pair | None] = [
        (float(value), vector * np.sign(vector[np.abs(vector).argmax()]))
        for value, vector in zip(values[:count], vectors, strict=False)
    ]
    return pairs + [None] * (count - len(pairs))
