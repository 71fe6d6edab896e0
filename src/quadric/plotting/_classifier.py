"""Plots of a fitted classifier: regions of two inputs, slices of a boundary of more, images."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric._utils import checks
from quadric.explain import Explanation, boundary, explain
from quadric.explain._model import SelectedLayer, select_layer
from quadric.plotting._quadrics import plot_slices
from quadric.plotting._regions import plot_regions
from quadric.plotting._style import plain


def plot_classifier(
    model: Any, X: Any = None, y: Any = None, pair: list[str] | None = None
) -> tuple[Figure, list[str]]:
    """A figure of a fitted classifier, and notes about it for the user.

    X and y are points to draw. For more than two inputs, `pair` names the two classes whose
    boundary is drawn; the default is the last two.
    """
    selected = select_layer(model, -1)
    space = selected.space
    if selected.classes is None:
        raise ValueError("model must be a classifier. Got a model that predicts numbers.")
    n = len(space.names) if space.kind == "inputs" else getattr(model, "n_features_in_", 0)
    if n == 2:
        return _regions(model, selected, X, y), []
    if space.kind == "hidden":
        raise ValueError(
            f"a model with a hidden layer and {n} inputs has no surface to slice. Models with "
            "hidden layers can be drawn if they have two inputs."
        )
    chosen = _pair(selected.labels, pair)
    notes = []
    if len(selected.labels) > 2 and not pair:
        notes = [f"Drawn: where {chosen[0]} and {chosen[1]} tie; choose others with --classes a,b."]
    at = None if space.typical is None else space.typical[0]
    points = colors = None
    if X is not None:
        points = np.asarray(space.reach(X), dtype=float)
        if y is not None:
            shown = np.isin(y, chosen)
            points, colors = points[shown], y[shown]
        if len(points):
            at = None  # the mean of the points
        else:
            points = colors = None
    surface = boundary(model, *chosen)
    figure = plot_slices(surface, at, names=space.names, X=points, y=colors)
    title = f"where {plain(chosen[0])} and {plain(chosen[1])} tie: {surface.kind}"
    figure.suptitle(title, fontsize=11)
    return figure, notes


def plot_image_classifier(
    model: Any, shape: tuple[int, int], places: list[int] | None = None, columns: int = 0
) -> Figure:
    """The eigenvectors of each class as images; `places` are the inputs among the columns."""
    all_pixels = places and columns == shape[0] * shape[1]
    return plot_eigenvectors(model, shape, pixels=places if all_pixels else None)


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """The content of an image file; the same figure always gives the same bytes."""
    stream = io.BytesIO()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower())
    figure.savefig(stream, format=suffix.lower().lstrip("."), metadata=metadata)
    return stream.getvalue()


def _regions(model: Any, selected: SelectedLayer, X: Any, y: Any) -> Figure:
    figure = Figure(figsize=(6, 5), layout="constrained", dpi=150)
    ax = figure.subplots()
    window = None
    if X is None:
        mean, std = selected.space.typical or (np.zeros(2), np.ones(2))
        window = tuple(np.ravel([mean - 3 * std, mean + 3 * std], order="F").tolist())
    plot_regions(model, X, y, ax, window=window)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]))
    if y is not None:
        ax.legend(fontsize=8)
    return figure


def _pair(labels: list[Any], pair: list[str] | None) -> tuple[Any, Any]:
    if not pair:
        return labels[-2], labels[-1]
    by_text = {str(label): label for label in labels}
    if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(by_text):
        raise ValueError(
            f"--classes takes two of the model's classes, {', '.join(by_text)}. "
            f"Got {', '.join(pair)}."
        )
    return by_text[pair[0]], by_text[pair[1]]


def plot_eigenvectors(
    model: Any, shape: tuple[int, int], count: int = 4, *, pixels: Sequence[int] | None = None
) -> Figure:
    """Draw the eigenvectors of Q with the largest eigenvalues, one row per class.

    An input that resembles an eigenvector, or its negative, raises the score of the class if the
    eigenvalue is positive (+) and lowers it if the eigenvalue is negative (-).

    Parameters
    ----------
    model : Explanation, or a model that `explain` accepts
        The model.
    shape : tuple (rows, columns)
        Shape of the images.
    count : int
        Number of eigenvectors per class.
    pixels : sequence of int, optional
        Index of the pixel that each input is, counted row by row. The default is all pixels in
        order.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    count = checks.check_integer("count", count, at_least=1)
    explanation = model if isinstance(model, Explanation) else explain(model)
    n = len(explanation.names)
    size = shape[0] * shape[1] if np.shape(shape) == (2,) else -1
    pixels = list(range(size)) if pixels is None else list(pixels)
    if len(pixels) != n or min(pixels) < 0 or max(pixels) >= size:
        raise ValueError(f"shape must be (rows, columns) with {n} pixels in all. Got {shape}.")
    items = explanation.classes
    # more than five classes are drawn in two blocks, so that ten fit on a page
    blocks = 2 if len(items) > 5 else 1
    rows = -(-len(items) // blocks)
    width, height = (1.15 * count + 0.7) * blocks, 1.28 * rows + 0.3
    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    figure.suptitle(
        "eigenvectors of Q: an image like one of these, or like its negative, raises (+) or lowers "
        "(-) the score",
        fontsize=9,
    )
    axes = [
        row
        for block in figure.subfigures(1, blocks, squeeze=False)[0]
        for row in block.subplots(rows, count, squeeze=False)
    ]
    for item, row in zip(items, axes, strict=False):
        for ax, value, vector in zip(row, *item.eigenvectors(count), strict=False):
            image = np.zeros(size)
            image[pixels] = vector * np.sign(vector[np.abs(vector).argmax()])
            limit = float(np.abs(vector).max())
            style = {"cmap": "PuOr", "vmin": -limit, "vmax": limit, "interpolation": "nearest"}
            ax.imshow(image.reshape(shape), **style)
            ax.set(xticks=[], yticks=[])
            ax.set_title(f"{value:+.2f}", fontsize=8, pad=2)
        row[0].set_ylabel(plain(item.label), rotation=0, ha="right", va="center")
    for ax in np.ravel(axes[len(items) :]):
        ax.remove()
    return figure
