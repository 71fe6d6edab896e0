"""Descriptions of format 1 restated in format 2.

Format 1 held every attribute of a fitted step. Here the facts are taken out of them; what can be
derived is left behind, unread. The result is checked as any description of format 2.
"""

from typing import Any

from quadric.errors import ModelFileError
from quadric.model_file._saved_classes import RUNNING

Entry = dict[str, Any]

# Attributes that are now derived, or that no file should have held.
DERIVED = {
    "MinMaxScaler": {"min_", "scale_", "data_range_"},
    "PCA": {"n_components_", "_fit_svd_solver"},
    "SimpleImputer": {"indicator_", "_fit_dtype", "_fill_dtype"},
    "OneHotEncoder": {
        "drop_idx_", "_infrequent_enabled", "_infrequent_indices", "_n_features_outs",
        "_default_to_infrequent_mappings", "_drop_idx_after_grouping",
    },
    "ColumnTransformer": {
        "transformers_", "output_indices_", "_columns", "_remainder", "_n_features",
        "_transformer_to_input_indices", "_name_to_fitted_passthrough",
        "_transformers_feature_names_out",
    },
    "QuadraticClassifier": {
        "loss_", "_label_binarizer", "_no_improvement_count", "_solver", "_rate"
    },
    "QuadraticRegressor": {"loss_", "_no_improvement_count", "_solver", "_rate"},
}  # fmt: skip


def upgrade(value: Any) -> Any:
    """The same description in format 2; changed in place, so that it takes no more memory."""
    if isinstance(value, dict) and value.get("type") == "estimator":
        return _fitted(value)
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            value[key] = upgrade(value[key])
    return value


def _fitted(entry: Entry) -> Any:
    name, fitted = entry["class"], entry["fitted"]
    if name == "FunctionTransformer":
        return "passthrough"  # it stood for nothing else
    parameters = {key: v for key, v in entry["parameters"].items() if key not in RUNNING}
    facts = {key: v for key, v in fitted.items() if key not in DERIVED.get(name, ())}
    output = facts.pop("_sklearn_output_config", None)
    if output is not None:
        facts["output"] = _pairs(output)["transform"]
    if name in FACTS and fitted:
        FACTS[name](parameters, facts, fitted)
    is_fitted = bool(fitted) or name == "Pipeline"
    return {
        "type": "fitted",
        "class": name,
        "parameters": {key: upgrade(v) for key, v in parameters.items()},
        "facts": {key: upgrade(v) for key, v in facts.items()} if is_fitted else None,
    }


def _pairs(described: Entry) -> dict[str, Any]:
    """A described dict with texts as keys."""
    pairs = dict(described["items"])
    if not all(isinstance(key, str) for key in pairs):
        raise ModelFileError("a name is not text")
    return pairs


def _imputer(parameters: Entry, facts: Entry, fitted: Entry) -> None:
    facts["fit_dtype"] = fitted["_fit_dtype"]
    statistics = fitted["statistics_"]["dtype"]
    # files of a scikit-learn that did not have it yet
    facts["fill_dtype"] = fitted.get("_fill_dtype", {"type": "dtype", "name": statistics})
    if parameters.get("add_indicator"):
        facts["marked"] = fitted["indicator_"]["fitted"]["features_"]


def _encoder(parameters: Entry, facts: Entry, fitted: Entry) -> None:
    facts["infrequent"] = fitted["_infrequent_indices"] if fitted["_infrequent_enabled"] else None


def _columns(parameters: Entry, facts: Entry, fitted: Entry) -> None:
    """The fitted steps, the columns as the user gave them, and their indices."""
    given = [entry["items"] for entry in parameters.pop("transformers")]
    made = [entry["items"] for entry in fitted["transformers_"]]
    indices = _pairs(fitted["_transformer_to_input_indices"])
    parts = []
    for (name, step, columns), (_, fitted_step, _) in zip(given, made, strict=False):
        step = step if isinstance(step, str) else fitted_step
        parts.append({"type": "tuple", "items": [name, step, columns, _index(indices[name])]})
    rest = indices.get("remainder", [])
    remainder = parameters.pop("remainder", "drop")
    if rest and not isinstance(remainder, str):
        remainder = made[-1][1]
    facts["transformers"] = parts
    facts["remainder"] = {"type": "tuple", "items": [remainder, _index(rest)]}


def _index(values: Any) -> Entry:
    return {"type": "indices", "values": values}


def _classifier(parameters: Entry, facts: Entry, fitted: Entry) -> None:
    kind = fitted["_label_binarizer"]["fitted"]["y_type_"]
    facts["multilabel"] = isinstance(kind, str) and kind.startswith("multilabel")


FACTS = {
    "SimpleImputer": _imputer,
    "OneHotEncoder": _encoder,
    "ColumnTransformer": _columns,
    "QuadraticClassifier": _classifier,
}
