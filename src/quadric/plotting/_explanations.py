"""Plots of what `explain` computes: dependence, interactions, importances and spectra."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quadric.checks import Array, check_integer
from quadric.convert import scored_truncations
from quadric.explain import (
    Dependence,
    Explanation,
    InputData,
    Spectrum,
    dependence,
    interactions,
    mean_predictions,
    rank_inputs,
    similarity,
    spectrum,
    strongest_pairs,
    written,
)
from quadric.models import classes_of
from quadric.plotting._style import (
    BOUNDARY,
    COLORS,
    DASHES,
    MOST_LINES,
    color_of,
    get_ax,
    get_figure,
    name_categories,
    name_rows_and_columns,
    plain,
    plain_ticks,
    write_numbers,
)

# ---- dependence and importances ----------------------------------------------------------


MOST_DRAWN = 4  # inputs that are drawn
PARTS = ("linear", "squared", "interactions")  # of an importance


def plot_dependence(
    model: Any, X: Any, *, target: str = "y", columns: int | None = None, figure: Any = None
) -> Figure:
    """Draw how the mean prediction depends on the strongest inputs and interactions.

    The upper plots show the prediction, averaged over the data, if one input is set to a value.
    The lower plots show pairs of inputs. Their lines are parallel if the inputs do not interact.
    Therefore, a classifier is drawn by its scores: the log-odds of the second of two classes or,
    with more classes, the logarithm of each probability minus the mean over the classes.

    Parameters
    ----------
    model : fitted estimator, or Pipeline
        A classifier or regressor.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, in the form that the model accepts.
    target : str
        Name of the predicted number.
    columns : int, optional
        Number of plots in a row, such as 1 for a narrow screen. By default, all inputs are in one
        row, and all pairs in another.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    names = [one.name for one in rank_inputs(model, X)[:MOST_DRAWN]]
    curves = [dependence(model, X, [name], size=25, target=target, scores=True) for name in names]
    pairs = _strongest_pairs(model, X, names, target)
    columns = check_integer("columns", columns or max(len(names), 2), at_least=1)
    rows = [-(-len(some) // columns) for some in (curves, pairs) if some]
    figure = get_figure(figure, 3.1 * columns + (0.6 if columns == 1 else 0), 3.2 * sum(rows))
    upper, *lower = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=rows)[:, 0]
    _title(upper, f"Mean {_what(model)} if one input is set to a value", columns)
    across = min(columns, len(curves))
    axes = _grid(upper, len(curves), across, sharey=True)
    for ax, curve in zip(axes, curves, strict=True):
        _curve(ax, curve)
    name = plain(curves[0].outputs[0])
    if len(curves[0].outputs) > 1:
        name = "score" if classes_of(model) is not None else f"mean {plain(target)}"
        axes[-1].legend(fontsize=7)
    for ax in axes:
        plain_ticks(ax)
    for ax in axes[::across]:
        ax.set_ylabel(name)
    if lower:
        parallel = "Strongest interactions: without one, the lines would be parallel"
        _title(lower[0], parallel, columns)
        places = _grid(lower[0], len(pairs), min(columns, len(pairs)))
        for ax, pair in zip(places, pairs, strict=True):
            _interaction(ax, pair)
    return figure


def _title(figure: Any, text: str, columns: int) -> None:
    """Write a title that is not wider than the plots."""
    figure.suptitle(textwrap.fill(text, 44 * columns), fontsize=10)


def _grid(figure: Any, count: int, columns: int, **style: Any) -> list[Axes]:
    """Return `count` axes in rows; the remaining places of the last row are empty."""
    rows = -(-count // columns)
    axes: list[Axes] = figure.subplots(rows, columns, squeeze=False, **style).ravel().tolist()
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def _what(model: Any) -> str:
    """The additive scale on which a model is drawn."""
    classes = classes_of(model)
    if classes is None:
        return "prediction"
    return "log-odds" if len(classes) == 2 else "score (log-probability, centered)"


def _curve(ax: Axes, curve: Dependence) -> None:
    places = _places(ax, curve.labels[0], curve.grids[0])
    style = "o" if _has_categories(curve.grids[0]) else "-"
    for k, name in enumerate(curve.outputs[:MOST_LINES]):
        label = plain(name.removeprefix("score of "))
        ax.plot(places, curve.mean[:, k], style, color=color_of(k), label=label, linewidth=1.8)


def _interaction(ax: Axes, pair: Dependence) -> None:
    places = _places(ax, pair.labels[0], pair.grids[0])
    categories, k = _has_categories(pair.grids[0]), pair.main_output
    count = len(pair.grids[1])
    drawn = np.linspace(0, count - 1, min(count, MOST_LINES)).round().astype(int).tolist()
    for j in drawn:
        label = f"{plain(pair.inputs[1])} = {plain(written(pair.grids[1][j]))}"
        style = {"marker": "o", "linestyle": ""} if categories else {"linestyle": DASHES[j % 4]}
        ax.plot(places, pair.mean[:, j, k], color=color_of(j), label=label, **style)
    ax.set_ylabel(plain(pair.outputs[k]))
    plain_ticks(ax)
    title = None if len(drawn) == count else f"{len(drawn)} of {count} values"
    ax.legend(fontsize=7, title=title, title_fontsize=7)


def _has_categories(grid: list[Any]) -> bool:
    return not all(isinstance(value, float) for value in grid)


def _places(ax: Axes, name: str, grid: list[Any]) -> Array:
    ax.set_xlabel(plain(name))
    if not _has_categories(grid):
        ax.xaxis.set_major_locator(MaxNLocator(4))
        return np.array(grid)
    places = np.arange(len(grid), dtype=float)
    name_categories(ax, places, [plain(written(value)) for value in grid])
    ax.set_xlim(-0.5, len(grid) - 0.5)
    return places


def _strongest_pairs(model: Any, X: Any, names: list[str], target: str) -> list[Dependence]:
    """The pairs among `names` whose joint dependence is least like a sum of two functions."""
    strongest = strongest_pairs(model, X, names, target=target)[:2]
    columns = InputData.of(model, X)
    found = []
    for pair in strongest:
        # a number is on the axis rather than a category; the other input distinguishes the lines
        chosen = sorted(
            (columns.names.index(name) for name in pair.inputs),
            key=lambda k: columns.numbers(k) is None,
        )
        found.append(mean_predictions(model, columns, chosen, (25, 3), target, scores=True))
    return found


def plot_importances(explanation: Explanation, ax: Axes | None = None, *, top: int = 10) -> Axes:
    """Draw the importance of each input as a bar, divided among its linear and other terms.

    Parameters
    ----------
    explanation : Explanation
        The result of `explain`, with data if the model has a hidden layer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    top : int
        Maximum number of inputs to draw, the most important first.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    top = check_integer("top", top, at_least=1)
    if not explanation.importances:
        raise ValueError(
            "explanation must have importances. After a hidden layer, they need data: "
            "explain(model, X)."
        )
    shown = explanation.importances[:top]
    ax = get_ax(ax)
    places = np.arange(len(shown))
    # after a hidden layer, an importance has no parts
    parts = ("total",) if shown[0].linear is None else PARTS
    end = np.zeros(len(shown))
    for k, part in enumerate(parts):
        width = np.array([100 * getattr(one, part) for one in shown])
        ax.barh(places, width, left=end, height=0.7, color=color_of(k), label=part)
        end += width
    ax.set_yticks(places, [plain(one.name) for one in shown])
    ax.invert_yaxis()
    what = "variance" if "variance" in explanation.importance_note else "mean absolute effects"
    ax.set_xlabel(f"share of the {what} (%)")
    if len(parts) > 1:
        ax.legend(title="terms", fontsize=8, title_fontsize=8, loc="lower right")
    return ax


# ---- spectra -----------------------------------------------------------------------------


POSITIVE, NEGATIVE = "#542788", "#E08214"  # the ends of the color map of eigenvectors
MOST_PANELS = 20
MOST_NUMBERS = 12  # classes up to which a similarity is printed in its cell


def plot_spectrum(model: Any, count: int = 10, *, figure: Any = None) -> Figure:
    """Draw the largest positive and the lowest negative eigenvalues of each class as bars.

    Parameters
    ----------
    model : Spectrum, or a model that `spectrum` accepts
        The model.
    count : int
        Number of positive and of negative eigenvalues per class.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw on. By default, a new one is created, without pyplot.

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
        Figure to draw on. By default, a new one is created, without pyplot.

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
    figure.suptitle(
        "eigenvectors of Q: an image like one of these, or like its negative, raises (+) or lowers "
        "(-) the score",
        fontsize=9,
    )
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
            ax.imshow(
                image.reshape(shape), interpolation="nearest", cmap="PuOr", vmin=-limit, vmax=limit
            )
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
        rows = [_padded(*item.eigenvectors(count), count) for item in found.classes]
        return [item.label for item in found.classes], rows
    if separate:
        return found.labels, [
            [*_padded(*plus, count), None, *_padded(*minus, count)]
            for plus, minus in zip(found.positive, found.negative, strict=True)
        ]
    pairs = zip(found.eigenvalues, found.eigenvectors, strict=True)
    return found.labels, [_padded(*pair, count) for pair in pairs]


def _padded(values: Array, vectors: Array, count: int) -> list[Pair | None]:
    pairs: list[Pair | None] = [
        (float(value), vector * np.sign(vector[np.abs(vector).argmax()]))
        for value, vector in zip(values[:count], vectors, strict=False)
    ]
    return pairs + [None] * (count - len(pairs))
