"""Conversion of a description and named arrays to a hashed safetensors file, and back.

The description is canonical JSON with one text for each value, and is parsed strictly.
Everything that a file declares is checked against the file's size before memory is allocated.
Content is returned only if it matches the hash.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from quadric.checks import Array
from quadric.errors import ModelFileError, expect
from quadric.utils import check_limit, open_regular

FORMAT = 1
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "U8": "|u1", "BOOL": "|b1"}
LARGEST_HEADER = 32 * 2**20
SPARE_MEMORY = 2**18  # allowed for a small header, regardless of the size of the file
COPIES = 2  # of the tensors that are in memory at once: their bytes and the model's arrays
NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
NAMED_TENSOR = re.compile(rb'"tensor"\s*:\s*"([^"]*)"')  # in the text of a description
LAYER_TENSOR = re.compile(r"layers\.[0-9]+\.[WbQUc]")
DEEPEST = 64
INT64 = range(-(2**63), 2**63)  # the integers that a model file can hold
# bytes per object that the parser creates, including the pointer to it
LIST, DICT, ENTRY, TEXT, NUMBER = 100, 190, 130, 57, 36
WIDE_TEXT, WIDE_CHARACTER = 25, 3  # in addition, if a character is not ASCII
KEY = re.compile(rb'"([^"\\]*)\\?":')

FilePath = str | os.PathLike[str]


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
    """

    name: str
    key: str
    fields: frozenset[str]
    advice: str


MODEL = Form(
    name="model file",
    key="quadric",
    fields=frozenset({"versions", "model", "extra"}),
    advice="Nothing was loaded. Try another copy of the file, or save the model again.",
)


# ---------------------------------------------------------------------------------- JSON


