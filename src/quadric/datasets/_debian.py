"""Debian's package of Fashion-MNIST: where it is installed, and without root where it is not."""

import tempfile
from pathlib import Path

from quadric.datasets._commands import UnavailableError, run
from quadric.datasets._directories import Contents, holds_all, read
from quadric.datasets._known_files import Collection
from quadric.errors import DatasetError

PACKAGE = "dataset-fashion-mnist"
INSTALLED = Path("/usr/share/datasets/fashion-mnist")
LIMIT = 180.0  # seconds


def read_installed(collection: Collection) -> Contents:
    """The files that `apt-get install` put in place."""
    return _read(INSTALLED, collection)


def fetch(collection: Collection) -> Contents:
    """The files of the package, unpacked in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        options = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20"]
        run(["apt-get", *options, "download", PACKAGE], Path(place), LIMIT)
        archives = list(Path(place).glob("*.deb"))
        if len(archives) != 1:
            raise UnavailableError(f"apt-get left {len(archives)} packages where one was wanted")
        run(["dpkg-deb", "-x", archives[0].name, "root"], Path(place), LIMIT)
        return _read(Path(place) / "root" / INSTALLED.relative_to("/"), collection)


def _read(directory: Path, collection: Collection) -> Contents:
    if not holds_all(directory, collection):
        raise UnavailableError(f"no such files in {directory}")
    try:
        return read(directory, collection, advice="")
    except DatasetError as error:
        raise UnavailableError(str(error).strip()) from None
