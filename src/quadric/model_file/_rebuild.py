"""A model from its description and arrays; every name is looked up in a table of ours."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Layer
from quadric.errors import ModelFileError
from quadric.model_file._format_1 import upgrade
from quadric.model_file._saved_classes import CLASSES, ESTIMATORS
from quadric.model_file._tensors import NUMBERS, decode_array, from_tensors, stored_names
from quadric.network import Network
from quadric.pipelines._known_steps import FactError, Facts, Known
from quadric.pipelines._missing_values import missing_after
from quadric.pipelines._table import operations, split

BUILTINS = {"float": float, "int": int, "bool": bool}
LARGEST_INT = 2**63
FLOATS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def rebuild(description: Mapping[str, Any], tensors: Mapping[str, Array]) -> Any:
    """The model that `describe` described."""
    reader = _Reader(tensors)
    old = description["format"] == 1
    try:
        model = reader.value(upgrade(description["model"]) if old else description["model"])
        _check_model(model)
    except (ModelFileError, FactError) as error:
        raise ModelFileError(f"the file describes no model: {error}.") from None
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
    ) as error:  # fmt: skip
        raise ModelFileError(
            f"the file describes no model: {type(error).__name__}, {error}. "
            f"It was written by {_versions(description)}."
        ) from None
    if reader.unused and not old:  # old files hold what is now derived
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
    """A Network, or an estimator of ours, alone or at the end of a pipeline."""
    steps, last = split(model)
    if type(last) is Network and last is not model:
        raise ModelFileError("its pipeline ends in a Network")
    known = [Network, *(known.of for known in ESTIMATORS.values())]
    if type(last) not in known or (last is not model and not hasattr(model, "predict")):
        raise ModelFileError(f"it ends in {type(last).__name__}")
    if type(last) is not Network and "network_" not in vars(last):
        raise ModelFileError("its estimator has no network")
    every = [operation for _, step in steps for operation in operations(step)]
    n = getattr(model, "n_features_in_", None)
    if every and n is not None and missing_after(every, np.zeros(n, dtype=bool)).any():
        raise ModelFileError(
            "a step makes every value of a column missing and no step imputes or drops the column"
        )


class _Reader:
    """Makes values of what is described, and knows which arrays were never asked for."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self.tensors = _Counted(tensors)

    @property
    def unused(self) -> set[str]:
        return set(self.tensors) - self.tensors.asked

    def value(self, entry: Any) -> Any:
        if isinstance(entry, int) and not -LARGEST_INT <= entry < LARGEST_INT:
            raise ModelFileError("it has a whole number of more than 64 bits")
        if entry is None or isinstance(entry, (bool, int, float, str)):
            return entry
        if isinstance(entry, list):
            for i, inner in enumerate(entry):  # in place: a copy would take as much memory again
                entry[i] = self.value(inner)
            return entry
        return READERS[entry["type"]](self, entry)

    def fitted(self, entry: Mapping[str, Any]) -> Any:
        """An estimator or a step, with every attribute checked or derived."""
        name = entry["class"]
        if not isinstance(name, str) or name not in CLASSES:
            raise ModelFileError(f"it names a class {name!r:.60}, which no model has")
        known = CLASSES[name]
        unknown = {*entry["parameters"]} - {*known.parameters}
        if unknown:
            raise ModelFileError(f"it gives {name} an unknown parameter {min(unknown)!r:.60}")
        parameters = {key: self.value(inner) for key, inner in entry["parameters"].items()}
        newer = {*parameters} - {*known.of._get_param_names()}
        if newer:
            raise ModelFileError(
                f"it gives {name} a parameter {min(newer)!r:.60}, which the installed version of "
                "scikit-learn does not have"
            )
        if entry["facts"] is None and name in ("Pipeline", "FeatureUnion", *ESTIMATORS):
            raise ModelFileError(f"it says nothing about its {name}")
        made = known.of(**known.absent, **parameters)
        if hasattr(made, "_parameter_constraints"):  # FeatureUnion has none
            made._validate_params()
        if entry["facts"] is not None:
            values = {key: self.value(inner) for key, inner in entry["facts"].items()}
            _restore(known, made, Facts(name, values))
        return made

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


def _restore(known: Known, made: Any, facts: Facts) -> None:
    n = known.restore(made, facts)
    claimed = facts.get("n_features_in_")
    facts.expect(
        "n_features_in_", claimed is None or claimed == n, f"{n}, as in its other attributes"
    )
    if not isinstance(getattr(type(made), "n_features_in_", None), property):
        made.n_features_in_ = n
        names = facts.feature_names(n)
        if names is not None:
            made.feature_names_in_ = names
    output = facts.get("output")
    if output is not None:
        facts.expect(
            "output", output in ("default", "pandas", "polars"), "'default', 'pandas' or 'polars'"
        )
        # not by set_output, which would change the steps inside, too
        made._sklearn_output_config = {"transform": output}
    if facts.unasked:
        raise FactError(f"{known.name} has no fitted attribute {min(facts.unasked)!r:.60}")


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


def _indices(reader: _Reader, entry: Mapping[str, Any]) -> Array:
    """Of columns, in files of format 1."""
    values = [reader.value(value) for value in entry["values"]]
    if not all(isinstance(value, (int, np.integer)) for value in values):
        raise ModelFileError("an index of a column is no whole number")
    return np.array(values, dtype=np.int64)


READERS: dict[str, Callable[[_Reader, Mapping[str, Any]], Any]] = {
    "array": lambda reader, entry: decode_array(entry, reader.tensors, reader.value),
    "builtin": lambda _, entry: BUILTINS[entry["name"]],
    "dict": lambda reader, entry: {
        reader.value(key): reader.value(inner) for key, inner in entry["items"]
    },
    "dtype": _dtype,
    "fitted": lambda reader, entry: reader.fitted(entry),
    "float": lambda _, entry: FLOATS[entry["value"]],
    "floats": _floats,
    "indices": _indices,
    "network": lambda reader, entry: reader.network(entry),
    "scalar": _scalar,
    "scalar type": lambda reader, entry: _dtype(reader, entry).type,
    "slice": lambda reader, entry: slice(*[reader.value(end) for end in entry["items"]]),
    "tuple": lambda reader, entry: tuple(reader.value(inner) for inner in entry["items"]),
}
