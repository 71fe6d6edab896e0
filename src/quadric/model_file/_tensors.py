"""Arrays and layers of models as the tensors of model files, and back.

A layer's tensors have the names and shapes of its parameters, with one exception: the triangles of
a quadratic layer, `packed` of shape (n(n+1)/2, m), are stored as ``Q`` of shape (m, n(n+1)/2).
"""

import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import LAYERS, Layer
from quadric.errors import ModelFileError


class UnkeptError(Exception):
    """A value that is not kept; the attribute that holds it is named further out."""


# dtypes of numbers: name in the description, and the dtype of the tensor
NUMBERS = {
    "float64": "<f8", "float32": "<f4", "bool": "|b1", "uint8": "|u1", "int64": "<i8",
    "int8": "<i8", "int16": "<i8", "int32": "<i8", "uint16": "<i8", "uint32": "<i8",
    "uint64": "<i8",
}  # fmt: skip
TEXT = re.compile(r"<U(0|[1-9][0-9]{0,8})")

Describe = Callable[[Any, str], Any]


def encode_array(
    array: Array, name: str, tensors: MutableMapping[str, Array], describe: Describe
) -> dict[str, Any]:
    """Put the array into `tensors` under `name`; what is returned says how to get it back."""
    if array.dtype == object:
        return _encode_objects(array, name, tensors, describe)
    entry: dict[str, Any] = {"type": "array", "tensor": name}
    if array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]:
        array, entry["transposed"] = array.T, True  # the order decides over last digits
    if array.dtype.kind == "U" and array.ndim == 1:
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        tensors[name] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        return {**entry, "dtype": array.dtype.str.replace("=", "<"), "length": len(array)}
    if array.dtype.name not in NUMBERS or array.ndim > 3:
        raise UnkeptError(
            f"an array of {array.dtype} with {array.ndim} dimensions, which a model file does not "
            "keep"
        )
    stored = np.dtype(NUMBERS[array.dtype.name])
    tensors[name] = array.view(stored) if array.dtype.name == "uint64" else array.astype(stored)
    return {**entry, "dtype": array.dtype.name}


def decode_array(
    entry: Mapping[str, Any], tensors: Mapping[str, Array], rebuild: Callable[[Any], Any]
) -> Array:
    """The array that `encode_array` described; its own memory, to be written to."""
    tensor, dtype = tensors[entry["tensor"]], entry["dtype"]
    if dtype == "object":
        lengths = tensors[f"{entry['tensor']}.lengths"]
        return _decode_objects(tensor, lengths, entry["others"], rebuild)
    if TEXT.fullmatch(dtype):
        return _decode_text(tensor, dtype, entry["length"])
    if tensor.dtype != np.dtype(NUMBERS[dtype]):
        raise ModelFileError(f"{entry['tensor']} is not stored as {dtype} is")
    if dtype == "uint64":
        array = np.array(tensor).view(dtype)
    else:
        array = tensor.astype(dtype)
        if tensor.dtype.kind == "i" and not np.array_equal(array.astype(np.int64), tensor):
            raise ModelFileError(f"{entry['tensor']} has values that are not {dtype}")
    return array.T if entry.get("transposed") is True else array


def _decode_text(tensor: Array, dtype: str, length: Any) -> Array:
    width = np.dtype(dtype).itemsize
    if tensor.dtype != np.uint8 or type(length) is not int or length * width != tensor.size:
        raise ModelFileError("an array of text has another size than its tensor")
    if width == 0:
        if length:
            raise ModelFileError("an array of text has no width")
        return np.empty(0, dtype=dtype)
    if tensor.size and int(tensor.view("<u4").max()) > 0x10FFFF:
        raise ModelFileError("an array of text holds what is no character")
    return np.array(tensor.view(dtype))


def _encode_objects(
    array: Array, name: str, tensors: MutableMapping[str, Array], describe: Describe
) -> dict[str, Any]:
    """Texts in one tensor, their lengths in another; the few other things in the description."""
    if array.ndim != 1:
        raise UnkeptError(
            f"an array of objects with {array.ndim} dimensions, which a model file does not keep"
        )
    texts = [text.encode("utf-8", "surrogatepass") if type(text) is str else b"" for text in array]
    others = [
        [i, describe(value, f"{name}.{i}")]
        for i, value in enumerate(array)
        if type(value) is not str
    ]
    tensors[name] = np.frombuffer(b"".join(texts), dtype=np.uint8)
    tensors[f"{name}.lengths"] = np.array([len(text) for text in texts], dtype="<i8")
    return {"type": "array", "tensor": name, "dtype": "object", "others": others}


def _decode_objects(
    content: Array, lengths: Array, others: Any, rebuild: Callable[[Any], Any]
) -> Array:
    if content.dtype != np.uint8 or lengths.dtype != np.int64 or lengths.ndim != 1:
        raise ModelFileError("an array of objects is not stored as texts and lengths")
    if lengths.size and (lengths.min() < 0 or lengths.max() > content.size):
        raise ModelFileError("a text is longer than all texts are")
    if int(lengths.sum()) != content.size:
        raise ModelFileError("texts and lengths do not go together")
    array, place, raw = np.empty(len(lengths), dtype=object), 0, content.data
    for i, length in enumerate(lengths):
        end = place + int(length)
        array[i] = str(raw[place:end], "utf-8", "surrogatepass")
        place = end
    for i, value in others:
        if type(i) is not int or not 0 <= i < len(array) or array[i] != "":
            raise ModelFileError("an object stands where a text does")
        array[i] = rebuild(value)
    return array


STORED_NAMES = {"packed": "Q"}


def stored_names(kind: str) -> list[str]:
    """The names under which a layer of that kind is stored."""
    return [STORED_NAMES.get(field, field) for field in LAYERS[kind].fields]


def to_tensors(layer: Layer) -> dict[str, Array]:
    """The layer's parameters by their stored names."""
    return {
        STORED_NAMES.get(field, field): _transposed(field, array)
        for field, array in layer.arrays().items()
    }


def from_tensors(kind: str, n: int, m: int, tensors: Mapping[str, Array]) -> Layer:
    """The layer of that kind with n inputs and m neurons, from copies of its tensors."""
    dtype = tensors["W"].dtype
    arrays = {}
    for field, shape in LAYERS[kind].shapes(n, m).items():
        name = STORED_NAMES.get(field, field)
        array = _transposed(field, tensors[name])
        if array.shape != shape or 0 in shape:
            raise ModelFileError(f"{name} has shape {tensors[name].shape}")
        if array.dtype != dtype or dtype not in (np.float32, np.float64):
            raise ModelFileError(f"{name} has dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ModelFileError(f"{name} is not finite")
        arrays[field] = np.array(array, order="C")
    return LAYERS[kind].of(**arrays)


def _transposed(field: str, array: Array) -> Array:
    return np.ascontiguousarray(array.T) if field == "packed" else array
