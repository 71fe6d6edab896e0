"""Descriptions of format 1, converted to format 2.

Format 1 stored every attribute of a fitted step. The conversion extracts the facts and ignores the
attributes that can be derived. The result passes the same checks as a description of format 2.
"""

from collections.abc import Callable
from typing import Any

from quadric.files._canonical_json import expect
from quadric.files._saved_classes import RUNNING

Entry = dict[str, Any]

# Attributes that are now derived, or that should never have been stored.
_TRAINING = {"loss_", "_no_improvement_count", "_solver", "_rate"}
DERIVED = {
    "MinMaxScaler": {"min_", "scale_", "data_range_"},
    "PCA": {"n_components_", "_fit_svd_solver"},
    "SimpleImputer": {"indicator_", "_fit_dtype", "_fill_dtype"},
    "OneHotEncoder": {
        "drop_idx_",
        "_infrequent_enabled",
        "_infrequent_indices",
        "_n_features_outs",
        "_default_to_infrequent_mappings",
        "_drop_idx_after_grouping",
    },
    "ColumnTransformer": {
        "transformers_",
        "output_indices_",
        "_columns",
        "_remainder",
        "_n_features",
        "_transformer_to_input_indices",
        "_name_to_fitted_passthrough",
        "_transformers_feature_names_out",
    },
    "QuadraticClassifier": {"_label_binarizer", *_TRAINING},
    "QuadraticRegressor": _TRAINING,
}


def upgrade(value: Any) -> Any:
    """Convert a description to format 2, in place, so that no extra memory is needed."""
    if isinstance(value, dict) and value.get("type") == "estimator":
        return _fitted(value)
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            value[key] = upgrade(value[key])
    return value


def _fitted(entry: Entry) -> Any:
    name, fitted = entry["class"], entry["fitted"]
    if name == "FunctionTransformer":
        return "passthrough"  # its only use in format 1
    parameters = {key: v for key, v in entry["parameters"].items() if key not in RUNNING}
    facts = {key: v for key, v in fitted.items() if key not in DERIVED.get(name, ())}
    if (output := facts.pop("_sklearn_output_config", None)) is not None:
        facts["output"] = _pairs(output)["transform"]
    if name in FACTS and fitted:
        facts |= FACTS[name](parameters, fitted)
    is_fitted = bool(fitted) or name == "Pipeline"
    return {
        "type": "fitted",
        "class": name,
        "parameters": {key: upgrade(v) for key, v in parameters.items()},
        "facts": {key: upgrade(v) for key, v in facts.items()} if is_fitted else None,
    }


def _pairs(described: Entry) -> dict[str, Any]:
    """The items of a described dict, whose keys must be strings."""
    pairs = dict(described["items"])
    expect(all(isinstance(key, str) for key in pairs), "a name is not a string")
    return pairs


def _imputer(parameters: Entry, fitted: Entry) -> Entry:
    statistics = {"type": "dtype", "name": fitted["statistics_"]["dtype"]}
    facts = {
        "fit_dtype": fitted["_fit_dtype"],
        "fill_dtype": fitted.get("_fill_dtype", statistics),  # scikit-learn added it later
    }
    marks = parameters.get("add_indicator")
    return facts | ({"marked": fitted["indicator_"]["fitted"]["features_"]} if marks else {})


def _columns(parameters: Entry, fitted: Entry) -> Entry:
    """The fitted steps, the columns as the user gave them, and their indices."""
    given = [entry["items"] for entry in parameters.pop("transformers")]
    made = [entry["items"] for entry in fitted["transformers_"]]
    indices = _pairs(fitted["_transformer_to_input_indices"])
    parts = [
        _tuple(
            name,
            step if isinstance(step, str) else fitted_step,
            columns,
            {"type": "indices", "values": indices.pop(name)},  # names are distinct
        )
        for (name, step, columns), (_, fitted_step, _) in zip(given, made, strict=False)
    ]
    rest = indices.pop("remainder", [])
    remainder = parameters.pop("remainder", "drop")
    if rest and not isinstance(remainder, str):
        remainder = made[-1][1]
    return {
        "transformers": parts,
        "remainder": _tuple(remainder, {"type": "indices", "values": rest}),
    }


def _tuple(*items: Any) -> Entry:
    return {"type": "tuple", "items": list(items)}


FACTS: dict[str, Callable[[Entry, Entry], Entry]] = {
    "SimpleImputer": _imputer,
    "OneHotEncoder": lambda parameters, fitted: {
        "infrequent": fitted["_infrequent_indices"] if fitted["_infrequent_enabled"] else None
    },
    "ColumnTransformer": _columns,
    "QuadraticClassifier": lambda parameters, fitted: {
        "multilabel": fitted["_label_binarizer"]["fitted"]["y_type_"] == "multilabel-indicator"
    },
}
