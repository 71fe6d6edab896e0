"""The picture that suits a classifier: regions of two inputs, slices of a boundary of more."""

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric._utils.arrays import unmasked
from quadric.explain import boundary
from quadric.explain._model import SelectedLayer, select_layer
from quadric.plotting._eigenvectors import plot_eigenvectors
from quadric.plotting._regions import plot_regions
from quadric.plotting._slices import plot_slices
from quadric.plotting._style import plain


def of_classes(
    model: Any, X: Any = None, y: Any = None, pair: list[str] | None = None
) -> tuple[Figure, list[str]]:
    """A figure, and what is worth saying of it.

    Parameters
    ----------
    model : fitted classifier or Pipeline that ends with one
    X, y : table and labels, optional
        Points to draw, and to look around.
    pair : two classes, as text, optional
        For more than two inputs: whose boundary; the default is the last two.
    """
    parts = select_layer(model, -1)
    if parts.classes is None:
        raise ValueError("only a classifier can be drawn; this model predicts numbers.")
    n = len(parts.space.names) if parts.space.kind == "inputs" else _n_inputs(model)
    if n == 2:
        return _regions(model, parts, X, y), []
    if parts.space.kind == "hidden":
        raise ValueError(
            f"a model with a hidden layer and {n} inputs has no surface to slice: it can be drawn "
            "for two inputs."
        )
    labels = parts.classes.tolist()
    chosen = _pair(labels, pair)
    said = []
    if len(labels) > 2 and not pair:
        said = [f"Drawn: where {chosen[0]} and {chosen[1]} tie; choose others with --classes a,b."]
    at, points, colors = None, None, None
    if X is not None:
        points = np.asarray(parts.space.reach(X), dtype=float)
        if y is not None:
            shown = np.isin(y, chosen)
            points, colors = points[shown], y[shown]
    if X is None or not len(points if points is not None else ()):
        points = colors = None
        at = None if parts.space.typical is None else parts.space.typical[0]
    surface = boundary(model, *chosen)
    figure = plot_slices(surface, at, names=parts.space.names, X=points, y=colors)
    title = f"where {plain(chosen[0])} and {plain(chosen[1])} tie: {surface.kind}"
    figure.suptitle(title, fontsize=11)
    return figure, said


def of_images(
    model: Any, shape: tuple[int, int], places: list[int] | None = None, columns: int = 0
) -> Figure:
    """The eigenvectors of each class, as images; `places` are the inputs among the columns."""
    if places and columns == shape[0] * shape[1]:
        return plot_eigenvectors(model, shape, pixels=places)
    return plot_eigenvectors(model, shape)


def picture_bytes(figure: Figure, suffix: str) -> bytes:
    """The figure as a file's content, the same bytes each time."""
    stream = io.BytesIO()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower())
    figure.savefig(stream, format=suffix.lower().lstrip("."), metadata=metadata)
    return stream.getvalue()


def _regions(model: Any, parts: SelectedLayer, X: Any, y: Any) -> Figure:
    figure = Figure(figsize=(6, 5), layout="constrained", dpi=150)
    ax = figure.subplots()
    window = None
    points = None if X is None else np.asarray(unmasked("X", X), dtype=float)
    if points is None:
        mean, std = parts.space.typical or (np.zeros(2), np.ones(2))
        low, high = np.asarray(mean) - 3 * np.asarray(std), np.asarray(mean) + 3 * np.asarray(std)
        window = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    plot_regions(model, points, y, ax, window=window)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        ax.set_xlabel(plain(names[0]))
        ax.set_ylabel(plain(names[1]))
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


def _n_inputs(model: Any) -> int:
    return int(getattr(model, "n_features_in_", 0))
