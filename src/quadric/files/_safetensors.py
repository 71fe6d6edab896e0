"""Conversion of a description and named arrays to a hashed safetensors file, and back.

Everything that a file declares is checked against the file's size before memory is allocated.
Content is returned only if it matches the hash.
"""

import contextlib
import errno
import math
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from quadric.checks import Array
from quadric.errors import ModelFileError, expect
from quadric.files._canonical_json import (
    canonical,
    digest,
    has_plain_escapes,
    memory_estimate,
    parse,
    without_hash,
)
from quadric.utils import check_limit, open_regular

FORMAT = 1
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "U8": "|u1", "BOOL": "|b1"}
LARGEST_HEADER = 32 * 2**20
SPARE_MEMORY = 2**18  # allowed for a small header, regardless of the size of the file
COPIES = 2  # of the tensors that are in memory at once: their bytes and the model's arrays
NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")

FilePath = str | os.PathLike[str]


class Entry(NamedTuple):
    """The declaration of a tensor; its bytes are those from `begin` to `end` after the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Form:
    """A type of file with this layout: model files or checkpoints.

    Attributes
    ----------
    name : str
        The type of file, for error messages.
    key : str
        The metadata key of the description.
    fields : frozenset of str
        The fields of the description besides 'format' and 'hash'.
    advice : str
        What the user can do if the file cannot be loaded.
    tensors : callable(description) -> set of str, optional
        The names of the tensors that a description uses. A file with other tensors is refused
        before its tensors are read.
    """

    name: str
    key: str
    fields: frozenset[str]
    advice: str
    tensors: Callable[[Any], set[str]] | None = None


def tensor_names(value: Any) -> set[str]:
    """All names of tensors in a description, valid or not."""
    names: set[str] = set()
    left: list[Any] = [[value]]  # in a list, because a forged value can be a number
    while left:
        entry = left.pop()
        if isinstance(entry, dict):
            names.update(_own_names(entry))
            entry = entry.values()
        left.extend(inner for inner in entry if isinstance(inner, (dict, list)))
    return names


def _own_names(entry: dict[str, Any]) -> list[str]:
    layers, tensor = entry.get("layers"), entry.get("tensor")
    if entry.get("type") == "network" and isinstance(layers, list):
        return [f"layers.{l}.{name}" for l in range(len(layers)) for name in "WbQUc"]
    if isinstance(tensor, str):
        return [tensor, f"{tensor}.lengths"] if entry.get("dtype") == "object" else [tensor]
    return []


MODEL = Form(
    name="model file",
    key="quadric",
    fields=frozenset({"versions", "model", "extra"}),
    advice="Nothing was loaded. Try another copy of the file, or save the model again.",
    tensors=lambda description: tensor_names(description["model"]),
)


# ------------------------------------------------------------------------------- writing


def to_bytes(
    description: dict[str, Any], tensors: Mapping[str, Array], form: Form = MODEL
) -> bytes:
    """The content of the file; the same model always gives the same bytes."""
    from safetensors.numpy import save

    codes = {stored: code for code, stored in DTYPES.items()}
    for name, array in tensors.items():
        expect(
            NAME.fullmatch(name) and array.dtype.str in codes,
            f"the format does not allow a tensor {name!r} of dtype {array.dtype}",
        )
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    description = {"format": FORMAT, **description}
    sha = digest(
        [canonical(description).encode("ascii")],
        {name: (codes[array.dtype.str], array.shape, array.data) for name, array in arrays.items()},
    )
    text = canonical({**description, "hash": sha})
    expect(
        len(text) <= LARGEST_HEADER // 2,
        f"the description of the model has {len(text):,} characters, more than the limit of "
        f"{LARGEST_HEADER // 2:,}: is `extra` very large?",
    )
    content = save(arrays, metadata={form.key: text})
    (length,) = struct.unpack("<Q", content[:8])
    expect(
        _is_affordable(content[8 : 8 + length], len(content)),
        "the description of the model has more lists, strings and numbers than the memory limit "
        "for loading allows: is `extra` very large? Keep it in a separate file.",
    )
    return content


def _is_affordable(header: bytes, size: int) -> bool:
    """Whether the header of a file of this size can be parsed within the memory limit."""
    return memory_estimate(header) <= 6 * size + SPARE_MEMORY


# ------------------------------------------------------------------------------- reading


def read(path: FilePath, form: Form = MODEL) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the tensors, after all checks."""
    arrays = {}
    with _opened(path, form) as stream:
        text, description, entries = _read_header(stream, form)
        if form.tensors is not None:
            unused = set(entries) - form.tensors(description)
            expect(not unused, f"the tensor {min(unused, default='')} is not used")
        size = max((entry.end for entry in entries.values()), default=0)
        check_limit(COPIES * size, f"the {form.name}", "Use a computer with more memory.")
        view = memoryview(stream.read(size + 1))  # not more, even if the file grows meanwhile
        expect(len(view) == size, "it changed while it was being read")
        claimed = description.pop("hash")
        parts = {
            name: (entry.dtype, entry.shape, view[entry.begin : entry.end])
            for name, entry in entries.items()
        }
        expect(
            claimed == digest(without_hash(text, claimed), parts),
            "its content does not match its hash",
        )
        for name, (dtype, shape, content) in parts.items():
            flat = np.frombuffer(content, dtype=DTYPES[dtype])
            expect(
                dtype != "BOOL" or (flat.view(np.uint8) <= 1).all(),
                f"a value of {name} is neither true nor false",
            )
            arrays[name] = flat.reshape(shape)  # a read-only view of the buffer
    return description, arrays


