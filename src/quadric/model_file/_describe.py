"""A model as plain data: a description of JSON values, and named arrays."""

import inspect
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import sklearn

import quadric
from quadric._utils.arrays import Array
from quadric.errors import ModelFileError
from quadric.model_file._canonical_json import canonical, parse
from quadric.model_file._saved_classes import ESTIMATORS, RUNNING
from quadric.model_file._tensors import NUMBERS, UnkeptError, encode_array, to_tensors
from quadric.network import Network
from quadric.pipelines._known_steps import Known
from quadric.pipelines._table import UnknownStepError, find, split

LARGEST_INT = 2**63


def describe(
    model: Any, extra: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `rebuild` needs to make the very same model."""
    last = _network_or_estimator(model)
    writer = _Writer(last)
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
    """The Network or estimator at the end of the model, or an error that says what is kept."""
    if type(model) is Network:
        return model
    last = split(model)[1]
    if not _is_estimator(last):
        shown = type(model).__name__
        raise ModelFileError(
            f"a model file keeps a Network, a {', a '.join(ESTIMATORS)}, or a Pipeline that ends "
            f"in one of these three. Got {shown}"
            + (f" that ends in {type(last).__name__}." if last is not model else ".")
        )
    if "network_" not in vars(last):
        raise ModelFileError(
            f"this {type(last).__name__} is not fitted, there is nothing to save: call fit first."
        )
    return last


def _plain_extra(extra: Any) -> dict[str, Any]:
    if extra is None:
        return {}
    wanted = "extra must be a dict of JSON values (text, numbers, lists, dicts with text as keys)"
    if not isinstance(extra, dict):
        raise ModelFileError(f"{wanted}. Got {type(extra).__name__} instead.")
    try:
        plain: dict[str, Any] = parse(canonical(extra))
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{wanted}: {error}") from None
    if plain != _lists_for_tuples(extra):
        raise ModelFileError(f"{wanted}: a key is not text.")
    return plain


def _lists_for_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists_for_tuples(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lists_for_tuples(inner) for inner in value]
    return value


class _Writer:
    """Collects the arrays while it describes what holds them.

    `last` is the one Network or estimator of quadric's in the model: a file has one.
    """

    def __init__(self, last: Any) -> None:
        self.last = last
        self.tensors: dict[str, Array] = {}

    def value(self, value: Any, path: str) -> Any:
        """One value: itself where JSON has it, else an object that says what it is."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and abs(value) < LARGEST_INT:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return encode_array(value, path, self.tensors, self.value)
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.generic) and value.dtype.name in NUMBERS:
            item = self.value(value.item(), path)
            return {"type": "scalar", "dtype": value.dtype.name, "value": item}
        if type(value) in (list, tuple, dict, slice):
            return self._group(value, path)
        if isinstance(value, (np.dtype, type)):
            return _number_type(value)
        if hasattr(value, "to_numpy") and getattr(value, "ndim", 0) == 1:  # columns by an Index
            return self._group(list(value), path)
        if type(value) is Network:
            return self._network(value)
        return self._fitted(value, path)

    def _group(self, value: Any, path: str) -> Any:
        if type(value) is slice:
            ends = [self.value(end, path) for end in (value.start, value.stop, value.step)]
            return {"type": "slice", "items": ends}
        if type(value) is dict:
            pairs = [
                [self.value(key, f"{path}.{i}.key"), self.value(inner, f"{path}.{i}")]
                for i, (key, inner) in enumerate(value.items())
            ]
            return {"type": "dict", "items": pairs}
        if type(value) is list and value and all(isinstance(inner, float) for inner in value):
            self.tensors[path] = np.array(value, dtype="<f8")  # numbers are tensors: a loss curve
            return {"type": "floats", "tensor": path}
        # in (name, step, columns) the step's arrays are named by the tuple's place alone
        items = [
            self.value(inner, path if hasattr(inner, "get_params") else f"{path}.{i}")
            for i, inner in enumerate(value)
        ]
        return items if type(value) is list else {"type": "tuple", "items": items}

    def _network(self, network: Network) -> dict[str, Any]:
        layers = []
        for l, (layer, activation) in enumerate(
            zip(network.layers, network.activations, strict=True)
        ):
            for name, array in to_tensors(layer).items():
                if not np.isfinite(array).all():
                    raise ModelFileError(
                        f"layers[{l}].{name} has an infinite or undefined entry: such a network "
                        "cannot predict, and is not saved."
                    )
                self.tensors[f"layers.{l}.{name}"] = array
            entry = {"kind": layer.kind, "activation": activation}
            layers.append({**entry, "inputs": layer.n_inputs, "neurons": layer.n_outputs})
        return {"type": "network", "layers": layers}

    def _fitted(self, model: Any, path: str) -> dict[str, Any]:
        """An estimator or a step: the parameters that define it, and the facts of its fit."""
        known = self._known(model)
        names = known.of._get_param_names() if type(model) is known.of else ()
        here = {name: getattr(model, name) for name in names}
        _expect_defaults(known, here)
        parameters = {
            name: self._attribute(value, path, name, known.name)
            for name, value in here.items()
            if name in known.parameters
        }
        entry = {"type": "fitted", "class": known.name, "parameters": parameters, "facts": None}
        if known.name in ESTIMATORS or _is_fitted(model):
            facts = {**_common_facts(model), **known.facts(model)}
            entry["facts"] = {
                name: self._attribute(value, path, name, known.name)
                for name, value in facts.items()
                if value is not None
            }
        _expect_no_additions(model)
        return entry

    def _known(self, model: Any) -> Known:
        if model is self.last:
            return ESTIMATORS[type(model).__name__]
        if not hasattr(model, "get_params"):
            _refuse(model)
        try:
            return find(model)
        except UnknownStepError as error:
            raise ModelFileError(
                f"{error.reason}. Apply it to the data beforehand, and save the rest."
            ) from None

    def _attribute(self, value: Any, path: str, attribute: str, owner: str) -> Any:
        try:
            return self.value(value, f"{path}.{attribute}" if path else attribute)
        except UnkeptError as error:
            raise ModelFileError(f"{attribute} of {owner} is {error}") from None


