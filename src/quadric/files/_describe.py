"""A model as plain data: a description made of JSON values, and named arrays."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn

import quadric
from quadric.checks import Array
from quadric.errors import ModelFileError
from quadric.files._canonical_json import INT64, canonical, expect, parse
from quadric.files._saved_classes import ESTIMATORS, RUNNING
from quadric.files._tensors import NUMBERS, NotSavedError, encode_array, to_tensors
from quadric.models import Known, UnknownStepError, find, split
from quadric.network import Network


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
    if name not in ESTIMATORS or ESTIMATORS[name].of is not type(last):  # not a derived class
        raise ModelFileError(
            f"a model file stores a Network, a {', a '.join(ESTIMATORS)}, or a Pipeline that ends "
            f"in one of these three. Got {type(model).__name__}"
            + ("." if last is model else f" that ends in {name}.")
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
        known = self._known(model)
        names = known.of._get_param_names() if type(model) is known.of else ()
        given = {name: getattr(model, name) for name in names}
        _expect_defaults(known, given)
        parameters = {name: value for name, value in given.items() if name in known.parameters}
        facts = None
        if _is_fitted(model):
            every = {
                "feature_names_in_": vars(model).get("feature_names_in_"),
                "output": vars(model).get("_sklearn_output_config", {}).get("transform"),
                **known.facts(model),
            }
            facts = {name: value for name, value in every.items() if value is not None}
        _expect_no_additions(model)
        return {
            "type": "fitted",
            "class": known.name,
            "parameters": self._attributes(parameters, path, known.name),
            "facts": None if facts is None else self._attributes(facts, path, known.name),
        }

    def _known(self, model: Any) -> Known:
        if model is self.last:
            return ESTIMATORS[type(model).__name__]
        if not hasattr(model, "get_params"):
            raise _not_saved(model)
        try:
            return find(model)
        except UnknownStepError as error:
            raise ModelFileError(
                f"{error.reason}. Apply this step to the data beforehand, and save the rest."
            ) from None

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


def _is_fitted(step: Any) -> bool:
    """Whether a step is fitted; a ColumnTransformer does not fit a step without columns."""
    only_steps = type(step).__name__ in ("Pipeline", "FeatureUnion")  # these have no facts
    return only_steps or hasattr(step, "n_features_in_") or "network_" in vars(step)


def _expect_defaults(known: Known, parameters: Mapping[str, Any]) -> None:
    """Check that a parameter that is not stored has its default value, unless it has no effect."""
    signature = inspect.signature(known.of.__init__).parameters
    for name, value in parameters.items():
        stored = name in known.parameters or name in known.absent or name in RUNNING
        if not stored and value is not signature[name].default:
            # the text of a value that contains steps takes time, so only an error builds it
            raise ModelFileError(
                f"{name} of {known.name} is {value!r:.60}, which a model file does not store"
            )


def _expect_no_additions(model: Any) -> None:
    """Check that the user has not added attributes, because they would be lost."""
    parameters = type(model)._get_param_names()
    for name in vars(model):
        expect(
            name.startswith("_") or name.endswith("_") or name in parameters,
            f"this {type(model).__name__} has an attribute {name!r} that a model file does not "
            f"store. If you added it, run `del model.{name}` first, and put notes in `extra`.",
        )


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
