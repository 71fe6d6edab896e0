"""The files of MNIST and Fashion-MNIST, and how to tell that one is right."""

import math
from typing import NamedTuple


class KnownFile(NamedTuple):
    """One idx file: its name, the shape of what it holds, and the md5 of its raw bytes."""

    name: str
    shape: tuple[int, ...]
    md5: str

    @property
    def size(self) -> int:
        """Bytes, uncompressed: magic number, one word for each dimension, one byte an entry."""
        return 4 + 4 * len(self.shape) + math.prod(self.shape)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names under which the file goes about; a raw one is preferred."""
        dotted = self.name.replace("-idx", ".idx")
        return (self.name, dotted, f"{self.name}.gz", f"{dotted}.gz")


class Collection(NamedTuple):
    """A data set of four files: training images and labels, test images and labels."""

    name: str
    title: str
    files: tuple[KnownFile, KnownFile, KnownFile, KnownFile]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def _collection(name: str, title: str, md5s: tuple[str, str, str, str]) -> Collection:
    train_images, train_labels, test_images, test_labels = md5s
    return Collection(
        name,
        title,
        (
            KnownFile("train-images-idx3-ubyte", (60000, 28, 28), train_images),
            KnownFile("train-labels-idx1-ubyte", (60000,), train_labels),
            KnownFile("t10k-images-idx3-ubyte", (10000, 28, 28), test_images),
            KnownFile("t10k-labels-idx1-ubyte", (10000,), test_labels),
        ),
    )


COLLECTIONS = {
    "mnist": _collection(
        "mnist",
        "MNIST",
        (
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
    ),
    "fashion_mnist": _collection(
        "fashion_mnist",
        "Fashion-MNIST",
        (
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
    ),
}


def other_owner(md5: str) -> str | None:
    """Which known file has this md5, in words: the data sets share their file names."""
    for collection in COLLECTIONS.values():
        for file in collection.files:
            if file.md5 == md5:
                return f"{file.name} of {collection.title}"
    return None
