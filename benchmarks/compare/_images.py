"""MNIST and Fashion-MNIST as they are on this machine: the comparison downloads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from quadric import datasets
from quadric.datasets._sources import COLLECTIONS, holds_all

IMAGES = {"MNIST": "mnist", "Fashion-MNIST": "fashion_mnist"}  # by the names of the tables


def is_stored(name: str) -> bool:
    """Whether all files of a set of images are on this machine."""
    directory, _ = datasets.check_files(IMAGES[name])
    return holds_all(directory, COLLECTIONS[IMAGES[name]])


def stored(name: str) -> datasets.ImageData:
    """Return a set of images that is on this machine."""
    directory, _ = datasets.check_files(IMAGES[name])
    return getattr(datasets, IMAGES[name])(directory)


def missing(names: Iterable[str] = IMAGES) -> dict[str, str]:
    """Return the sets that are not on this machine, with the commands that download them."""
    return {name: f"quadric data fetch {IMAGES[name]}" for name in names if not is_stored(name)}
