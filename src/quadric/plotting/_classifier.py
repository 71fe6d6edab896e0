"""The plots of `quadric plot`: regions of two inputs, slices of a boundary of more, images."""

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric._utils.arrays import unmasked
from quadric.explain import boundary
from quadric.explain._model import SelectedLayer, select_layer
from quadric.plotting._eigenvectors import plot_eigenvectors
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
    window = points = None
    if X is not None:
        points = np.asarray(unmasked("X", X), dtype=float)
    else:
        mean, std = selected.space.typical or (np.zeros(2), np.ones(2))
        window = tuple(np.ravel([mean - 3 * std, mean + 3 * std], order="F").tolist())
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