def canonical(value: Any) -> str:
    """The canonical text: sorted keys, no whitespace, ASCII only, shortest form of each float."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def parse(text: str) -> Any:
    """Parse the text; raise ModelFileError for repeated keys, NaN, infinity or deep nesting."""
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constants, parse_float=_finite
        )
    except RecursionError:
        raise ModelFileError("the description is nested too deeply") from None
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the description is not valid JSON ({error})") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    expect(not level, f"the description is nested more than {DEEPEST} levels deep")
    return value


def memory_estimate(text: bytes) -> int:
    """An upper estimate of the bytes that `parse` needs, computed without parsing.

    Each type of object is counted by a character that is always part of it, so the text must not
    contain any of these characters as an escape (see `has_plain_escapes`). Equal keys share one
    object, unless they contain escapes.
    """
    keys = text.count(b":")
    texts = max(0, text.count(b'"') // 2 - keys)
    dicts = text.count(b"{")
    plain_keys = {match[1] for match in KEY.finditer(text)}
    repeated = sum(1 for _ in KEY.finditer(text)) - len(plain_keys)
    return (
        LIST * text.count(b"[")
        + DICT * dicts  # with room for a few entries
        + ENTRY * max(0, keys - 3 * dicts)
        + TEXT * (texts + keys - repeated)
        + NUMBER * max(0, text.count(b",") - texts)
        + _extra_for_wide_texts(text)
    )


def has_plain_escapes(text: bytes) -> bool:
    r"""Whether the text has no escapes except `\"` and `\\`, the only ones that a header needs."""
    rest = text.replace(rb"\\", b"")
    return rest.count(b"\\") == rest.count(rb"\"")


def _extra_for_wide_texts(text: bytes) -> int:
    r"""What strings with characters outside ASCII, written as `\\u....`, need in addition."""
    escape, quote = rb"\\u", rb"\\\""
    if quote in text and escape in text:  # a string may continue after a quote
        return WIDE_CHARACTER * len(text) + WIDE_TEXT * text.count(escape)
    needed, place = 0, text.find(escape)
    while place >= 0:
        begin, end = text.rfind(b'"', 0, place), text.find(b'"', place)
        needed += WIDE_TEXT + WIDE_CHARACTER * (end - begin)
        place = text.find(escape, end) if end >= 0 else -1
    return needed


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    expect(len(made) == len(pairs), "the description contains a repeated key")
    return made


def _no_constants(name: str) -> Any:
    raise ModelFileError(f"{name} is not valid JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    expect(math.isfinite(value), f"the number {digits[:30]} is too large")
    return value


# ------------------------------------------------------------------------------- writing


def digest(
    text: Sequence[bytes | memoryview], tensors: Mapping[str, tuple[str, Sequence[int], Any]]
) -> str:
    """SHA-256 of the description and of every tensor's name, dtype, shape and bytes.

    The description is given as the pieces of its text.
    """
    sha = hashlib.sha256(struct.pack("<Q", sum(map(len, text))))
    for piece in text:
        sha.update(piece)
    for name in sorted(tensors):
        dtype, shape, content = tensors[name]
        entry = canonical([name, dtype, list(shape)]).encode("ascii")
        sha.update(struct.pack("<Q", len(entry)) + entry)
        sha.update(content)
    return sha.hexdigest()


def to_bytes(
    description: dict[str, Any], tensors: Mapping[str, Array], form: Form = MODEL
) -> bytes:
    """Return the content of a file; the same description and tensors always give the same bytes.

    Parameters
    ----------
    description : dict
        JSON values: the fields of the form.
    tensors : mapping of str to array
        Arrays of float32, float64, int64, uint8 or bool.
    form : Form
        The type of file.

    Raises
    ------
    ModelFileError
        If the file could not be read again.
    """
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
    """Return the description and the tensors of a file, after all checks.

    Parameters
    ----------
    path : str or path-like
    form : Form
        The type of file.

    Raises
    ------
    ModelFileError
        If the file has another form, is damaged or does not match its hash.
    """
    arrays = {}
    with _opened(path, form) as stream:
        text, description, entries = _read_header(stream, form)
        if form is MODEL:
            unused = _unused(entries, text)
            expect(not unused, f"the tensor {min(unused, default='')} is not used")
        size = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        check_limit(COPIES * size, f"the {form.name}", "Use a computer with more memory.")
        view = memoryview(stream.read(size + 1))  # not more, even if the file grows meanwhile
        expect(len(view) == size, "it changed while it was being read")
        claimed = description.pop("hash")
        parts = {
            name: (entry["dtype"], entry["shape"], view[slice(*entry["data_offsets"])])
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


def _unused(entries: Mapping[str, Any], text: bytes) -> set[str]:
    """Return tensors that the description certainly does not use; `rebuild` finds all of them."""
    named = {match[1].decode("ascii") for match in NAMED_TENSOR.finditer(text)}
    return {
        name
        for name in entries
        if not LAYER_TENSOR.fullmatch(name) and name.removesuffix(".lengths") not in named
    }


def without_hash(text: bytes, claimed: Any) -> list[memoryview]:
    """The two pieces of text that were hashed, without copies."""
    field = f'"hash":"{claimed}",'.encode("ascii", "replace")
    place = text.find(field)
    expect(place >= 0, "its description is not canonical JSON")
    whole = memoryview(text)
    return [whole[:place], whole[place + len(field) :]]


def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a model file, but not its tensors.

    Parameters
    ----------
    path : str or path-like
        A file written by `save`.

    Returns
    -------
    dict
        'format', 'hash', 'versions', 'model' (the description), 'extra', and under 'tensors' the
        dtype and shape of each tensor. The hash is not checked, because it covers the tensors;
        `load` checks it.

    Raises
    ------
    ModelFileError
        If the header is damaged, or if the file is not a model file or has a newer format version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from quadric import Network, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xor.quadric"
    >>> save(Network.create(2, [("quadratic", 1, "logistic")], rng=0), path, extra={"by": "me"})
    >>> about = info(path)
    >>> about["model"]["layers"], about["extra"]
    ([{'activation': 'logistic', 'inputs': 2, 'kind': 'quadratic', 'neurons': 1}], {'by': 'me'})
    """
    with _opened(path, MODEL) as stream:
        _, description, entries = _read_header(stream, MODEL)
    return {
        **description,
        "tensors": {
            name: {"dtype": entry["dtype"], "shape": entry["shape"]}
            for name, entry in sorted(entries.items())
        },
    }


def has_key(path: FilePath, form: Form) -> bool:
    """Whether the start of a file has this form; the rest may be damaged.

    Parameters
    ----------
    path : str or path-like
    form : Form
    """
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
        problem = (
            getattr(error, "strerror", None)
            or str(error).rstrip(".")
            or "there is not enough memory for it"
        )
        raise ModelFileError(
            f"{os.fspath(path)} cannot be loaded: {problem}. {form.advice}"
        ) from None


def _read_header(stream: BinaryIO, form: Form) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
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
    _check_entries(header, size - 8 - length)
    _check_format(description, form)
    return text.encode("ascii"), description, header


def _check_entries(entries: dict[str, Any], available: int) -> None:
    """Check the declarations of the tensors, which must exactly fill the rest of the file."""
    for name, declared in entries.items():
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
        expect(
            offsets[1] - offsets[0] == math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize,
            f"the size of tensor {name} does not match its shape",
        )
    place = 0
    for name, declared in sorted(entries.items(), key=lambda entry: entry[1]["data_offsets"]):
        begin, end = declared["data_offsets"]
        expect(begin == place, f"tensor {name} does not start at the end of the previous tensor")
        place = end
    expect(
        place == available,
        f"it is truncated or too long: it has {available:,} bytes of tensors, not {place:,}",
    )


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
