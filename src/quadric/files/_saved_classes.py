"""The classes that can be saved: the estimators, and the steps of `quadric.models`.

A class name in a file is looked up in `CLASSES`. A file cannot cause an import.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Quadratic
from quadric.estimators import (
    LINKS,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    are_kinds,
    hidden_sizes,
)
from quadric.models import SELECTED, STEPS, Facts, Known, Rules, are_numbers, is_vector
from quadric.network import Network

# Parameters that control how an object of any class runs. They are never taken from a file.
RUNNING = frozenset(
    {
        "copy",
        "force_int_remainder_cols",
        "inv_kw_args",
        "kw_args",
        "memory",
        "n_jobs",
        "transform_input",
        "verbose",
    }
)

COUNTS = ("n_iter_", "t_")
LOSSES = ("best_loss_", "best_validation_score_")
RECORDS = (*COUNTS, *LOSSES, "_alpha", "loss_curve_", "validation_scores_", "selection_")

NETWORK: Rules = {"a network": lambda value: type(value) is Network}
CURVE: Rules = {
    "a list of numbers": lambda values: (
        isinstance(values, list) and all(type(value) is float for value in values)
    ),
}
SELECTION: Rules = {
    "a list of dicts of strings and numbers": lambda tried: (
        isinstance(tried, list)
        and all(
            isinstance(one, dict)
            and all(type(value) in (str, bool, int, float) for value in one.values())
            for one in tried
        )
    ),
}
LOSS: Rules = {"a number": lambda value: value is None or isinstance(value, (float, np.floating))}
LABELS: Rules = {
    "an array of labels": lambda labels: is_vector(labels, "OUbiuf") and labels.size,
    "strings or numbers": lambda labels: (
        labels.dtype != object
        or all(isinstance(label, (str, bool, int, float, np.generic)) for label in labels)
    ),
    "finite": lambda labels: labels.dtype.kind != "f" or np.isfinite(labels).all(),
    "in increasing order": lambda labels: all(a < b for a, b in pairwise(labels)),
}


def _records(model: Any) -> dict[str, Any]:
    return {name: vars(model)[name] for name in RECORDS if name in vars(model)}


def _restore_records(model: Any, facts: Facts) -> None:
    hidden_sizes(model)  # raises ValueError for invalid sizes
    kinds = model.layer_kinds
    facts.expect(
        "layer_kinds", isinstance(kinds, str) or are_kinds(kinds), "a string or several strings"
    )
    for name in COUNTS:
        setattr(model, name, facts.count(name))
    for name in LOSSES:
        setattr(model, name, facts.require(name, LOSS))
    model._alpha = float(facts.number("_alpha"))
    facts.expect("_alpha", model._alpha >= 0, "not negative")
    model.loss_curve_ = facts.require("loss_curve_", CURVE)
    model.loss_ = model.loss_curve_[-1] if model.loss_curve_ else np.nan
    scored = facts.get("validation_scores_") is not None  # early stopping
    model.validation_scores_ = facts.require("validation_scores_", CURVE) if scored else None
    if facts.get("selection_") is not None:  # set only if the layers were chosen by `fit`
        model.selection_ = facts.require("selection_", SELECTION)


def _expect_outputs(facts: Facts, network: Network, classes: Array, *, multilabel: bool) -> None:
    """Expect one output per class, or a single output for one or two classes."""
    m, last = network.n_outputs, network.activations[-1]
    counts = (1, 2) if m == 1 and not multilabel else (m,)
    facts.expect("the number of classes_", len(classes) in counts, " or ".join(map(str, counts)))
    known = ("logistic",) if multilabel or m == 1 else ("logistic", "softmax")
    facts.expect("the last activation", last in known, " or ".join(known))


def _restore_classifier(model: Any, facts: Facts) -> int:
    from sklearn.preprocessing import LabelBinarizer

    network = model.network_ = facts.require("network_", NETWORK)
    classes = model.classes_ = facts.require("classes_", LABELS)
    weights = model.class_weight
    facts.expect(
        "class_weight",
        not isinstance(weights, dict) or are_numbers(weights.values()),
        "None, 'balanced' or a dict of numbers",
    )
    multilabel = facts.flag("multilabel")
    _expect_outputs(facts, network, classes, multilabel=multilabel)
    _restore_records(model, facts)
    encoder = model._label_binarizer = LabelBinarizer()
    kind = "multiclass" if len(classes) > 2 else "binary"
    kind = "multilabel-indicator" if multilabel else kind
    vars(encoder).update(classes_=classes, sparse_input_=False, y_type_=kind)
    return network.n_inputs


def _restore_regressor(model: Any, facts: Facts) -> int:
    network = model.network_ = facts.require("network_", NETWORK)
    last = LINKS[model.loss]
    facts.expect("the last activation", network.activations[-1] == last, last)
    _restore_records(model, facts)
    return network.n_inputs


def _restore_logistic(model: Any, facts: Facts) -> int:
    network = model.network_ = facts.require("network_", NETWORK)
    classes = model.classes_ = facts.require("classes_", LABELS)
    facts.expect(
        "network_",
        len(network.layers) == 1 and isinstance(network.layers[0], Quadratic),
        "a network of one quadratic layer",
    )
    _expect_outputs(facts, network, classes, multilabel=False)
    facts.expect("the number of classes_", len(classes) > 1, "at least 2")
    model.n_iter_ = np.array([facts.count("n_iter_")], dtype=np.int32)
    return network.n_inputs


def _estimator(of: type[Any], **functions: Any) -> Known:
    parameters = tuple(name for name in of._get_param_names() if name not in RUNNING)
    return Known(f"quadric.estimators:{of.__name__}", parameters, **functions)


ESTIMATORS = {
    known.name: known
    for known in [
        _estimator(
            QuadraticClassifier,
            facts=lambda model: {
                **_records(model),
                "network_": model.network_,
                "classes_": model.classes_,
                "multilabel": bool(model._is_multilabel),
            },
            restore=_restore_classifier,
        ),
        _estimator(
            QuadraticRegressor,
            facts=lambda model: {**_records(model), "network_": model.network_},
            restore=_restore_regressor,
        ),
        _estimator(
            QuadraticLogisticRegression,
            facts=lambda model: {
                "network_": model.network_,
                "classes_": model.classes_,
                "n_iter_": int(model.n_iter_[0]),
            },
            restore=_restore_logistic,
        ),
    ]
}

CLASSES: dict[str, Known] = {**ESTIMATORS, **STEPS, SELECTED.name: SELECTED}

# Import all classes now, so that reading a file does not import anything.
for _known in CLASSES.values():
    _ = _known.of
