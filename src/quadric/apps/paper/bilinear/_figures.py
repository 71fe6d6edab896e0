"""Figures: accuracy by rank, certified accuracy by radius, and eigenvectors as images."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.paper.bilinear._cells import Key, data_names
from quadric.apps.paper.bilinear._measures import certified, truncated
from quadric.apps.paper.bilinear._published import NAMES, TITLES, VARIANTS
from quadric.apps.paper.experiments._experiment import new_figure
from quadric.apps.paper.experiments._statistics import Sample
from quadric.checks import Array
from quadric.datasets import ImageData
from quadric.explain import spectrum
from quadric.network import Network
from quadric.plotting import color_of, marker_of

Style = dict[str, Any]
# The names of the classes, by data set; other classes are numbered.
CLASSES = {
    "fashion_mnist": (
        *("T-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
}


def truncation_figure(cells: Mapping[Key, Sample], ranks: Sequence[int]) -> Figure:
    """Draw the accuracy of every variant by the number of eigenvectors that a class keeps."""

    def draw(ax: Any, name: str, variant: str, style: Style) -> None:
        means = [cells[name, variant, truncated(rank)].mean for rank in ranks]
        ax.plot(ranks, means, **style)

    figure, axes = _panels(cells, draw)
    for ax in axes:
        ax.set_xscale("log")
        ticks = [rank for rank in (1, 2, 5, 10, 20, 50, 100) if rank in ranks]
        ax.set_xticks(ticks, [str(rank) for rank in ticks])
        ax.minorticks_off()
        ax.set_xlabel("eigenvectors per class")
    axes[0].set_ylabel("test accuracy, %")
    return figure


def certified_figure(cells: Mapping[Key, Sample], distances: Sequence[float]) -> Figure:
    """Draw the certified accuracy of every variant by the radius."""

    def draw(ax: Any, name: str, variant: str, style: Style) -> None:
        means = [cells[name, variant, certified(distance)].mean for distance in distances]
        ax.plot(distances, means, **style, markevery=5)

    figure, axes = _panels(cells, draw)
    for ax in axes:
        ax.set_xlim(0, distances[-1])
        ax.set_ylim(0, 100)
        ax.set_xlabel("radius, pixels from 0 to 1")
    axes[0].set_ylabel("certified accuracy, %")
    return figure


def _panels(
    cells: Mapping[Key, Sample], draw: Callable[[Any, str, str, Style], None]
) -> tuple[Figure, Any]:
    """Draw one panel per data set with a line per variant, and a common legend."""
    names = data_names(cells)
    figure = new_figure(4.6 * len(names) if len(names) > 1 else 6.0, 3.7)
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        for k, variant in enumerate(VARIANTS):
            style: Style = {
                "color": color_of(k),
                "marker": marker_of(k),
                "markersize": 4,
                "linewidth": 1.4,
                "label": TITLES[variant],
            }
            draw(ax, name, variant, style)
        ax.set_title(NAMES.get(name, name), fontsize=10)
        ax.grid(alpha=0.25)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure, axes


def eigenvector_figure(networks: Mapping[str, Network], data: ImageData) -> Figure:
    """Draw the eigenvector with the largest positive eigenvalue of every class, by variant."""
    strongest = {variant: positive_images(network, data) for variant, network in networks.items()}
    count = len(next(iter(strongest.values())))
    classes = CLASSES.get(data.name, tuple(map(str, range(count))))
    figure = new_figure(0.92 * count + 1.0, 0.98 * len(strongest) + 0.25)
    axes = figure.subplots(len(strongest), count, squeeze=False)
    for row, (variant, images) in zip(axes, strongest.items(), strict=True):
        for label, (ax, image) in enumerate(zip(row, images, strict=True)):
            limit = float(np.abs(image).max()) or 1.0
            ax.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)
            if ax is axes[0, label]:
                ax.set_title(classes[label], fontsize=8)
        row[0].set_ylabel(TITLES[variant].replace(" and ", "\nand "), fontsize=8)
    return figure


def positive_images(network: Network, data: ImageData) -> Array:
    """Return the eigenvector with the largest eigenvalue of every class, as images.

    The sign of an eigenvector is arbitrary. It is chosen so that the product with the mean image of
    the class is positive.
    """
    images = []
    for label, pairs in enumerate(spectrum(network, centered=False).positive):
        mean = data.X_train[data.y_train == label].mean(axis=0)
        vector = pairs.eigenvectors[0] if len(pairs.eigenvectors) else np.zeros(len(mean))
        images.append((vector if vector @ mean >= 0 else -vector).reshape(data.shape))
    return np.stack(images)
