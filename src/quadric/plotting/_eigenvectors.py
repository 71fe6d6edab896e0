"""What a neuron over images looks for: the eigenvectors of its Q, as pictures."""

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
    """The eigenvectors of Q with the largest eigenvalues, a row for each class.

    An input that looks like one of them, or like its negative, raises the class's score where
    the eigenvalue is positive (+) and lowers it where it is negative (-).

    Parameters
    ----------
    model : Explanation, or anything that `explain` takes
    shape : (rows, columns)
        Of the images.
    count : int
        How many for each class.
    pixels : sequence of int, optional
        Which pixel each input is, counted row by row, where some are not inputs; the default is
        all of them in order.
    """
    count = checks.check_integer("count", count, at_least=1)
    explanation = model if isinstance(model, Explanation) else explain(model)
    n = len(explanation.names)
    fits = np.shape(shape) == (2,)
    if fits and pixels is None:
        fits = shape[0] * shape[1] == n
    elif fits and pixels is not None:
        fits = len(pixels) == n and min(pixels) >= 0 and max(pixels) < shape[0] * shape[1]
    if not fits:
        raise ValueError(f"shape must be (rows, columns) with {n} pixels in all. Got {shape}.")
    items = explanation.classes
    # short rows side by side, so that ten classes make a figure that fits a page
    blocks = 2 if len(items) > 5 else 1
    rows = -(-len(items) // blocks)
    figure = Figure(
        figsize=((1.15 * count + 0.7) * blocks, 1.28 * rows + 0.3), layout="constrained", dpi=150
    )
    figure.suptitle(
        "eigenvectors of Q: an image like one of these, or like its negative, raises (+) or lowers "
        "(-) the score",
        fontsize=9,
    )
    for b, block in enumerate(figure.subfigures(1, blocks, squeeze=False)[0]):
        axes = block.subplots(rows, count, squeeze=False)
        for row in range(rows):
            k = b * rows + row
            if k >= len(items):
                for ax in axes[row]:
                    ax.remove()
                continue
            eigenvalues, vectors = items[k].eigenvectors(count)
            for ax, value, vector in zip(axes[row], eigenvalues, vectors, strict=False):
                if pixels is not None:
                    whole = np.zeros(shape[0] * shape[1])
                    whole[list(pixels)] = vector
                    vector = whole
                largest = float(np.abs(vector).max())
                sign = 1.0 if vector[np.abs(vector).argmax()] > 0 else -1.0
                ax.imshow(
                    sign * vector.reshape(shape), cmap="PuOr", vmin=-largest, vmax=largest,
                    interpolation="nearest",
                )  # fmt: skip
                ax.set_xticks([])
                ax.set_yticks([])
                ax.set_title(f"{value:+.2f}", fontsize=8, pad=2)
            axes[row, 0].set_ylabel(plain(items[k].label), rotation=0, ha="right", va="center")
    return figure