def _is_estimator(value: Any) -> bool:
    """Whether the value's very class, not one derived from it, is one of quadric's."""
    known = ESTIMATORS.get(type(value).__name__)
    return known is not None and known.of is type(value)


def _is_fitted(step: Any) -> bool:
    """A ColumnTransformer leaves a step without columns unfitted."""
    if type(step).__name__ in ("Pipeline", "FeatureUnion"):
        return True  # they hold nothing but their steps
    return hasattr(step, "n_features_in_") or "network_" in vars(step)


def _common_facts(model: Any) -> dict[str, Any]:
    """What X looked like, and the form of a transformer's output."""
    facts = {"feature_names_in_": vars(model).get("feature_names_in_")}
    output = vars(model).get("_sklearn_output_config", {}).get("transform")
    return facts if output is None else {**facts, "output": output}


def _expect_defaults(known: Known, parameters: Mapping[str, Any]) -> None:
    """A parameter that is not kept must have no effect, or its default."""
    signature = inspect.signature(known.of.__init__).parameters
    for name, value in parameters.items():
        kept = name in known.parameters or name in known.absent or name in RUNNING
        if not kept and value is not signature[name].default:
            raise ModelFileError(
                f"{name} of {known.name} is {value!r:.60}, which a model file does not keep"
            )


def _expect_no_additions(model: Any) -> None:
    """An attribute that the user has added would be lost without a word."""
    parameters = type(model)._get_param_names()
    for name in vars(model):
        added = not (name.startswith("_") or name.endswith("_") or name in parameters)
        if added:
            raise ModelFileError(
                f"this {type(model).__name__} has an attribute {name!r} that a model file does not "
                f"keep: if you have set it, `del model.{name}` first (notes go into `extra`)."
            )


def _number_type(value: Any) -> dict[str, Any]:
    if isinstance(value, np.dtype) and (value.name in NUMBERS or value.kind == "O"):
        return {"type": "dtype", "name": value.name}
    for name in NUMBERS:
        if value is np.dtype(name).type:
            return {"type": "scalar type", "name": name}
    if value in (float, int, bool):
        return {"type": "builtin", "name": value.__name__}
    raise UnkeptError(
        f"the type {getattr(value, '__name__', value)}, which a model file does not keep"
    )


def _refuse(value: Any) -> NoReturn:
    kind = type(value).__name__
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        raise UnkeptError(f"a {kind}, which a model file does not keep: give a number (or None)")
    if callable(value):
        raise UnkeptError("a function, which a model file does not keep: it would be code")
    raise UnkeptError(f"or holds a {kind}, which a model file does not keep: {value!r:.60}")
