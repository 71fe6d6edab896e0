"""Conversion of a model's arrays and layers to the tensors of a model file, and back.

A layer's tensors have the names and shapes of its parameters, with one exception: the triangles of
a quadratic layer, `packed` of shape (n(n+1)/2, m), are stored as ``Q`` of shape (m, n(n+1)/2).
"""

import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import LAYERS, Layer
from quadric.errors import expect


class NotSavedError(Exception):
    """Raised for a value that a model file does not store; callers add the attribute's name."""


# dtypes of numbers: the name in the description, and the dtype of the tensor
NUMBERS = {
    "float64": "<f8",
    "float32": "<f4",
    "bool": "|b1",
    "uint8": "|u1",
    "int64": "<i8",
    **dict.fromkeys(("int8", "int16", "int32", "uint16", "uint32", "uint64"), "<i8"),
}
TEXT = re.compile(r"<U(0|[1-9][0-9]{0,8})")
SHORT = 2  # bytes of a string
STORED_NAMES = {"packed": "Q"}


# -------------------------------------------------------------------------------- arrays


def encode_array(
    array: Array,
    name: str,
    tensors: MutableMapping[str, Array],
    describe: Callable[[Any, str], Any],
) -> dict[str, Any]:
    """Store the array in `tensors` under `name`; return the description that `decode_array` reads.

    `describe(value, name)` describes a value that is not an array.
    """
    entry: dict[str, Any] = {"type": "array", "tensor": name}
    if array.dtype == object and array.ndim == 1:
        # strings in one tensor and their lengths in another; all other values are described
        texts = [v.encode("utf-8", "surrogatepass") if type(v) is str else b"" for v in array]
        tensors[name] = np.frombuffer(b"".join(texts), dtype=np.uint8)
        tensors[f"{name}.lengths"] = np.array([len(text) for text in texts], dtype="<i8")
        others = [(i, value) for i, value in enumerate(array) if type(value) is not str]
        described = [[i, describe(value, f"{name}.{i}")] for i, value in others]
        return {**entry, "dtype": "object", "others": described}
    if array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]:
        array, entry["transposed"] = array.T, True  # the memory order affects rounding
    if array.dtype.kind == "U" and array.ndim == 1:
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        tensors[name] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        return {**entry, "dtype": array.dtype.str.replace("=", "<"), "length": len(array)}
    if array.dtype.name not in NUMBERS or array.ndim > 3:
        raise NotSavedError(
            f"an array of {array.dtype} with {array.ndim} dimensions, which a model file does not "
            "store"
        )
    stored = np.dtype(NUMBERS[array.dtype.name])
    tensors[name] = array.view(stored) if array.dtype.name == "uint64" else array.astype(stored)
    return {**entry, "dtype": array.dtype.name}


def decode_array(
    entry: Mapping[str, Any], take: Callable[[str], Array], rebuild: Callable[[Any], Any]
) -> Array:
    """The array that `encode_array` described, as a writable copy.

    `take(name)` returns a tensor, and `rebuild(description)` returns a value that is not an array.
    """
    name, dtype = entry["tensor"], entry["dtype"]
    tensor = take(name)
    if dtype == "object":
        return _decode_objects(tensor, take(f"{name}.lengths"), entry["others"], rebuild)
    if TEXT.fullmatch(dtype):
        return _decode_text(tensor, dtype, entry["length"])
    expect(tensor.dtype == np.dtype(NUMBERS[dtype]), f"the dtype of {name} is not {dtype}")
    array = np.array(tensor).view(dtype) if dtype == "uint64" else tensor.astype(dtype)
    expect(
        tensor.dtype.kind != "i" or np.array_equal(array.astype(np.int64), tensor),
        f"{name} has values that {dtype} cannot hold",
    )
    return array.T if entry.get("transposed") is True else array


def _decode_text(tensor: Array, dtype: str, length: Any) -> Array:
    width = np.dtype(dtype).itemsize
    expect(
        tensor.dtype == np.uint8 and type(length) is int and length * width == tensor.size,
        "an array of text and its tensor differ in size",
    )
    expect(width or not length, "an array of text has no width")
    if width == 0:
        return np.empty(0, dtype=dtype)
    expect(
        not tensor.size or int(tensor.view("<u4").max()) <= 0x10FFFF,
        "an array of text has an invalid character",
    )
    return np.array(tensor.view(dtype))


def _decode_objects(
    content: Array, lengths: Array, others: Any, rebuild: Callable[[Any], Any]
) -> Array:
    expect(
        content.dtype == np.uint8 and lengths.dtype == np.int64 and lengths.ndim == 1,
        "an array of objects is not stored as strings and lengths",
    )
    inside = not lengths.size or (lengths.min() >= 0 and lengths.max() <= content.size)
    expect(inside and int(lengths.sum()) == content.size, "strings and their lengths do not match")
    array, place, raw = np.empty(len(lengths), dtype=object), 0, content.data
    short: dict[str, str] = {}  # equal short strings share one object, which is larger than them
    for i, length in enumerate(lengths):
        end = place + int(length)
        text = str(raw[place:end], "utf-8", "surrogatepass")
        array[i] = short.setdefault(text, text) if length <= SHORT else text
        place = end
    for i, value in others:
        expect(
            type(i) is int and 0 <= i < len(array) and array[i] == "",
            "an array has two values at the same index",
        )
        array[i] = rebuild(value)
    return array


# -------------------------------------------------------------------------------- layers


def stored_names(kind: str) -> list[str]:
    """The names of the tensors that store a layer of this kind."""
    return [STORED_NAMES.get(field, field) for field in LAYERS[kind].fields]


def to_tensors(layer: Layer) -> dict[str, Array]:
    """The layer's parameters, keyed by their names in a file."""
    return {
        STORED_NAMES.get(field, field): _transposed(field, array)
        for field, array in layer.arrays().items()
    }


def from_tensors(
    kind: str, n: int, m: int, tensors: Mapping[str, Array], *, place: str = ""
) -> Layer:
    """The layer of this kind with n inputs and m neurons, from copies of its tensors.

    `place` precedes the name of a tensor in error messages.
    """
    dtype = tensors["W"].dtype
    arrays = {}
    for field, shape in LAYERS[kind].shapes(n, m).items():
        name = STORED_NAMES.get(field, field)
        array = _transposed(field, tensors[name])
        problem = f"{place}{name} has the wrong shape {tensors[name].shape} or dtype {array.dtype}"
        expect(array.shape == shape and 0 not in shape, problem)
        expect(array.dtype == dtype and dtype in (np.float32, np.float64), problem)
        expect(np.isfinite(array).all(), f"{place}{name} is not finite")
        arrays[field] = np.array(array, order="C")
    return LAYERS[kind].of(**arrays)


def _transposed(field: str, array: Array) -> Array:
    return np.ascontiguousarray(array.T) if field == "packed" else array
