"""The idx format: a magic number, the dimensions, then the entries, here one byte each.

Files come from anywhere, so a file is believed only as far as its size and md5 go.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quadric.datasets._known_files import KnownFile, other_owner

if TYPE_CHECKING:
    from quadric._utils.arrays import Array


CHUNK = 1 << 20


class BadFileError(Exception):
    """A file is not what it should be: the bare fact, to which the caller adds the context."""


def read_raw(path: Path, file: KnownFile) -> bytes:
    """The uncompressed content of `path`, and never more than such a file can have."""
    try:
        if path.suffix != ".gz":
            size = path.stat().st_size
            if size > file.size:  # before anything is read
                raise BadFileError(f"it has {size} bytes, not {file.size}")
            return path.read_bytes()
        content = bytearray()
        with gzip.open(path) as stream:
            # piece by piece: memory grows with what is there, not with what is promised
            while piece := stream.read(CHUNK):
                content += piece
                if len(content) > file.size:
                    raise BadFileError(f"it unpacks to more than {file.size} bytes")
        return bytes(content)
    except EOFError:
        raise BadFileError("the .gz file ends too early (an interrupted download?)") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadFileError(f"it is not a sound .gz file ({error})") from None
    except OSError as error:
        raise BadFileError(f"it cannot be read ({error.strerror or error})") from None


def check(content: bytes, file: KnownFile) -> None:
    """Raise BadFileError, with the most telling reason, unless this is the known file."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 == file.md5:
        return
    if (owner := other_owner(md5)) is not None:
        raise BadFileError(f"by its md5 it is {owner}")
    unpack(content, file.shape)  # says what is wrong with the format, if that is what is wrong
    raise BadFileError(f"its md5 is {md5}, not {file.md5}")


def unpack(content: bytes, shape: tuple[int, ...]) -> Array:
    """The array of the given shape that an idx file holds; a read-only view of `content`."""
    header = 4 + 4 * len(shape)
    magic = 0x0800 + len(shape)  # unsigned bytes, so many dimensions
    if len(content) < header:
        raise BadFileError(f"it ends within the header, after {len(content)} of {header} bytes")
    found, *dimensions = struct.unpack(f">{1 + len(shape)}I", content[:header])
    if found != magic:
        raise BadFileError(f"its magic number is {found}, not {magic}")
    if tuple(dimensions) != shape:
        raise BadFileError(f"it holds {_times(dimensions)} entries, not {_times(shape)}")
    entries = len(content) - header
    if entries != math.prod(shape):
        raise BadFileError(f"after the header come {entries} bytes, not {math.prod(shape)}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def pack(array: Array) -> bytes:
    """The idx file of an array of bytes."""
    header = struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def _times(shape: tuple[int, ...] | list[int]) -> str:
    return " x ".join(map(str, shape))
