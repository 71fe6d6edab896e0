"""The classes that a model file may name: the steps of `quadric.pipelines`, and the estimators.

A name in a file is looked up here and nowhere else; nothing is imported because a file says so.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Quadratic
from quadric.estimators import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor
from quadric.estimators._defaults import hidden_sizes
from quadric.network import Network
from quadric.pipelines._known_steps import Facts, Known, attributes
from quadric.pipelines._selectors import SELECTED
from quadric.pipelines._table import STEPS

# Parameters of any class that say how it runs, not what it is: never taken from a file.
RUNNING = frozenset(
    ["copy", "force_int_remainder_cols", "inv_kw_args", "kw_args", "memory", "n_jobs",
     "transform_input", "verbose"]
)  # fmt: skip

RECORDS = ("n_iter_", "t_", "loss_curve_", "best_loss_", "validation_scores_",
           "best_validation_score_", "_alpha")  # fmt: skip


def _records(model: Any) -> dict[str, Any]:
    return {name: vars(model)[name] for name in RECORDS if name in vars(model)}


def _network(facts: Facts) -> Network:
    network = facts.get("network_")
    facts.expect("network_", type(network) is Network, "a network")
    return network


def _restore_records(model: Any, facts: Facts) -> None:
    hidden_sizes(model)  # raises ValueError unless they are sizes
    for name in ("n_iter_", "t_"):
        setattr(model, name, facts.count(name))
    for name in ("loss_curve_", "validation_scores_"):
        setattr(model, name, _curve(facts, name))
    model.loss_ = model.loss_curve_[-1] if model.loss_curve_ else np.nan
    for name in ("best_loss_", "best_validation_score_", "_alpha"):
        value = facts.get(name)
        facts.expect(name, value is None or isinstance(value, (float, np.floating)), "a number")
        setattr(model, name, value)
    facts.expect(
        "_alpha", model._alpha is None or 0 <= model._alpha < np.inf, "finite and not negative"
    )


def _curve(facts: Facts, name: str) -> list[float] | None:
    values = facts.get(name)
    if values is None and name == "validation_scores_":
        return None
    right = isinstance(values, list) and all(type(value) is float for value in values)
    facts.expect(name, right, "a list of numbers")
    return values


def _classes(facts: Facts) -> Array:
    classes = facts.get("classes_")
    right = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "OUbiuf"
    facts.expect("classes_", right and classes.size, "an array of labels")
    plain = (str, bool, int, float, np.generic)
    if classes.dtype == object:
        facts.expect("classes_", all(isinstance(c, plain) for c in classes), "strings or numbers")
    elif classes.dtype.kind == "f":
        facts.expect("classes_", np.isfinite(classes).all(), "finite")
    facts.expect("classes_", all(a < b for a, b in pairwise(classes)), "in increasing order")
    return classes


def _expect_weights(facts: Facts, weights: Any) -> None:
    plain = (int, float, np.integer, np.floating)
    right = not isinstance(weights, dict) or all(isinstance(w, plain) for w in weights.values())
    facts.expect("class_weight", right, "None, 'balanced' or a dict of numbers")


def _expect_classes(facts: Facts, network: Network, classes: Array, *, multilabel: bool) -> None:
    """One output for two classes (or one), else one for each."""
    m, last = network.n_outputs, network.activations[-1]
    counts = (1, 2) if m == 1 and not multilabel else (m,)
    facts.expect("the number of classes_", len(classes) in counts, " or ".join(map(str, counts)))
    known = ("logistic",) if multilabel or m == 1 else ("logistic", "softmax")
    facts.expect("the last activation", last in known, " or ".join(known))


def _classifier_facts(model: Any) -> dict[str, Any]:
    return {
        **_records(model),
        "network_": model.network_,
        "classes_": model.classes_,
        "multilabel": bool(model._is_multilabel),
    }


def _restore_classifier(model: Any, facts: Facts) -> int:
    from sklearn.preprocessing import LabelBinarizer

    model.network_, model.classes_ = _network(facts), _classes(facts)
    _expect_weights(facts, model.class_weight)
    multilabel = facts.flag("multilabel")
    _expect_classes(facts, model.network_, model.classes_, multilabel=multilabel)
    _restore_records(model, facts)
    encoder = LabelBinarizer()
    encoder.classes_, encoder.sparse_input_ = model.classes_, False
    encoder.y_type_ = "multiclass" if len(model.classes_) > 2 else "binary"
    if multilabel:
        encoder.y_type_ = "multilabel-indicator"
    model._label_binarizer = encoder
    return model.network_.n_inputs


def _restore_regressor(model: Any, facts: Facts) -> int:
    model.network_ = _network(facts)
    last = model.network_.activations[-1]
    facts.expect("the last activation", last == "identity", "identity")
    _restore_records(model, facts)
    return model.network_.n_inputs


def _restore_logistic(model: Any, facts: Facts) -> int:
    network, classes = _network(facts), _classes(facts)
    one = len(network.layers) == 1 and isinstance(network.layers[0], Quadratic)
    facts.expect("network_", one, "a network of one quadratic layer")
    _expect_classes(facts, network, classes, multilabel=False)
    facts.expect("the number of classes_", len(classes) > 1, "at least 2")
    model.network_, model.classes_, model.n_iter_ = network, classes, facts.count("n_iter_")
    model.coef_, model.intercept_ = network.layers[0].W, network.layers[0].b
    return network.n_inputs


def _parameters(of: type[Any]) -> tuple[str, ...]:
    return tuple(name for name in of._get_param_names() if name not in RUNNING)


MODULE = "quadric.estimators"
ESTIMATORS = {
    "QuadraticClassifier": Known(
        MODULE, "QuadraticClassifier", _parameters(QuadraticClassifier),
        facts=_classifier_facts, restore=_restore_classifier,
    ),
    "QuadraticRegressor": Known(
        MODULE, "QuadraticRegressor", _parameters(QuadraticRegressor),
        facts=lambda model: {**_records(model), "network_": model.network_},
        restore=_restore_regressor,
    ),
    "QuadraticLogisticRegression": Known(
        MODULE, "QuadraticLogisticRegression", _parameters(QuadraticLogisticRegression),
        facts=attributes("network_", "classes_", "n_iter_"), restore=_restore_logistic,
    ),
}  # fmt: skip

CLASSES: dict[str, Known] = {**ESTIMATORS, **STEPS, SELECTED.name: SELECTED}

# Everything is imported here, so that reading a file imports nothing.
for _known in CLASSES.values():
    _ = _known.of
