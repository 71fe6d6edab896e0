"""The training and test sets of the study of hidden layers; a seed determines the split."""

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_circles, make_moons
from sklearn.model_selection import train_test_split

from quadric import datasets
from quadric.checks import Array
from quadric.datasets import ImageData

Split = tuple[Array, Array, Array, Array]  # X_train, y_train, X_test, y_test
PLANE_TEST = 3000  # number of test points in the plane


def split(name: str, size: int, seed: int, data: ImageData | None) -> Split:
    """Return `size` training samples and the test samples of a data set."""
    if name == "mnist":
        assert data is not None
        return _images(data, size, seed)
    return SPLITS[name](size, seed)


def _images(data: ImageData, size: int, seed: int) -> Split:
    """Return small images, in which each pixel is the mean of 4 x 4 pixels."""
    rows = np.random.default_rng(seed).permutation(len(data.X_train))[:size]
    height, width = data.shape

    def downsampled(pixels: Array) -> Array:
        blocks = pixels.reshape(-1, height // 4, 4, width // 4, 4)
        small = blocks.mean(axis=(2, 4), dtype=np.float32).reshape(len(pixels), -1)
        return np.asarray(small / data.largest)

    X_train, X_test = downsampled(data.X_train[rows]), downsampled(data.X_test)
    return X_train, data.y_train[rows], X_test, data.y_test


def _clusters(size: int, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    return *datasets.clusters(size // 6, rng), *datasets.clusters(PLANE_TEST // 6, rng)


def _moons(size: int, seed: int) -> Split:
    X, y = make_moons(size + PLANE_TEST, noise=0.2, random_state=seed)
    return X[:size], y[:size], X[size:], y[size:]


def _circles(size: int, seed: int) -> Split:
    X, y = make_circles(size + PLANE_TEST, noise=0.1, factor=0.5, random_state=seed)
    return X[:size], y[:size], X[size:], y[size:]


def _part_of(load: Callable[..., tuple[Array, Array]]) -> Callable[[int, int], Split]:
    def draw(size: int, seed: int) -> Split:
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=size, stratify=y, random_state=seed
        )
        return X_train, y_train, X_test, y_test

    return draw


# The data sets other than MNIST.
SPLITS: dict[str, Callable[[int, int], Split]] = {
    "digits": _part_of(load_digits),
    "breast cancer": _part_of(load_breast_cancer),
    "six clusters": _clusters,
    "two moons": _moons,
    "two circles": _circles,
}
