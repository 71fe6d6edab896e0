"""A description and named arrays as the bytes of a safetensors file, and back.

Everything that a file declares is checked against the file's own size before anything of that size
is allocated. What comes out has passed the hash.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from quadric._utils import whole_files
from quadric.errors import ModelFileError
from quadric.model_file._canonical_json import canonical, memory_estimate, parse

if TYPE_CHECKING:  # `info` looks at headers only, and needs no SciPy
    from quadric._utils.arrays import Array


FORMAT = 2
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "U8": "|u1", "BOOL": "|b1"}
LARGEST_HEADER = 32 * 2**20
SPARE_MEMORY = 2**18  # what a small header may take, whatever the file's size
NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")

Entries = dict[str, tuple[str, tuple[int, ...], int, int]]  # dtype, shape, begin, end


@dataclass(frozen=True)
class Form:
    """What a container holds.

    Attributes
    ----------
    name : str
        What the file is called in messages.
    key : str
        Of the description, in the metadata of safetensors.
    fields : frozenset of str
        Of the description, besides 'format' and 'hash'.
    advice : str
        What to do if the file cannot be loaded.
    """

    name: str
    key: str
    fields: frozenset[str]
    advice: str


MODEL = Form(
    "model file", "quadric", frozenset({"versions", "model", "extra"}),
    "Nothing was loaded; take another copy of the file, or save the model again.",
)  # fmt: skip


def to_bytes(
    description: dict[str, Any], tensors: Mapping[str, Array], form: Form = MODEL
) -> bytes:
    """The file's content; the same for the same model, whenever it is made."""
    from safetensors.numpy import save

    for name, array in tensors.items():
        if not NAME.fullmatch(name) or array.dtype.str not in DTYPES.values():
            raise ModelFileError(f"a tensor {name!r} of dtype {array.dtype} is not of the format")
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    description = {"format": FORMAT, **description}
    codes = {stored: code for code, stored in DTYPES.items()}
    digest = _digest(
        canonical(description),
        {name: (codes[array.dtype.str], array.shape, array.data) for name, array in arrays.items()},
    )
    text = canonical({**description, "hash": digest})
    if len(text) > LARGEST_HEADER // 2:
        raise ModelFileError(
            f"the description of the model takes {len(text):,} characters, more than a file may "
            f"have ({LARGEST_HEADER // 2:,}): is `extra` very large?"
        )
    content = save(arrays, metadata={form.key: text})
    (length,) = struct.unpack("<Q", content[:8])
    try:
        _check_cost(content[8 : 8 + length], len(content))  # what cannot be loaded is not saved
    except ModelFileError:
        raise ModelFileError(
            "the description of the model has more lists, texts and numbers than the memory to "
            "load it allows: is `extra` very large? Keep it in a file of its own."
        ) from None
    return content


def read(
    path: str | os.PathLike[str], form: Form = MODEL
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the tensors, checked and hashed."""
    with _open(path, form.name) as stream:
        try:
            text, description, entries = _read_header(stream, form)
            content = stream.read()
            size = max((end for *_, end in entries.values()), default=0)
            if len(content) != size:  # it changed while it was read
                raise ModelFileError(f"{len(content)} bytes of numbers, {size} are declared")
            _check_format(description, form)
            view = memoryview(content)
            claimed = description.pop("hash")
            parts = {n: (d, s, view[a:b]) for n, (d, s, a, b) in entries.items()}
            if claimed != _digest(_without_hash(text, claimed), parts):
                raise ModelFileError("its hash is not that of its content")
        except ModelFileError as error:
            raise _refused(path, error, form) from None
    arrays = {}
    for name, (dtype, shape, begin, end) in entries.items():
        flat = np.frombuffer(view[begin:end], dtype=DTYPES[dtype])
        if dtype == "BOOL" and not (flat.view(np.uint8) <= 1).all():
            raise _refused(path, f"a value of {name} is neither true nor false", form)
        arrays[name] = flat.reshape(shape)  # read-only views of the one buffer
    return description, arrays


def describe_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The description with the tensors' dtypes and shapes, from the header alone."""
    with _open(path) as stream:
        try:
            _, description, entries = _read_header(stream, MODEL)
            _check_format(description, MODEL)
        except ModelFileError as error:
            raise _refused(path, error, MODEL) from None
    tensors = {name: {"dtype": e[0], "shape": list(e[1])} for name, e in sorted(entries.items())}
    return {**description, "tensors": tensors}


def has_key(path: str | os.PathLike[str], form: Form) -> bool:
    """Whether a file begins as one of this form does; it may be damaged after that."""
    start = b'{"__metadata__":{"' + form.key.encode() + b'":'
    with _open(path, form.name) as stream:
        return stream.read(8 + len(start))[8:] == start


def _open(path: str | os.PathLike[str], name: str = "model file") -> BinaryIO:
    """The file, opened; a pipe or a device, which may never end, is refused."""
    try:
        return whole_files.open_regular(path)
    except IsADirectoryError:
        what = "a directory"
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        what = "a device or a pipe"
    raise ModelFileError(f"{os.fspath(path)} is {what}, not a {name}")


def _refused(path: str | os.PathLike[str], reason: object, form: Form) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)} cannot be loaded: {reason}. {form.advice}")


