"""OpenML, through scikit-learn.

The download runs in a process of its own: it can be given a time limit that also holds while a
name server or a connection hangs, and its half a gigabyte of memory is given back at the end.
"""

from __future__ import annotations

import importlib.util
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quadric.datasets._commands import UnavailableError, run
from quadric.datasets._directories import Contents
from quadric.datasets._idx import pack
from quadric.datasets._known_files import COLLECTIONS, Collection

if TYPE_CHECKING:
    from quadric._utils.arrays import Array


NAMES = {"mnist": "mnist_784", "fashion_mnist": "Fashion-MNIST"}
SILENCE = 8.0  # seconds without a byte before the connection is given up
LIMIT = 300.0  # seconds for everything: scikit-learn takes a minute or two to parse the file
_CHILD = "import sys; from quadric.datasets._openml import main; main(*sys.argv[1:])"


def fetch(collection: Collection) -> Contents:
    """The four files, made again from OpenML's table of pixels."""
    if not sys.executable:
        raise UnavailableError("this Python cannot start another")
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        command = [sys.executable, "-W", "ignore", "-c", _CHILD]
        run([*command, collection.name, place, str(SILENCE)], Path(place), LIMIT)
        try:
            return {file.name: (Path(place) / file.name).read_bytes() for file in collection.files}
        except OSError as error:
            raise UnavailableError(f"no files came back ({error.strerror})") from None


def main(name: str, place: str, silence: str) -> None:
    """What the other process does: download, and write the four files to `place`."""
    socket.setdefaulttimeout(float(silence))
    from sklearn.datasets import fetch_openml

    # pandas parses the file far faster, but is not among the things that quadric needs
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        table = fetch_openml(
            NAMES[name], version=1, as_frame=False, parser=parser, cache=False,
            n_retries=1, delay=0.5,
        )  # fmt: skip
        contents = as_files(table.data, table.target, COLLECTIONS[name])
    except Exception as error:  # whatever it was, the parent wants one line
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
    for file, content in contents.items():
        (Path(place) / file).write_bytes(content)


def as_files(X: Array, y: Array, collection: Collection) -> Contents:
    """Rows of numbers and labels as text, turned into the bytes of the four raw files."""
    wanted = (sum(file.shape[0] for file in collection.files[::2]), *collection.files[0].shape[1:])
    pixels = np.asarray(X)
    if pixels.shape != (wanted[0], wanted[1] * wanted[2]):
        raise ValueError(f"the table has shape {pixels.shape}")
    pixels, labels = pixels.astype(np.uint8).reshape(wanted), np.asarray(y).astype(np.uint8)
    train = collection.files[0].shape[0]
    parts = (pixels[:train], labels[:train], pixels[train:], labels[train:])
    return {file.name: pack(part) for file, part in zip(collection.files, parts, strict=True)}
