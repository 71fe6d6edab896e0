"""Rebuild a model from its description and tensors; all names are looked up in fixed tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.errors import ModelFileError
from quadric.files._canonical_json import INT64, expect
from quadric.files._saved_classes import CLASSES, ESTIMATORS
from quadric.files._tensors import NUMBERS, decode_array, from_tensors, stored_names
from quadric.models import (
    FactError,
    Facts,
    Known,
    Limits,
    expect_short_names,
    flat_steps,
    missing_after,
    operations,
)
from quadric.network import Network

BUILTINS = {"float": float, "int": int, "bool": bool}
FLOATS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
OUTPUTS = ("default", "pandas", "polars")
MOST_PIPELINES = 5  # scikit-learn's `predict` takes three times as long for each
LONGER_NAMES = 8  # how much longer names may be that the file does not store
INVALID = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


def rebuild(description: Mapping[str, Any], tensors: Mapping[str, Array], size: int) -> Any:
    """Rebuild a model from the results of `describe`; raise ModelFileError if they are invalid.

    `size` is the size of the file.
    """
    reader = _Reader(tensors, Limits.of_file(size))
    try:
        model = reader.value(description["model"])
        limits = reader.limits
        _check_model(model, replace(limits, characters=LONGER_NAMES * limits.characters))
        unused = set(tensors) - reader.used
        expect(not unused, f"the tensor {min(unused, default='')} is not used")
    except (ModelFileError, FactError) as error:
        raise ModelFileError(f"the file does not describe a valid model: {error}.") from None
    except MemoryError:
        raise ModelFileError("there is not enough memory for the model.") from None
    except INVALID as error:
        raise ModelFileError(
            f"the file does not describe a valid model: {type(error).__name__}, {error!s:.200}. "
            f"The file was written with these versions: {description.get('versions')!r:.120}."
        ) from None
    return model


def _check_model(model: Any, limits: Limits) -> None:
    """Expect a Network, or a quadric estimator by itself or at the end of a pipeline.

    `explain`, and `predict` with tables between the steps, build names within these limits.
    """
    *steps, last = flat_steps(model)  # without names, which are long in nested pipelines
    is_network, estimators = type(model) is Network, [known.of for known in ESTIMATORS.values()]
    expect(is_network or type(last) in estimators, f"its last step is {type(last).__name__}")
    expect(is_network or "network_" in vars(last), "its estimator has no network")
    expect(model is last or hasattr(model, "predict"), "its pipeline cannot predict")
    every = [operation for step in steps for operation in operations(step)]
    n = getattr(model, "n_features_in_", None)
    missing = every and n is not None and missing_after(every, np.zeros(n, dtype=bool)).any()
    expect(
        not missing,
        "a step makes every value of a column missing and no step imputes or drops the column",
    )
    if steps:
        expect_short_names(steps, limits)


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
        """Rebuild an estimator or a step; all its attributes are checked or derived."""
        name = entry["class"]
        expect(
            isinstance(name, str) and name in CLASSES,
            f"it names the class {name!r:.60}, which is not supported",
        )
        known = CLASSES[name]
        for parameter in entry["parameters"]:
            expect(
                parameter in known.parameters,
                f"it gives {name} an unknown parameter {parameter!r:.60}",
            )
            expect(
                parameter in known.of._get_param_names(),
                f"it gives {name} the parameter {parameter!r:.60}, which the installed version of "
                "scikit-learn does not have",
            )
        expect(
            entry["facts"] is not None or name not in ("Pipeline", "FeatureUnion", *ESTIMATORS),
            f"the fitted attributes of {name} are missing",
        )
        self.pipelines += name == "Pipeline"
        expect(
            self.pipelines <= MOST_PIPELINES,
            f"pipelines are nested more than {MOST_PIPELINES} levels deep",
        )
        made = known.of(**known.absent, **self.values(entry["parameters"]))
        if hasattr(made, "_parameter_constraints"):  # FeatureUnion has none
            made._validate_params()
        if entry["facts"] is not None:
            _restore(known, made, Facts(name, self.values(entry["facts"]), self.limits))
        self.pipelines -= name == "Pipeline"
        return made

    def network(self, entry: Mapping[str, Any]) -> Network:
        layers = []
        for l, described in enumerate(entry["layers"]):
            kind, n, m = described["kind"], described["inputs"], described["neurons"]
            tensors = {name: self.tensor(f"layers.{l}.{name}") for name in stored_names(kind)}
            layers.append(from_tensors(kind, n, m, tensors, place=f"layers.{l}."))
        return Network(layers, [described["activation"] for described in entry["layers"]])


def _restore(known: Known, made: Any, facts: Facts) -> None:
    n = known.restore(made, facts)
    facts.expect(
        "n_features_in_",
        facts.get("n_features_in_") in (None, n),
        f"{n}, as in its other attributes",
    )
    if not isinstance(getattr(type(made), "n_features_in_", None), property):
        made.n_features_in_ = n
        if (names := facts.feature_names(n)) is not None:
            made.feature_names_in_ = names
    if (output := facts.get("output")) is not None:
        facts.expect("output", output in OUTPUTS, f"one of {OUTPUTS}")
        # not with set_output, which would also change the inner steps
        made._sklearn_output_config = {"transform": output}
    if facts.unasked:
        raise FactError(f"{known.name} has no fitted attribute {min(facts.unasked)!r:.60}")


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
