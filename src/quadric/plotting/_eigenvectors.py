"""Eigenvectors of Q as images, for models whose inputs are pixels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric._utils import checks
from quadric.explain import Explanation, explain
from quadric.plotting._style import plain


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
