"""The objects that can be saved, estimators and steps, as a class, parameters and facts.

`describe` returns them for a fitted object, and `restore` makes the object again. A class name in a
file is looked up in a table.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import astuple
from functools import cache
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Quadratic
from quadric.errors import ModelFileError, expect
from quadric.estimators import (
    LINKS,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    SparseQuadraticClassifier,
    SparseQuadraticRegressor,
    Stability,
    are_kinds,
    hidden_sizes,
)
from quadric.lasso import Certificate
from quadric.models._facts import (
    ALPHA,
    CURVE,
    LABELS,
    LOSS,
    NETWORK,
    SELECTION,
    Facts,
    Known,
    Limits,
    are_numbers,
)
from quadric.models._operations import missing_after
from quadric.models._scalers_imputers_selectors import SELECTED
from quadric.models._supported_steps import (
    ONLY_STEPS,
    STEPS,
    UnknownStepError,
    expect_short_names,
    find,
    flat,
    operations,
)
from quadric.network import Network
from quadric.utils import first_applying

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

OUTPUTS = ("default", "pandas", "polars")

# how to read what a network with any number of layers has recorded in `fit`
RECORDS: dict[str, Callable[[Facts, str], Any]] = {
    "n_iter_": Facts.count,
    "t_": Facts.count,
    "best_loss_": lambda facts, name: facts.require(name, LOSS, optional=True),
    "best_validation_score_": lambda facts, name: facts.require(name, LOSS, optional=True),
    "_alpha": lambda facts, name: float(facts.require(name, ALPHA)),
    "loss_curve_": lambda facts, name: facts.require(name, CURVE),
    "validation_scores_": lambda facts, name: facts.require(name, CURVE, optional=True),
    "selection_": lambda facts, name: facts.require(name, SELECTION, optional=True),
}


def _records(model: Any) -> dict[str, Any]:
    return {name: vars(model)[name] for name in RECORDS if name in vars(model)}


def _restore_records(model: Any, facts: Facts) -> None:
    hidden_sizes(model)  # raises ValueError for invalid sizes
    kinds = model.layer_kinds
    facts.expect(
        "layer_kinds", isinstance(kinds, str) or are_kinds(kinds), "a string or several strings"
    )
    records = {name: read(facts, name) for name, read in RECORDS.items()}
    if records["selection_"] is None:  # `fit` did not choose the layers
        del records["selection_"]
    curve = records["loss_curve_"]
    vars(model).update(records, loss_=curve[-1] if curve else np.nan)


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
    kind = first_applying(
        {"multilabel-indicator": multilabel, "multiclass": len(classes) > 2, "binary": True}
    )
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


def _sparse_facts(model: Any) -> dict[str, Any]:
    return {
        "network_": model.network_,
        "classes_": getattr(model, "classes_", None),
        "terms_": _pairs(model.terms_),
        **{name: vars(model)[name] for name in ("coefficients_", "center_", "scale_", "alpha_")},
        "certificate_": np.array(astuple(model.certificate_), dtype=float),
        **_stability_facts(getattr(model, "stability_", None)),
    }


def _pairs(terms: list[tuple[int, ...]]) -> Array:
    """Terms as pairs of inputs; -1 is the second one of a linear term."""
    return np.array([(*one, -1)[:2] for one in terms], np.int64).reshape(-1, 2)


def _stability_facts(known: Stability | None) -> dict[str, Any]:
    if known is None:
        return {"stable_terms": None, "frequencies": None, "stability": None}
    rest = [known.threshold, known.expected_false, known.n_candidates]
    return {
        "stable_terms": _pairs(known.terms),
        "frequencies": known.frequencies,
        "stability": np.array(rest, dtype=float),
    }


def _restore_stability(facts: Facts, n: int) -> Stability | None:
    if all(facts.get(name) is None for name in ("stable_terms", "frequencies", "stability")):
        return None
    terms = _terms_of(facts, "stable_terms", n)
    frequencies = facts.vector("frequencies", len(terms), least=0)
    facts.expect("frequencies", (frequencies <= 1).all(), "at most 1")
    threshold, false, count = facts.vector("stability", 3, least=0).tolist()
    return Stability(terms, frequencies, threshold, false, int(count))


def _terms_of(facts: Facts, name: str, n: int) -> list[tuple[int, ...]]:
    pairs = facts.array(name, 2, "iu")
    valid = pairs.shape[1] == 2 and ((pairs >= [0, -1]) & (pairs < n)).all()
    facts.expect(name, valid, f"pairs of indices below {n}")
    return [(i,) if j < 0 else (i, j) for i, j in pairs.tolist()]


def _restore_sparse(model: Any, facts: Facts) -> int:
    network = model.network_ = facts.require("network_", NETWORK)
    facts.expect(
        "network_",
        len(network.layers) == 1 and isinstance(network.layers[0], Quadratic),
        "a network of one quadratic layer",
    )
    n, m = network.n_inputs, network.n_outputs
    if isinstance(model, SparseQuadraticClassifier):
        model.classes_ = facts.require("classes_", LABELS)
        _expect_outputs(facts, network, model.classes_, multilabel=False)
        facts.expect("the number of classes_", len(model.classes_) > 1, "at least 2")
    else:
        linear = m == 1 and list(network.activations) == ["identity"]
        facts.expect("the last activation", linear, "identity")
    model.center_, model.scale_ = facts.vector("center_", n), facts.vector("scale_", n, least=0)
    facts.expect("scale_", model.scale_.all(), "positive")
    model.alpha_ = float(facts.require("alpha_", ALPHA))
    model.terms_, values = _terms_of(facts, "terms_", n), facts.array("coefficients_", 2)
    facts.expect(
        "coefficients_",
        values.shape == (len(model.terms_), m) and np.isfinite(values).all(),
        f"finite numbers in {len(model.terms_)} rows and {m} columns",
    )
    model.coefficients_ = values
    if known := _restore_stability(facts, n):
        model.stability_ = known
    kkt, gap, objective, count, passes = facts.vector("certificate_", 5).tolist()
    model.certificate_ = Certificate(kkt, gap, objective, int(count), int(passes))
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
        _estimator(SparseQuadraticClassifier, facts=_sparse_facts, restore=_restore_sparse),
        _estimator(SparseQuadraticRegressor, facts=_sparse_facts, restore=_restore_sparse),
    ]
}


@cache
def classes() -> dict[str, Known]:
    """All classes that a file may name, by name.

    All are imported at once, so that the content of a file does not cause an import.
    """
    known = {**ESTIMATORS, **STEPS, SELECTED.name: SELECTED}
    for entry in known.values():
        _ = entry.of
    return known


# ------------------------------------------------------------------------------ describe


def is_saved_estimator(model: Any) -> bool:
    """Whether the model is one of this library's estimators, but not of a derived class."""
    return type(model) in [known.of for known in ESTIMATORS.values()]


