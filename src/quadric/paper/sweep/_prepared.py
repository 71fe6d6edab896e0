"""Images as the engine wants them: built once in a process, shared by all its threads."""

import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from quadric._utils import checks
from quadric._utils.arrays import Array, Matrix
from quadric.network import Network

_lock = threading.Lock()  # one thread builds, the others wait for it
BLOCK = 1024  # images compressed at a time: what is made on the way stays small


class Data(Protocol):
    """Images and labels: a row of pixels an image, whole labels from 0.

    `checksum` must change when any of the others does: it names the data in a store.
    """

    @property
    def X_train(self) -> Array: ...
    @property
    def y_train(self) -> Array: ...
    @property
    def X_test(self) -> Array: ...
    @property
    def y_test(self) -> Array: ...
    @property
    def largest(self) -> float: ...
    @property
    def checksum(self) -> str: ...


@dataclass(frozen=True)
class Prepared:
    """pixel/largest of all images, and the labels.

    Attributes
    ----------
    train : CSR matrix
        What the engine takes: a step costs the pixels that are not zero.
    targets : array of shape (images, n_classes)
        A one in the column of the image's class.
    test : array
        Dense: BLAS takes no longer for it than SciPy for CSR, and lets other threads run
        meanwhile, which SciPy does not.
    labels : array
        Of the test images.
    """

    train: Matrix
    targets: Array
    test: Array
    labels: Array
    _first: dict[int, Matrix] = field(default_factory=dict, repr=False)

    @property
    def n_inputs(self) -> int:
        return int(self.train.shape[1])

    @property
    def n_classes(self) -> int:
        return int(self.targets.shape[1])

    def first(self, size: int) -> tuple[Matrix, Array]:
        """The first `size` training images and targets, made once for all threads."""
        X = self.train
        with _lock:
            if size not in self._first:
                end = X.indptr[size]
                # views where SciPy leaves them so; it copies those of a much larger array
                rows = (X.data[:end], X.indices[:end], X.indptr[: size + 1])
                self._first[size] = sparse.csr_array(rows, shape=(size, self.n_inputs))
            return self._first[size], self.targets[:size]

    def chosen(self, rows: Array) -> tuple[Matrix, Array]:
        """These training images and targets, copied."""
        return self.train[rows], self.targets[rows]


_latest: list[tuple[Any, Prepared]] = []  # at most one: a data set is large


def prepare(data: Data, dtype: str) -> Prepared:
    """The data for the engine. A second call for the same data returns the same object."""
    key = (data.checksum, data.largest, np.shape(data.X_train), np.shape(data.X_test), dtype)
    with _lock:
        if not _latest or _latest[0][0] != key:
            _latest.clear()  # before the next is built: never two in memory
            built = _build(data, dtype)
            _compile(dtype)
            _latest.append((key, built))
        return _latest[0][1]


def _build(data: Data, dtype: str) -> Prepared:
    _check("X_train", data.X_train, "y_train", data.y_train)
    _check("X_test", data.X_test, "y_test", data.y_test)
    if data.X_train.shape[1] != data.X_test.shape[1]:
        raise ValueError(
            "X_train and X_test must have the same number of pixels. "
            f"Got {data.X_train.shape[1]} and {data.X_test.shape[1]}."
        )
    n_classes = int(data.y_train.max()) + 1
    largest = checks.check_number("largest", data.largest, above=0)
    return Prepared(
        train=_compressed(data.X_train, largest, dtype),
        targets=np.eye(n_classes, dtype=dtype)[data.y_train],
        test=np.divide(data.X_test, largest, dtype=dtype),
        labels=data.y_test,
    )


def _check(images_name: str, images: Array, labels_name: str, labels: Array) -> None:
    if images.ndim != 2 or 0 in images.shape or images.dtype != np.uint8:
        raise ValueError(
            f"{images_name} must be bytes of shape (images, pixels). "
            f"Got {images.dtype} of shape {images.shape}."
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"{labels_name} must be {len(images)} whole numbers, none negative: one for each row "
            f"of {images_name}. Got {labels.dtype} of shape {labels.shape}."
        )


def _compressed(pixels: Array, largest: float, dtype: str) -> Matrix:
    """pixels/largest as CSR, without the large intermediate arrays that SciPy makes."""
    starts = np.zeros(len(pixels) + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(pixels, axis=1), out=starts[1:])
    columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], dtype)
    for start in range(0, len(pixels), BLOCK):
        block = pixels[start : start + BLOCK]
        here = slice(starts[start], starts[start + len(block)])
        rows, columns[here] = block.nonzero()
        values[here] = block[rows, columns[here]]
    values /= values.dtype.type(largest)
    if starts[-1] < 2**31:  # SciPy gives both index arrays one type; the engine wants 32 bits
        starts = starts.astype(np.int32)
    return sparse.csr_array((values, columns, starts), shape=pixels.shape)


def _compile(dtype: str) -> None:
    """Have the engine compiled or loaded, so that no run's seconds contain it."""
    net = Network.create(2, [("linear", 2, "logistic")], rng=0, dtype=dtype)
    net.fit(sparse.csr_array(np.eye(2, dtype=dtype)), np.eye(2), epochs=1, offset=-0.5)