def _read_header(stream: BinaryIO, form: Form) -> tuple[str, dict[str, Any], Entries]:
    size = os.fstat(stream.fileno()).st_size
    start = stream.read(8)
    if len(start) < 8:
        raise ModelFileError(f"it is no {form.name}: too short")
    (length,) = struct.unpack("<Q", start)
    if not 2 <= length <= min(size - 8, LARGEST_HEADER):
        raise ModelFileError(
            f"it is no {form.name}, or is cut short: its header does not fit in it"
        )
    header = _parse_header(stream.read(length), size, form)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(form.key), str):
        raise ModelFileError(
            f"it is a safetensors file without the key {form.key!r}: no {form.name} of quadric"
        )
    if len(metadata) > 1:
        raise ModelFileError(f"it has other metadata beside {form.key!r}")
    text: str = metadata[form.key]
    description = parse(text)
    if not isinstance(description, dict):
        raise ModelFileError("its description is not an object of JSON")
    return text, description, _entries(header, size - 8 - length)


def _parse_header(raw: bytes, size: int, form: Form) -> dict[str, Any]:
    if raw[:1] != b"{":
        raise ModelFileError(f"it is no {form.name}: it does not begin as safetensors do")
    _check_cost(raw, size)
    try:
        header: dict[str, Any] = parse(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise ModelFileError("its header is not text") from None
    return header


def _check_cost(raw: bytes, size: int) -> None:
    if memory_estimate(raw) > 6 * size + SPARE_MEMORY:
        raise ModelFileError("its header holds more small pieces than a model's does")


def _entries(header: dict[str, Any], available: int) -> Entries:
    """What the header says of each tensor; together they are all that follows, and no more."""
    entries: Entries = {}
    for name, entry in header.items():
        if not NAME.fullmatch(name):
            raise ModelFileError(f"a tensor has the name {name[:80]!r}")
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ModelFileError(f"tensor {name} is not described by dtype, shape and data_offsets")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ModelFileError(f"tensor {name} has a dtype that no model has")
        if not _sizes(shape) or len(shape) > 3 or not _sizes(offsets) or len(offsets) != 2:
            raise ModelFileError(f"tensor {name} has no proper shape or place")
        begin, end = offsets
        if end - begin != math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize:
            raise ModelFileError(f"tensor {name} has another size than its shape")
        entries[name] = (dtype, tuple(shape), begin, end)
    place = 0
    for name, (*_, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != place:
            raise ModelFileError(f"tensor {name} does not begin where the one before ends")
        place = end
    if place != available:
        raise ModelFileError(
            f"it is cut short or too long: {available:,} bytes of numbers, {place:,} are declared"
        )
    return entries


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def _check_format(description: dict[str, Any], form: Form) -> None:
    number = description.get("format")
    if type(number) is not int or number < 1:
        raise ModelFileError("its description does not say which format it has")
    if number > FORMAT:
        raise ModelFileError(
            f"it has format {number}, and this version of quadric reads formats up to {FORMAT}: "
            "it was written by a later version. Upgrade with pip install --upgrade quadric"
        )
    fields = {"format", "hash", *form.fields}
    if set(description) != fields:
        raise ModelFileError(f"its description has not the fields {', '.join(sorted(fields))}")


def _without_hash(text: str, claimed: Any) -> str:
    """The description as it was when it was hashed; not spelled anew, which would take memory."""
    before, found, after = text.partition(f'"hash":"{claimed}",')
    if not found or not text.isascii():
        raise ModelFileError("its description is not canonical JSON")
    return before + after


def _digest(text: str, tensors: Mapping[str, tuple[str, tuple[int, ...], Any]]) -> str:
    """SHA-256 over the description and every tensor's name, dtype, shape and bytes."""
    digest = hashlib.sha256(struct.pack("<Q", len(text)))
    digest.update(text.encode("ascii"))
    for name in sorted(tensors):
        dtype, shape, content = tensors[name]
        entry = canonical([name, dtype, list(shape)]).encode("ascii")
        digest.update(struct.pack("<Q", len(entry)) + entry)
        digest.update(content)
    return digest.hexdigest()
