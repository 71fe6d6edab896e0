"""A model as plain data, a description made of JSON values and named arrays, and back.

`describe` makes the description, and `rebuild` makes the model again. In between are the steps and
estimators that `quadric.models` describes and restores.

A layer's tensors have the names and shapes of its parameters, with one exception: the triangles of
a quadratic layer, `packed` of shape (n(n+1)/2, m), are stored as ``Q`` of shape (m, n(n+1)/2).
"""

import math
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sklearn

import quadric
from quadric.checks import Array
from quadric.core import LAYERS, Layer
from quadric.errors import ModelFileError, expect
from quadric.files._safetensors import INT64, canonical, parse
from quadric.models import (
    Limits,
    check_restored,
    describe as describe_object,
    is_saved_estimator,
    restore,
    split,
)
from quadric.network import Network
from quadric.utils import first_applying

BUILTINS = {"float": float, "int": int, "bool": bool}
FLOATS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
MOST_PIPELINES = 5  # scikit-learn's `predict` takes three times as long for each
LONGER_NAMES = 8  # how much longer names may be that the file does not store
INVALID = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
# dtypes of numbers: the name in the description, and the dtype of the tensor
NUMBERS = {
    "float64": "<f8",
    "float32": "<f4",
    "bool": "|b1",
    "uint8": "|u1",
    "int64": "<i8",
    **dict.fromkeys(("int8", "int16", "int32", "uint16", "uint32", "uint64"), "<i8"),
}
NUMBER_TYPES = {
    **{kind: {"type": "builtin", "name": name} for name, kind in BUILTINS.items()},
    **{np.dtype(name).type: {"type": "scalar type", "name": name} for name in NUMBERS},
}
TEXT = re.compile(r"<U(0|[1-9][0-9]{0,8})")
SHORT = 2  # bytes of a string
STORED_NAMES = {"packed": "Q"}


class NotSavedError(Exception):
    """Raised for a value that a model file does not store; callers add the attribute's name."""


# ------------------------------------------------------------------------------ writing


