"""What a set of labelled images is, wherever it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from quadric._utils.arrays import Array


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images to train and to test with; one row an image, read line by line.

    Attributes
    ----------
    name : str
        The function of `quadric.datasets` that gives it.
    X_train, X_test : uint8 arrays of shape (n_images, height * width)
        Pixels from 0 to `largest`; divide by it before training.
    y_train, y_test : int64 arrays of shape (n_images,)
    largest : int
        The largest value that a pixel can have.
    shape : tuple of int
        (height, width).
    source : str
        Where it came from, in one line.
    checksum : str
        SHA-256 over the bytes of X_train, y_train, X_test and y_test (little-endian): two runs
        with the same checksum saw the same data.
    """

    name: str
    X_train: Array = field(repr=False)
    y_train: Array = field(repr=False)
    X_test: Array = field(repr=False)
    y_test: Array = field(repr=False)
    largest: int
    shape: tuple[int, int]
    source: str

    @cached_property
    def checksum(self) -> str:
        digest = hashlib.sha256()
        for array in (self.X_train, self.y_train, self.X_test, self.y_test):
            # always little-endian: the digest means the same on every machine
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).data)
        return digest.hexdigest()
