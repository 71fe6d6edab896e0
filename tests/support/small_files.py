"""Small stand-ins for the files of MNIST and Fashion-MNIST."""

import gzip
import hashlib

import numpy as np

from quadric.datasets import _sources as sources
from quadric.datasets._sources import (
    COLLECTIONS,
    Collection,
    ImageSource,
    KnownFile,
    pack,
    unpack,
)

REAL = dict(COLLECTIONS)
PARTS = tuple(file.name for file in REAL["mnist"].files)
SHAPES = ((6, 2, 3), (6,), (4, 2, 3), (4,))
LABELS = PARTS[1]
SPELLINGS = {
    "raw": lambda part: part,
    "gz": lambda part: f"{part}.gz",
    "dotted": lambda part: part.replace("-idx", ".idx"),
    "dotted gz": lambda part: part.replace("-idx", ".idx") + ".gz",
}


def make_contents(seed):
    rng = np.random.default_rng(seed)
    return {
        name: pack(rng.integers(0, 256 if len(shape) == 3 else 10, shape))
        for name, shape in zip(PARTS, SHAPES, strict=True)
    }


CONTENTS = {"mnist": make_contents(0), "fashion_mnist": make_contents(1)}


def forbidden(collection):
    raise AssertionError("a source was asked")


def put_in_place(monkeypatch, tmp_path):
    """Use small files, no download source and a separate cache."""
    for name, contents in CONTENTS.items():
        files = tuple(
            KnownFile(part, shape, hashlib.md5(contents[part]).hexdigest())
            for part, shape in zip(PARTS, SHAPES, strict=True)
        )
        title = REAL[name].title
        monkeypatch.setitem(COLLECTIONS, name, Collection(name, title, files))
        monkeypatch.setitem(sources.SOURCES, name, (ImageSource("nowhere", forbidden),))
    monkeypatch.setattr(sources, "DEBIAN_DIRECTORY", tmp_path / "not installed")
    monkeypatch.delenv("QUADRIC_DATA", raising=False)
    monkeypatch.setenv("QUADRIC_CACHE", str(tmp_path / "cache"))


def fill(directory, name="mnist", spelling=lambda part: part):
    directory.mkdir(parents=True, exist_ok=True)
    for part, content in CONTENTS[name].items():
        path = directory / spelling(part)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return directory


def assert_is(data, name):
    images, labels, test_images, test_labels = (
        unpack(CONTENTS[name][part], shape) for part, shape in zip(PARTS, SHAPES, strict=True)
    )
    assert data.name == name
    assert np.array_equal(data.X_train, images.reshape(6, 6))
    assert np.array_equal(data.y_train, labels)
    assert np.array_equal(data.X_test, test_images.reshape(4, 6))
    assert np.array_equal(data.y_test, test_labels)
    assert data.X_train.dtype == data.X_test.dtype == np.uint8
    assert data.y_train.dtype == data.y_test.dtype == np.int64
    assert data.X_train.flags.writeable
    assert (data.largest, data.shape) == (255, (2, 3))