def describe_file(path: FilePath) -> dict[str, Any]:
    """The description with the tensors' dtypes and shapes, from the header alone."""
    with _opened(path, MODEL) as stream:
        _, description, entries = _read_header(stream, MODEL)
    tensors = {
        name: {"dtype": entry.dtype, "shape": list(entry.shape)}
        for name, entry in sorted(entries.items())
    }
    return {**description, "tensors": tensors}


def has_key(path: FilePath, form: Form) -> bool:
    """Whether the start of a file has this form; the rest may be damaged."""
    start = b'{"__metadata__":{"' + form.key.encode() + b'":'
    with _opened(path, form) as stream:
        return stream.read(8 + len(start))[8:] == start


@contextlib.contextmanager
def _opened(path: FilePath, form: Form) -> Iterator[BinaryIO]:
    """Open a regular file, and add its name and the form's advice to any ModelFileError."""
    try:
        with open_regular(path) as stream:
            yield stream
    except (ModelFileError, OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EISDIR, errno.EPERM):
            raise
        if isinstance(error, MemoryError):
            problem = str(error).rstrip(".") or "there is not enough memory for it"
        else:
            problem = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(
            f"{os.fspath(path)} cannot be loaded: {problem}. {form.advice}"
        ) from None


def _read_header(stream: BinaryIO, form: Form) -> tuple[bytes, dict[str, Any], dict[str, Entry]]:
    """The text of the description, the description, and the declarations of the tensors."""
    size = os.fstat(stream.fileno()).st_size
    start = stream.read(8)
    expect(len(start) == 8, f"it is not a {form.name}: it is too short")
    (length,) = struct.unpack("<Q", start)
    expect(
        2 <= length <= min(size - 8, LARGEST_HEADER),
        f"it is not a {form.name}, or it is truncated: its header does not fit in the file",
    )
    raw = stream.read(length)
    expect(raw[:1] == b"{", f"it is not a {form.name}: it does not start like a safetensors file")
    expect(raw.isascii(), "its header contains characters that are not ASCII")
    expect(has_plain_escapes(raw), "its header contains escapes other than those of quotes")
    expect(
        _is_affordable(raw, size),
        f"its header contains too many objects for a {form.name} of this size",
    )
    header: dict[str, Any] = parse(raw.decode("ascii"))
    del raw
    metadata = header.pop("__metadata__", None)
    expect(
        isinstance(metadata, dict) and isinstance(metadata.get(form.key), str),
        f"it is a safetensors file without the key {form.key!r}, not a quadric {form.name}",
    )
    expect(len(metadata) == 1, f"it has other metadata besides {form.key!r}")
    text: str = metadata.pop(form.key)
    description = parse(text)
    expect(isinstance(description, dict), "its description is not a JSON object")
    entries = _entries(header, size - 8 - length)
    _check_format(description, form)
    return text.encode("ascii"), description, entries


def _entries(header: dict[str, Any], available: int) -> dict[str, Entry]:
    """The checked declarations of the tensors, which must exactly fill the rest of the file."""
    entries: dict[str, Entry] = {}
    for name, declared in header.items():
        expect(NAME.fullmatch(name), f"a tensor has the invalid name {name[:80]!r}")
        expect(
            isinstance(declared, dict) and set(declared) == {"dtype", "shape", "data_offsets"},
            f"tensor {name} is not described by dtype, shape and data_offsets",
        )
        dtype, shape, offsets = declared["dtype"], declared["shape"], declared["data_offsets"]
        expect(
            isinstance(dtype, str) and dtype in DTYPES,
            f"tensor {name} has a dtype that the format does not support",
        )
        expect(
            _sizes(shape) and len(shape) <= 3 and _sizes(offsets) and len(offsets) == 2,
            f"tensor {name} has an invalid shape or invalid data_offsets",
        )
        begin, end = offsets
        expect(
            end - begin == math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize,
            f"the size of tensor {name} does not match its shape",
        )
        entries[name] = Entry(dtype, tuple(shape), begin, end)
    place = 0
    in_order = sorted(entries, key=lambda name: (entries[name].begin, entries[name].end))
    for name in in_order:
        expect(
            entries[name].begin == place,
            f"tensor {name} does not start at the end of the previous tensor",
        )
        place = entries[name].end
    expect(
        place == available,
        f"it is truncated or too long: it has {available:,} bytes of tensors, not {place:,}",
    )
    return entries


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def _check_format(description: dict[str, Any], form: Form) -> None:
    number: Any = description.get("format")
    expect(type(number) is int and number >= 1, "its description has no format number")
    expect(
        number <= FORMAT,
        f"it has format {number}, and this version of quadric reads formats up to {FORMAT}: "
        "it was written by a newer version. Upgrade with pip install --upgrade quadric",
    )
    fields = {"format", "hash", *form.fields}
    expect(
        set(description) == fields,
        f"its description must have exactly the fields {', '.join(sorted(fields))}",
    )