def describe(model: Any, *, last: Any) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """Describe a step, or the estimator `last` at the end of a model.

    Raises ModelFileError if a file cannot store it.

    Returns
    -------
    name : str
        The name of the class.
    parameters : dict
        The constructor parameters that define the object.
    facts : dict or None
        The results of `fit` that cannot be computed from the rest; None if it is not fitted.
    """
    if model is last:
        known = ESTIMATORS[type(model).__name__]
    else:
        try:
            known = find(model)
        except UnknownStepError as error:
            raise ModelFileError(
                f"{error.reason}. Apply this step to the data beforehand, and save the rest."
            ) from None
    names = known.of._get_param_names() if isinstance(model, known.of) else ()
    given = {name: getattr(model, name) for name in names}
    _expect_defaults(known, given)
    _expect_no_additions(model)
    parameters = {name: value for name, value in given.items() if name in known.parameters}
    # a ColumnTransformer does not fit a step without columns
    fitted = hasattr(model, "n_features_in_") or "network_" in vars(model)
    if not fitted and known.name not in ONLY_STEPS:
        return known.name, parameters, None
    facts = {
        "feature_names_in_": vars(model).get("feature_names_in_"),
        "output": vars(model).get("_sklearn_output_config", {}).get("transform"),
        **known.facts(model),
    }
    return known.name, parameters, {name: v for name, v in facts.items() if v is not None}


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


# ------------------------------------------------------------------------------- restore


def restore(
    name: Any, parameters: Mapping[str, Any], facts: Mapping[str, Any] | None, limits: Limits
) -> Any:
    """Make the object that `describe` described, with all its attributes checked or derived.

    Raises ModelFileError, or another error, if a value is not one that `fit` could have made.
    """
    expect(
        isinstance(name, str) and name in classes(),
        f"it names the class {name!r:.60}, which is not supported",
    )
    known = classes()[name]
    for parameter in parameters:
        expect(
            parameter in known.parameters, f"it gives {name} an unknown parameter {parameter!r:.60}"
        )
        expect(
            parameter in known.of._get_param_names(),
            f"it gives {name} the parameter {parameter!r:.60}, which the installed version of "
            "scikit-learn does not have",
        )
    expect(
        facts is not None or name not in (*ONLY_STEPS, *ESTIMATORS),
        f"the fitted attributes of {name} are missing",
    )
    model = known.of(**known.absent, **parameters)
    if hasattr(model, "_parameter_constraints"):  # FeatureUnion has none
        model._validate_params()
    if facts is not None:
        _restore_facts(known, model, Facts(name, facts, limits))
    return model


def _restore_facts(known: Known, model: Any, facts: Facts) -> None:
    n = known.restore(model, facts)
    facts.expect(
        "n_features_in_",
        facts.get("n_features_in_") in (None, n),
        f"{n}, as in its other attributes",
    )
    if not isinstance(getattr(type(model), "n_features_in_", None), property):
        model.n_features_in_ = n
        if (names := facts.feature_names(n)) is not None:
            model.feature_names_in_ = names
    if (output := facts.get("output")) is not None:
        facts.expect("output", output in OUTPUTS, f"one of {OUTPUTS}")
        # not with set_output, which would also change the inner steps
        model._sklearn_output_config = {"transform": output}
    expect(
        not facts.unasked,
        f"{known.name} has no fitted attribute {min(facts.unasked, default='')!r:.60}",
    )


def check_restored(model: Any, limits: Limits) -> None:
    """Expect a Network, or a quadric estimator by itself or at the end of a pipeline.

    `explain`, and `predict` with tables between the steps, build names within these limits.
    """
    *steps, last = (step for _, step in flat(model))
    is_network = type(model) is Network
    expect(is_network or is_saved_estimator(last), f"its last step is {type(last).__name__}")
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
