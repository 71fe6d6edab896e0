"""A model from its description and arrays; every name is looked up in a table of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.errors import ModelFileError
from quadric.layers import Layer
from quadric.model_file.array_values import NUMBERS, decode_array
from quadric.model_file.classes import CLASSES, ESTIMATORS
from quadric.model_file.layers import from_tensors, stored_names
from quadric.network import Network

__all__ = ["rebuild"]

BUILTINS = {"float": float, "int": int, "bool": bool}
FLOATS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def rebuild(description: Mapping[str, Any], tensors: Mapping[str, Array]) -> Any:
    """The model that `describe` described."""
    reader = _Reader(tensors)
    try:
        model = reader.value(description["model"])
        _check_model(model)
    except ModelFileError as error:
        raise ModelFileError(f"the file describes no model: {error}.") from None
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
    ) as error:  # fmt: skip
        raise ModelFileError(
            f"the file describes no model: {type(error).__name__}, {error}. "
            f"It was written by {_versions(description)}."
        ) from None
    if reader.unused:
        raise ModelFileError(
            f"the file describes no model: nothing needs the tensor {min(reader.unused)}."
        )
    return model


def _versions(description: Mapping[str, Any]) -> str:
    versions = description.get("versions")
    if not isinstance(versions, dict):
        return "an unknown version"
    return ", ".join(f"{name} {version}"[:40] for name, version in list(versions.items())[:5])


def _check_model(model: Any) -> None:
    """A Network, or an estimator of ours with one, alone or at the end of a pipeline."""
    last = model.steps[-1][1] if type(model) is CLASSES["Pipeline"].of else model
    if type(last) is Network:
        if last is not model:
            raise ModelFileError("its pipeline ends in a Network")
        return
    if type(last) not in [known.of for known in ESTIMATORS.values()]:
        raise ModelFileError(f"it ends in {type(last).__name__}")
    network = last.__dict__.get("network_")
    if type(network) is not Network:
        raise ModelFileError("its estimator has no network")
    if last.n_features_in_ != network.n_inputs:
        raise ModelFileError("its network has another number of inputs than its estimator")
    if hasattr(last, "classes_") and len(last.classes_) not in _class_counts(network):
        raise ModelFileError("its network has another number of outputs than there are classes")


def _class_counts(network: Network) -> tuple[int, ...]:
    return (1, 2) if network.n_outputs == 1 else (network.n_outputs,)


class _Reader:
    """Makes values of what is described, and knows which arrays were never asked for."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self.tensors = _Counted(tensors)

    @property
    def unused(self) -> set[str]:
        return set(self.tensors) - self.tensors.asked

    def value(self, entry: Any) -> Any:
        if entry is None or isinstance(entry, (bool, int, float, str)):
            return entry
        if isinstance(entry, list):
            return [self.value(inner) for inner in entry]
        return READERS[entry["type"]](self, entry)

    def estimator(self, entry: Mapping[str, Any]) -> Any:
        name = entry["class"]
        if not isinstance(name, str) or name not in CLASSES:
            raise ModelFileError(f"it names a class {name!r:.60}, which no model has")
        known = CLASSES[name]
        parameters = entry["parameters"]
        fitted = {key: inner for key, inner in entry["fitted"].items() if key not in known.former}
        for attribute in {*parameters} - {*known.parameters} | {*fitted} - known.fitted:
            raise ModelFileError(
                f"it gives {name} an attribute {attribute!r:.60}, which the installed one has not"
            )
        model = known.of(**{key: self.value(inner) for key, inner in parameters.items()})
        vars(model).update({key: self.value(inner) for key, inner in fitted.items()})
        _complete(model, name)
        return model

    def network(self, entry: Mapping[str, Any]) -> Network:
        layers, activations = [], []
        for l, described in enumerate(entry["layers"]):
            layers.append(self._layer(f"layers.{l}", described))
            activations.append(described["activation"])
        return Network(layers, activations)

    def _layer(self, place: str, described: Mapping[str, Any]) -> Layer:
        kind, n, m = described["kind"], described["inputs"], described["neurons"]
        tensors = {name: self.tensors[f"{place}.{name}"] for name in stored_names(kind)}
        try:
            return from_tensors(kind, n, m, tensors)
        except ModelFileError as error:
            raise ModelFileError(f"{place}.{error}") from None


def _complete(model: Any, name: str) -> None:
    """What a file leaves out because it follows from the rest, or is the solver's memory."""
    if name == "QuadraticLogisticRegression":
        neuron = model.network_.layers[0]
        model.coef_, model.intercept_ = neuron.W, neuron.b
    elif name == "SimpleImputer" and "statistics_" in vars(model):
        # files written with a scikit-learn that did not have it yet
        vars(model).setdefault("_fill_dtype", model.statistics_.dtype)


class _Counted(dict[str, Array]):
    """The tensors, each asked for once: one that is named often would be copied as often."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        super().__init__(tensors)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise ModelFileError(f"there is no tensor {name!r:.60}")
        if name in self.asked:
            raise ModelFileError(f"two things are made of the tensor {name}")
        self.asked.add(name)
        return super().__getitem__(name)


def _floats(reader: _Reader, entry: Mapping[str, Any]) -> list[float]:
    tensor = reader.tensors[entry["tensor"]]
    if tensor.dtype != np.float64 or tensor.ndim != 1:
        raise ModelFileError(f"{entry['tensor']} is no list of numbers")
    return [float(value) for value in tensor]


def _scalar(reader: _Reader, entry: Mapping[str, Any]) -> Any:
    if entry["dtype"] not in NUMBERS:
        raise ModelFileError("it has a number of unknown type")
    return np.dtype(entry["dtype"]).type(reader.value(entry["value"]))


def _dtype(_: _Reader, entry: Mapping[str, Any]) -> Any:
    if entry["name"] not in (*NUMBERS, "object"):
        raise ModelFileError("it has an unknown dtype")
    return np.dtype(entry["name"])


READERS: dict[str, Callable[[_Reader, Mapping[str, Any]], Any]] = {
    "array": lambda reader, entry: decode_array(entry, reader.tensors, reader.value),
    "builtin": lambda _, entry: BUILTINS[entry["name"]],
    "dict": lambda reader, entry: {
        reader.value(key): reader.value(inner) for key, inner in entry["items"]
    },
    "dtype": _dtype,
    "estimator": lambda reader, entry: reader.estimator(entry),
    "float": lambda _, entry: FLOATS[entry["value"]],
    "floats": _floats,
    "network": lambda reader, entry: reader.network(entry),
    "scalar": _scalar,
    "scalar type": lambda reader, entry: _dtype(reader, entry).type,
    "slice": lambda reader, entry: slice(*[reader.value(end) for end in entry["items"]]),
    "tuple": lambda reader, entry: tuple(reader.value(inner) for inner in entry["items"]),
}
