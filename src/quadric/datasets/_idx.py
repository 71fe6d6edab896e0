"""The idx files of MNIST and Fashion-MNIST: names, sizes and MD5 digests, and their directories.

An idx file contains a magic number, the dimensions, and then the entries, one byte each.
"""

import gzip
import hashlib
import math
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from quadric.errors import DatasetError
from quadric.utils import write_whole

Contents: TypeAlias = dict[str, bytes]  # uncompressed contents by file name


class BadFileError(Exception):
    """A file is not the expected one. The message is the bare reason; the caller adds context."""


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


def check(content: bytes, file: KnownFile) -> None:
    """Raise BadFileError, with the most specific reason, unless the content has the right MD5."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 == file.md5:
        return
    owners = (  # the data sets share their file names
        f"{other.name} of {collection.title}"
        for collection in COLLECTIONS.values()
        for other in collection.files
        if other.md5 == md5
    )
    if owner := next(owners, None):
        raise BadFileError(f"its MD5 is that of {owner}")
    unpack(content, file.shape)  # raises if the format is wrong
    raise BadFileError(f"its MD5 is {md5}, not {file.md5}")


def unpack(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of an idx file as a read-only view of `content`."""
    header = 4 + 4 * len(shape)
    expected = 0x0800 + len(shape)  # 08 means unsigned bytes; the number of dimensions follows
    if len(content) < header:
        raise BadFileError(f"it ends within the header, after {len(content)} of {header} bytes")
    magic, *dimensions = struct.unpack(f">{1 + len(shape)}I", content[:header])
    if magic != expected:
        raise BadFileError(f"its magic number is {magic}, not {expected}")
    if tuple(dimensions) != shape:
        stated, wanted = " x ".join(map(str, dimensions)), " x ".join(map(str, shape))
        raise BadFileError(f"it contains {stated} entries, not {wanted}")
    entries = len(content) - header
    if entries != math.prod(shape):
        raise BadFileError(f"{entries} bytes follow the header, not {math.prod(shape)}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def pack(array: np.ndarray) -> bytes:
    """Return the content of the idx file for an array of bytes."""
    header = struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def named_directory(
    collection: Collection, data_dir: str | os.PathLike[str] | None = None
) -> Path | None:
    """Return the directory specified by the argument or by QUADRIC_DATA, or None.

    If the directory has a subdirectory named after the data set, the subdirectory is returned.
    """
    named = data_dir if data_dir is not None else os.environ.get("QUADRIC_DATA") or None
    if named is None:
        return None
    if not isinstance(named, (str, os.PathLike)):
        raise TypeError(f"data_dir must be a path or None. Got {named!r} instead.")
    directory = Path(named).expanduser()
    own = directory / collection.name
    return own if os.path.isdir(own) else directory


def cache_directory() -> Path:
    """Return QUADRIC_CACHE or, if it is not set, quadric/ in the user's cache directory."""
    if own := os.environ.get("QUADRIC_CACHE"):
        return Path(own).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path("~/.cache").expanduser()) / "quadric"


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
    reason: object
    try:
        with open_file(path, "rb") as stream:
            content: bytes = stream.read(file.size + 1)  # enough to detect excess bytes
        if len(content) > file.size:
            raise BadFileError(f"it contains more than {file.size} bytes")
        check(content, file)
    except EOFError:
        reason = "the .gz file ends too early (an interrupted download?)"
    except (gzip.BadGzipFile, zlib.error) as error:
        reason = f"it is not a valid .gz file ({error})"
    except OSError as error:
        reason = f"it cannot be read ({error.strerror or error})"
    except BadFileError as error:
        reason = error
    else:
        return content
    raise DatasetError(f"{path} is not {_describe(collection, file)}: {reason}. {advice}")


def write_all(directory: Path, contents: Contents) -> None:
    """Write every file atomically; raise OSError if the directory is not writable."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(directory / name, content)


def _describe(collection: Collection, file: KnownFile) -> str:
    return f"{collection.title}'s {file.name} ({file.size} bytes uncompressed, MD5 {file.md5})"