def describe(
    model: Any, extra: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the tensors from which `rebuild` restores the model."""
    writer = _Writer(_network_or_estimator(model))
    description = {
        "extra": {} if extra is None else _plain_extra(extra),
        "model": writer.value(model, ""),
        "versions": {
            "numpy": np.__version__,
            "quadric": quadric.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    return description, writer.tensors


def _network_or_estimator(model: Any) -> Any:
    """The Network, or the fitted estimator at the end of the model."""
    if type(model) is Network:
        return model
    last = split(model)[1]
    name = type(last).__name__
    expect(
        is_saved_estimator(last),
        ModelFileError(
            "a model file stores a Network, an estimator of quadric, or a Pipeline that ends in "
            "one. "
            f"Got {type(model).__name__}" + ("." if last is model else f" that ends in {name}.")
        ),
    )
    expect("network_" in vars(last), f"this {name} is not fitted: call fit before save.")
    return last


def _plain_extra(extra: Any) -> dict[str, Any]:
    wanted = "extra must be a dict of JSON values (strings, numbers, lists, dicts with string keys)"
    expect(isinstance(extra, dict), f"{wanted}. Got {type(extra).__name__} instead.")
    try:
        plain: dict[str, Any] = parse(canonical(extra))
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{wanted}: {error}") from None
    expect(_has_text_keys(extra), f"{wanted}: a key is not a string.")
    return plain


def _has_text_keys(value: Any) -> bool:
    """Whether every key is a string; JSON would convert other keys to strings."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(value[key]) for key in value)
    return not isinstance(value, (list, tuple)) or all(map(_has_text_keys, value))


@dataclass
class _Writer:
    """Collects the arrays of a model while it describes the model.

    `last` is the Network or the quadric estimator in the model. A file contains exactly one.
    """

    last: Any
    tensors: dict[str, Array] = field(default_factory=dict)

    def value(self, value: Any, path: str) -> Any:
        """A value as JSON: the value itself, or an object with its type."""
        if hasattr(value, "to_numpy") and getattr(value, "ndim", 0) == 1:
            value = list(value)  # a pandas.Index
        match value:
            case None | True | False:
                return value
            case str() if type(value) in (str, np.str_):
                return str(value)
            case int() if type(value) is int and value in INT64:
                return value
            case np.ndarray():
                return encode_array(value, path, self.tensors, self.value)
            case np.generic() if value.dtype.name in NUMBERS:
                return {
                    "type": "scalar",
                    "dtype": value.dtype.name,
                    "value": self.value(value.item(), path),
                }
            case np.dtype() | type():
                return _number_type(value)
            case _ if type(value) in WRITERS:
                return WRITERS[type(value)](self, value, path)
        return self.fitted(value, path)

    def items(self, values: Sequence[Any], path: str) -> list[Any]:
        # in (name, step, columns), the step's arrays are named after the tuple's position alone
        return [
            self.value(inner, path if hasattr(inner, "get_params") else f"{path}.{i}")
            for i, inner in enumerate(values)
        ]

    def list_(self, values: list[Any], path: str) -> Any:
        if not values or not all(isinstance(value, float) for value in values):
            return self.items(values, path)
        self.tensors[path] = np.array(values, dtype="<f8")  # such as a loss curve
        return {"type": "floats", "tensor": path}

    def network(self, network: Network, path: str) -> dict[str, Any]:
        for l, layer in enumerate(network.layers):
            for name, array in to_tensors(layer).items():
                expect(
                    np.isfinite(array).all(),
                    f"layers[{l}].{name} has an infinite or NaN entry. The network cannot "
                    "predict and is not saved.",
                )
                self.tensors[f"layers.{l}.{name}"] = array
        return {
            "type": "network",
            "layers": [
                {
                    "kind": layer.kind,
                    "activation": activation,
                    "inputs": layer.n_inputs,
                    "neurons": layer.n_outputs,
                }
                for layer, activation in zip(network.layers, network.activations, strict=True)
            ],
        }

    def fitted(self, model: Any, path: str) -> dict[str, Any]:
        """Describe an estimator or a step by its parameters and the facts that `fit` learned."""
        if not hasattr(model, "get_params"):
            raise _not_saved(model)
        name, parameters, facts = describe_object(model, last=self.last)
        return {
            "type": "fitted",
            "class": name,
            "parameters": self._attributes(parameters, path, name),
            "facts": None if facts is None else self._attributes(facts, path, name),
        }

    def _attributes(self, values: Mapping[str, Any], path: str, owner: str) -> dict[str, Any]:
        described = {}
        for name, value in values.items():
            try:
                described[name] = self.value(value, f"{path}.{name}" if path else name)
            except NotSavedError as error:
                raise ModelFileError(f"{name} of {owner} is {error}") from None
        return described


WRITERS: dict[type, Callable[[_Writer, Any, str], Any]] = {
    dict: lambda writer, value, path: {
        "type": "dict",
        "items": [
            [writer.value(key, f"{path}.{i}.key"), writer.value(inner, f"{path}.{i}")]
            for i, (key, inner) in enumerate(value.items())
        ],
    },
    float: lambda writer, value, path: (
        value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    ),
    list: _Writer.list_,
    Network: _Writer.network,
    slice: lambda writer, value, path: {
        "type": "slice",
        "items": [writer.value(end, path) for end in (value.start, value.stop, value.step)],
    },
    tuple: lambda writer, value, path: {"type": "tuple", "items": writer.items(value, path)},
}


def _number_type(value: Any) -> dict[str, Any]:
    if isinstance(value, np.dtype) and (value.name in NUMBERS or value.kind == "O"):
        return {"type": "dtype", "name": value.name}
    kind = getattr(value, "__name__", value)
    expect(
        value in NUMBER_TYPES,
        NotSavedError(f"the type {kind}, which a model file does not store"),
    )
    return NUMBER_TYPES[value]


def _not_saved(value: Any) -> NotSavedError:
    kind, not_stored = type(value).__name__, "which a model file does not store"
    is_random = isinstance(value, (np.random.RandomState, np.random.Generator))
    reasons = {
        f"a {kind}, {not_stored}: use an integer or None instead": is_random,
        f"a function, {not_stored}, because it is code": callable(value),
        f"or contains a {kind}, {not_stored}: {value!r:.60}": True,
    }
    return NotSavedError(first_applying(reasons))


# ------------------------------------------------------------------------------ reading


def rebuild(description: Mapping[str, Any], tensors: Mapping[str, Array], size: int) -> Any:
    """Rebuild a model from the results of `describe`; raise ModelFileError if they are invalid.

    `size` is the size of the file.
    """
    reader = _Reader(tensors, Limits.of_file(size))
    try:
        model = reader.value(description["model"])
        limits = reader.limits
        check_restored(model, replace(limits, characters=LONGER_NAMES * limits.characters))
        unused = set(tensors) - reader.used
        expect(not unused, f"the tensor {min(unused, default='')} is not used")
    except ModelFileError as error:
        raise ModelFileError(f"the file does not describe a valid model: {error}.") from None
    except MemoryError:
        raise ModelFileError("there is not enough memory for the model.") from None
    except INVALID as error:
        raise ModelFileError(
            f"the file does not describe a valid model: {type(error).__name__}, {error!s:.200}. "
            f"The file was written with these versions: {description.get('versions')!r:.120}."
        ) from None
    return model


@dataclass
class _Reader:
    """Rebuilds values from their descriptions, and records which tensors were used.

    A tensor may be used only once, because every use makes a copy of it.
    """

    tensors: Mapping[str, Array]
    limits: Limits
    used: set[str] = field(default_factory=set)
    pipelines: int = 0  # around the current value

    def tensor(self, name: str) -> Array:
        expect(name in self.tensors, f"there is no tensor {name!r:.60}")
        expect(name not in self.used, f"the tensor {name} is used twice")
        self.used.add(name)
        return self.tensors[name]

    def value(self, entry: Any) -> Any:
        expect(
            not isinstance(entry, int) or entry in INT64,
            "it contains an integer of more than 64 bits",
        )
        if entry is None or isinstance(entry, (bool, int, float, str)):
            return entry
        if isinstance(entry, list):
            for i, inner in enumerate(entry):  # in place: a copy would double the memory
                entry[i] = self.value(inner)
            return entry
        return READERS[entry["type"]](self, entry)

    def values(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.value(inner) for name, inner in entries.items()}

    def fitted(self, entry: Mapping[str, Any]) -> Any:
        name, facts = entry["class"], entry["facts"]
        self.pipelines += name == "Pipeline"
        expect(
            self.pipelines <= MOST_PIPELINES,
            f"pipelines are nested more than {MOST_PIPELINES} levels deep",
        )
        facts = None if facts is None else self.values(facts)
        model = restore(name, self.values(entry["parameters"]), facts, self.limits)
        self.pipelines -= name == "Pipeline"
        return model

    def network(self, entry: Mapping[str, Any]) -> Network:
        layers = [
            from_tensors(
                layer["kind"], layer["inputs"], layer["neurons"], self.tensor, place=f"layers.{l}."
            )
            for l, layer in enumerate(entry["layers"])
        ]
        return Network(layers, [layer["activation"] for layer in entry["layers"]])


def _floats(reader: _Reader, entry: Mapping[str, Any]) -> list[float]:
    tensor = reader.tensor(entry["tensor"])
    expect(
        tensor.dtype == np.float64 and tensor.ndim == 1,
        f"{entry['tensor']} is not a list of numbers",
    )
    return [float(value) for value in tensor]


def _scalar(reader: _Reader, entry: Mapping[str, Any]) -> Any:
    expect(entry["dtype"] in NUMBERS, "it contains a number of an unknown type")
    value = reader.value(entry["value"])
    expect(isinstance(value, (bool, int, float)), "it contains a number that is not a number")
    return np.dtype(entry["dtype"]).type(value)


def _dtype(_: _Reader, entry: Mapping[str, Any]) -> Any:
    expect(entry["name"] in (*NUMBERS, "object"), "it contains an unknown dtype")
    return np.dtype(entry["name"])


READERS: dict[str, Callable[[_Reader, Mapping[str, Any]], Any]] = {
    "array": lambda reader, entry: decode_array(entry, reader.tensor, reader.value),
    "builtin": lambda _, entry: BUILTINS[entry["name"]],
    "dict": lambda reader, entry: {
        reader.value(key): reader.value(inner) for key, inner in entry["items"]
    },
    "dtype": _dtype,
    "fitted": lambda reader, entry: reader.fitted(entry),
    "float": lambda _, entry: FLOATS[entry["value"]],
    "floats": _floats,
    "network": lambda reader, entry: reader.network(entry),
    "scalar": _scalar,
    "scalar type": lambda reader, entry: _dtype(reader, entry).type,
    "slice": lambda reader, entry: slice(*[reader.value(end) for end in entry["items"]]),
    "tuple": lambda reader, entry: tuple(reader.value(inner) for inner in entry["items"]),
}


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
        others = [
            [i, describe(v, f"{name}.{i}")] for i, v in enumerate(array) if type(v) is not str
        ]
        return {**entry, "dtype": "object", "others": others}
    if array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]:
        array, entry["transposed"] = array.T, True  # the memory order affects rounding
    if array.dtype.kind == "U" and array.ndim == 1:
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        tensors[name] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        return {**entry, "dtype": array.dtype.str.replace("=", "<"), "length": len(array)}
    expect(
        array.dtype.name in NUMBERS and array.ndim <= 3,
        NotSavedError(
            f"an array of {array.dtype} with {array.ndim} dimensions, which a model file does not "
            "store"
        ),
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


def to_tensors(layer: Layer) -> dict[str, Array]:
    """The layer's parameters, keyed by their names in a file."""
    return {
        STORED_NAMES.get(field, field): _transposed(field, array)
        for field, array in layer.arrays().items()
    }


def from_tensors(
    kind: str, n: int, m: int, take: Callable[[str], Array], *, place: str = ""
) -> Layer:
    """The layer of this kind with n inputs and m neurons, from copies of its tensors.

    `take(name)` returns a tensor, and `place` precedes its name.
    """
    arrays: dict[str, Array] = {}
    for parameter, shape in LAYERS[kind].shapes(n, m).items():
        name = place + STORED_NAMES.get(parameter, parameter)
        tensor = take(name)
        array = _transposed(parameter, tensor)
        expect(
            array.shape == shape
            and 0 not in shape
            and array.dtype == arrays.get("W", array).dtype
            and array.dtype in (np.float32, np.float64),
            f"{name} has the wrong shape {tensor.shape} or dtype {array.dtype}",
        )
        expect(np.isfinite(array).all(), f"{name} is not finite")
        arrays[parameter] = np.array(array, order="C")
    return LAYERS[kind].of(**arrays)


def _transposed(field: str, array: Array) -> Array:
    return np.ascontiguousarray(array.T) if field == "packed" else array
