"""Measures of a trained bilinear MLP, as numbers from 0 to 1."""

from collections.abc import Sequence

import numpy as np

from quadric.certify import radius
from quadric.checks import Array
from quadric.convert import fold, fold_bilinear, truncation_scores
from quadric.core import Linear, Reduced
from quadric.datasets import ImageData
from quadric.explain import spectrum
from quadric.network import Network

ACCURACY = "accuracy"
# The effective rank divided by the width of the network, which it cannot exceed.
RANK, INPUT_RANK = "effective rank, hidden", "effective rank, pixels"
# The median certified radius divided by the distance between a black and a white image.
MEDIAN = "median certified radius"


def truncated(rank: int) -> str:
    """Return the name of the accuracy with this number of eigenvectors per class."""
    return f"accuracy at rank {rank}"


def certified(distance: float) -> str:
    """Return the name of the certified accuracy at this distance."""
    return f"certified at {distance:g}"


def names(ranks: Sequence[int], distances: Sequence[float]) -> tuple[str, ...]:
    """Return the names of all measures, in the order of `measure`."""
    return (
        *(ACCURACY, RANK, INPUT_RANK),
        *map(truncated, ranks),
        MEDIAN,
        *map(certified, distances),
    )


def measure(
    network: Network,
    data: ImageData,
    ranks: Sequence[int],
    distances: Sequence[float],
    n_certified: int,
) -> tuple[float, ...]:
    """Measure accuracy, effective ranks, truncated accuracies and certified radii.

    Radii are computed for `n_certified` test images, evenly spread over the test set, because the
    first half of MNIST's test set is easier than the second.
    """
    X, y = data.X_test / data.largest, data.y_test
    folded = fold(network)
    accuracy = float((folded.logits(X).argmax(axis=1) == y).mean())
    width = network.layers[0].n_outputs
    # a rank above the number of pixels keeps all eigenvectors
    kept = [min(rank, X.shape[1]) for rank in ranks]
    # the publication truncates the matrices as they are
    scores = truncation_scores(folded, X, y, kept, centered=False)
    by_rank = dict(zip(*scores, strict=True))
    rows = np.linspace(0, len(X) - 1, min(n_certified, len(X))).astype(int)
    radii = radius(folded, X[rows])
    right = radii.predicted == y[rows]
    hidden, pixels = spectrum(_without_embedding(network)), spectrum(folded, centered=False)
    return (
        accuracy,
        float(hidden.effective_rank.mean()) / width,
        float(pixels.effective_rank.mean()) / width,
        *(float(by_rank[rank]) for rank in kept),
        median_radius(radii.radius[right], X.shape[1]),
        *(float((right & (radii.radius > distance)).mean()) for distance in distances),
    )


def median_radius(radii: Array, n_pixels: int) -> float:
    """Return the median radius as a share of the distance between a black and a white image."""
    longest = np.sqrt(n_pixels)
    return float(min(np.median(radii), longest) / longest) if len(radii) else 0.0


def _without_embedding(network: Network) -> object:
    """Return the quadratic layer in the coordinates of the hidden layer, as in the publication."""
    _, product, head = network.layers
    assert isinstance(product, Reduced)
    assert isinstance(head, Linear)
    return fold_bilinear(product.W, product.U, head.W)
