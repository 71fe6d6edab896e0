"""The eigenvectors of bilinear MLPs as images."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from quadric import Network
from quadric.apps.paper._experiment import new_figure
from quadric.checks import Array
from quadric.datasets import ImageData
from quadric.explain import spectrum

# The names of the classes, by data set; other classes are numbered.
CLASSES = {
    "fashion_mnist": (
        *("T-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
}


def eigenvector_figure(networks: Mapping[str, Network], data: ImageData) -> Figure:
    """Draw the eigenvector with the largest positive eigenvalue of every class, by variant.

    The keys of `networks` are the titles of the variants.
    """
    strongest = {variant: positive_images(network, data) for variant, network in networks.items()}
    count = len(next(iter(strongest.values())))
    classes = CLASSES.get(data.name, tuple(map(str, range(count))))
    size = 0.92 * count + 1.0, 0.98 * len(strongest) + 0.25
    figure, axes = new_figure(*size, len(strongest), count, squeeze=False)
    for row, (variant, images) in zip(axes, strongest.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            limit = float(np.abs(image).max()) or 1.0
            ax.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(variant.replace(" and ", "\nand "), fontsize=8)
    for ax, name in zip(axes[0], classes, strict=True):
        ax.set_title(name, fontsize=8)
    return figure


def positive_images(network: Network, data: ImageData) -> list[Array]:
    """Return the eigenvector with the largest eigenvalue of every class, as images.

    The sign of an eigenvector is arbitrary. It is chosen so that the product with the mean image of
    the class is positive.
    """
    images = []
    for label, pairs in enumerate(spectrum(network, centered=False).positive):
        mean = data.X_train[data.y_train == label].mean(axis=0)
        vector = pairs.eigenvectors[0] if len(pairs.eigenvectors) else np.zeros(len(mean))
        images.append((vector if vector @ mean >= 0 else -vector).reshape(data.shape))
    return images
