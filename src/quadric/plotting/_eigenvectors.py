"""Eigenvectors of the classes' interaction matrices, drawn as images."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.checks import Array, check_integer
from quadric.explain import Explanation, Spectrum, spectrum
from quadric.plotting._style import get_figure, plain

TITLE = (
    "eigenvectors of Q: an image like one of these, or like its negative, raises (+) or lowers "
    "(-) the score"
)
GAP = 0.25  # between positive and negative eigenvalues, in images


def plot_image_classifier(
    model: Any, shape: tuple[int, int], places: list[int] | None = None, columns: int = 0
) -> Figure:
    """Draw the eigenvectors of each class, for the command line.

    `places` are the positions of the inputs among the `columns` columns other than the target.
    """
    all_pixels = places and columns == shape[0] * shape[1]
    return plot_eigenvectors(model, shape, pixels=places if all_pixels else None)


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
    height, widths = -(-len(rows) // blocks), [1.0 if drawn else GAP for drawn in _columns(rows)]
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


def _columns(rows: list[list[Pair | None]]) -> list[bool]:
    """Whether each column has an image."""
    return [any(pair is not None for pair in column) for column in zip(*rows, strict=True)]


def _padded(values: Array, vectors: Array, count: int) -> list[Pair | None]:
    pairs: list[Pair | None] = [
        (float(value), vector * np.sign(vector[np.abs(vector).argmax()]))
        for value, vector in zip(values[:count], vectors, strict=False)
    ]
    return pairs + [None] * (count - len(pairs))
