"""Images in the form that the training engine reads, built once per process for all threads."""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix, check_number
from quadric.datasets import ImageData
from quadric.network import Network

BLOCK = 1024  # number of images converted at a time

_lock = threading.Lock()  # one thread builds, the others wait
_latest: list[tuple[Any, "Prepared"]] = []  # at most one entry, because a data set is large


@dataclass(frozen=True)
class Prepared:
    """Scaled images (pixel/largest) and their labels.

    Attributes
    ----------
    train : CSR matrix of shape (images, pixels)
        Training images. The cost of a step grows with the number of nonzero pixels.
    targets : array of shape (images, classes)
        One-hot labels of the training images.
    test : array of shape (test images, pixels)
        Test images, dense: BLAS is as fast as SciPy's CSR product here and, unlike SciPy, releases
        the GIL.
    labels : array of shape (test images,)
        Labels of the test images.
    """

    train: Matrix
    targets: Array
    test: Array
    labels: Array
    _first: dict[int, Matrix] = field(default_factory=dict, repr=False)

    def first(self, size: int) -> tuple[Matrix, Array]:
        """Return the first `size` training images and targets, built once for all threads."""
        X = self.train
        with _lock:
            if size not in self._first:
                end = X.indptr[size]
                # views, unless they are so much smaller than the whole that SciPy copies them
                rows = (X.data[:end], X.indices[:end], X.indptr[: size + 1])
                self._first[size] = sparse.csr_array(rows, shape=(size, X.shape[1]))
            return self._first[size], self.targets[:size]


def prepare(data: ImageData, dtype: str) -> Prepared:
    """Return the prepared data; a second call for the same data returns the same object."""
    key = (data.checksum, data.largest, np.shape(data.X_train), np.shape(data.X_test), dtype)
    with _lock:
        if not _latest or _latest[0][0] != key:
            _latest.clear()  # before building the next, so that two are never in memory at once
            built = _build(data, dtype)
            _compile(dtype)
            _latest.append((key, built))
        return _latest[0][1]


def _build(data: ImageData, dtype: str) -> Prepared:
    for part in ("train", "test"):
        _check(part, getattr(data, f"X_{part}"), getattr(data, f"y_{part}"))
    if data.X_train.shape[1] != data.X_test.shape[1]:
        raise ValueError(
            "X_train and X_test must have the same number of pixels. "
            f"Got {data.X_train.shape[1]} and {data.X_test.shape[1]}."
        )
    n_classes = int(data.y_train.max()) + 1
    largest = check_number("largest", data.largest, above=0)
    starts = range(0, len(data.X_train), BLOCK)  # in blocks, to keep the intermediate arrays small
    blocks = (np.divide(data.X_train[i : i + BLOCK], largest, dtype=dtype) for i in starts)
    return Prepared(
        train=sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr"),
        targets=np.eye(n_classes, dtype=dtype)[data.y_train],
        test=np.divide(data.X_test, largest, dtype=dtype),
        labels=data.y_test,
    )


def _check(part: str, images: Array, labels: Array) -> None:
    if images.ndim != 2 or 0 in images.shape or images.dtype != np.uint8:
        raise ValueError(
            f"X_{part} must be a uint8 array of shape (images, pixels). "
            f"Got {images.dtype} of shape {images.shape}."
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"y_{part} must hold {len(images)} non-negative whole numbers, one per row of "
            f"X_{part}. Got {labels.dtype} of shape {labels.shape}."
        )


def _compile(dtype: str) -> None:
    """Compile or load the engine in advance, so that the time of a run does not include it."""
    net = Network.create(2, [("linear", 2, "logistic")], rng=0, dtype=dtype)
    net.fit(sparse.csr_array(np.eye(2, dtype=dtype)), np.eye(2), epochs=1, offset=-0.5)
