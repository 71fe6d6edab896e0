"""A model as plain data, a description made of JSON values and named arrays, and back.

`describe` makes the description, and `rebuild` makes the model again. In between are the steps and
estimators that `quadric.models` describes and restores.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn

import quadric
from quadric.checks import Array
from quadric.errors import ModelFileError, expect
from quadric.files._canonical_json import INT64, canonical, parse
from quadric.files._tensors import (
    NUMBERS,
    NotSavedError,
    decode_array,
    encode_array,
    from_tensors,
    stored_names,
    to_tensors,
)
from quadric.models import (
    Limits,
    check_restored,
    describe as describe_object,
    is_saved_estimator,
    restore,
    split,
)
from quadric.network import Network

BUILTINS = {"float": float, "int": int, "bool": bool}
FLOATS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
MOST_PIPELINES = 5  # scikit-learn's `predict` takes three times as long for each
LONGER_NAMES = 8  # how much longer names may be that the file does not store
INVALID = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


# ------------------------------------------------------------------------------ writing


def describe(
    model: Any, extra: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the tensors from which `rebuild` restores the model."""
    writer = _Writer(_network_or_estimator(model))
    description = {
        "extra": _plain_extra(extra),
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
    if not is_saved_estimator(last):
        raise ModelFileError(
            "a model file stores a Network, a QuadraticClassifier, a QuadraticRegressor, a "
            "QuadraticLogisticRegression, or a Pipeline that ends in one of these three. "
            f"Got {type(model).__name__}" + ("." if last is model else f" that ends in {name}.")
        )
    expect("network_" in vars(last), f"this {name} is not fitted: call fit before save.")
    return last


def _plain_extra(extra: Any) -> dict[str, Any]:
    if extra is None:
        return {}
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


class _Writer:
    """Collects the arrays of a model while it describes the model.

    `last` is the Network or the quadric estimator in the model. A file contains exactly one.
    """

    def __init__(self, last: Any) -> None:
        self.last = last
        self.tensors: dict[str, Array] = {}

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
                item = self.value(value.item(), path)
                return {"type": "scalar", "dtype": value.dtype.name, "value": item}
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
        layers = [
            {
                "kind": layer.kind,
                "activation": activation,
                "inputs": layer.n_inputs,
                "neurons": layer.n_outputs,
            }
            for layer, activation in zip(network.layers, network.activations, strict=True)
        ]
        return {"type": "network", "layers": layers}

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
    if value in (float, int, bool):
        return {"type": "builtin", "name": value.__name__}
    names = [name for name in NUMBERS if value is np.dtype(name).type]
    if not names:
        kind = getattr(value, "__name__", value)
        raise NotSavedError(f"the type {kind}, which a model file does not store")
    return {"type": "scalar type", "name": names[0]}


def _not_saved(value: Any) -> NotSavedError:
    kind = type(value).__name__
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return NotSavedError(
            f"a {kind}, which a model file does not store: use an integer or None instead"
        )
    if callable(value):
        return NotSavedError("a function, which a model file does not store, because it is code")
    return NotSavedError(f"or contains a {kind}, which a model file does not store: {value!r:.60}")


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


class _Reader:
    """Rebuilds values from their descriptions, and records which tensors were used.

    A tensor may be used only once, because every use makes a copy of it.
    """

    def __init__(self, tensors: Mapping[str, Array], limits: Limits) -> None:
        self.tensors = tensors
        self.limits = limits
        self.used: set[str] = set()
        self.pipelines = 0  # around the current value

    def tensor(self, name: str) -> Array:
        expect(name in self.tensors, f"there is no tensor {name!r:.60}")
        expect(name not in self.used, f"the tensor {name} is used twice")
        self.used.add(name)
        return self.tensors[name]

    def value(self, entry: Any) -> Any:
        if isinstance(entry, int):
            expect(entry in INT64, "it contains an integer of more than 64 bits")
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
        layers = []
        for l, described in enumerate(entry["layers"]):
            kind, n, m = described["kind"], described["inputs"], described["neurons"]
            tensors = {name: self.tensor(f"layers.{l}.{name}") for name in stored_names(kind)}
            layers.append(from_tensors(kind, n, m, tensors, place=f"layers.{l}."))
        return Network(layers, [described["activation"] for described in entry["layers"]])


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
