"""scikit-learn's checks of an estimator, for many combinations of parameters."""

from functools import cache
from itertools import product
from random import Random

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
    parametrize_with_checks,
)

from quadric import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    SparseQuadraticClassifier,
    SparseQuadraticRegressor,
)

SOLVERS = {
    "lbfgs": {"solver": "lbfgs", "alpha": 0.1},
    "adam": {"solver": "adam", "learning_rate_init": 0.02, "max_iter": 200},
    "sgd": {"solver": "sgd", "learning_rate_init": 0.02, "max_iter": 200},
    "paper": {
        "solver": "sgd",
        "batch_size": 1,
        "momentum": 0.0,
        "learning_rate_init": 0.01,
        "max_iter": 200,
    },
}
SHAPES = [
    {"hidden_layer_sizes": sizes, "layer_kinds": [*["linear"] * len(sizes), kind]}
    for sizes, kind in product([(), (6,)], ["linear", "quadratic", "reduced"])
]
# The product of two factors oscillates at a higher rate, because some features are not scaled.
SLOWER = {"learning_rate_init": 0.005}
BY_SHAPE = [
    shape | solver | (SLOWER if shape["layer_kinds"] == ["reduced"] and name == "sgd" else {})
    for shape, (name, solver) in product(SHAPES, SOLVERS.items())
]
LABELS = (*range(-1, 10), "one", "two", "three")  # a dict must have the classes of all checks
WEIGHTS = {label: 1 + index % 2 for index, label in enumerate(LABELS)}
HIDDEN = {"hidden_layer_sizes": (6,)}
CLASSIFIER = [
    {"loss": "cross_entropy"},
    {"loss": "binary_cross_entropy"},
    {"layer_kinds": "quadratic"},
]
SETTINGS = [
    *(QuadraticClassifier(**options) for options in BY_SHAPE),
    *(
        QuadraticClassifier(**HIDDEN, **options, **solver)
        for options in CLASSIFIER
        for name, solver in SOLVERS.items()
        if name != "paper" or "loss" in options
    ),
    *(
        QuadraticClassifier(**HIDDEN | SOLVERS[name] | options)
        for name, options in [
            # With a smaller penalty, probabilities are rounded to 1.0 in float32. A check compares
            # their logarithms with `predict_log_proba`, which is more precise.
            ("lbfgs", {"dtype": "float32", "alpha": 1.0}),
            ("adam", {"dtype": "float32"}),
            ("sgd", {"dtype": "float32"}),
            ("paper", {"dtype": "float64"}),
            ("lbfgs", {"init": "glorot"}),
            ("lbfgs", {"class_weight": "balanced"}),
            ("adam", {"class_weight": "balanced"}),
            ("sgd", {"class_weight": "balanced"}),
            ("lbfgs", {"class_weight": WEIGHTS}),
            ("adam", {"class_weight": WEIGHTS}),
            # Some checks train on several batches. The samples of the weight equivalence checks
            # must fit into one: weighted samples fill other batches than repeated ones.
            ("adam", {"batch_size": 100}),
            # With fewer held-out samples, the score is 1.0 before the class weights have an effect.
            ("adam", {"early_stopping": True, "validation_fraction": 0.5}),
            ("sgd", {"learning_rate": "adaptive"}),
            ("sgd", {"learning_rate": "invscaling", "learning_rate_init": 0.1}),
            ("sgd", {"nesterovs_momentum": False}),
        ]
    ),
    *(QuadraticRegressor(**options) for options in BY_SHAPE),
    *(
        QuadraticRegressor(hidden_layer_sizes=(), dtype=dtype, **SOLVERS[name])
        for dtype, name in [*product(["float32"], SOLVERS), ("float64", "paper")]
    ),
    QuadraticRegressor(**HIDDEN, early_stopping=True, validation_fraction=0.3, **SOLVERS["adam"]),
    QuadraticLogisticRegression(loss="one-vs-rest", C=0.5),
    QuadraticLogisticRegression(penalty=None, tol=1e-2),
    QuadraticLogisticRegression(fit_intercept=False),
    QuadraticLogisticRegression(class_weight="balanced"),
    QuadraticLogisticRegression(warm_start=True),
    QuadraticLogisticRegression(solver="sgd", max_iter=200),
    QuadraticLogisticRegression(solver="sgd", loss="one-vs-rest", max_iter=200),
    *(
        of(0.01, hierarchy=hierarchy)
        for of in (SparseQuadraticClassifier, SparseQuadraticRegressor)
        for hierarchy in ("none", "strong")
    ),
    SparseQuadraticClassifier(hierarchy="strong"),
    SparseQuadraticClassifier(class_weight="balanced"),
    SparseQuadraticRegressor(hierarchy="strong"),
]

EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SEED = "test_scikit_learns_estimator_checks_pass_with_other_parameters"
IMPOSSIBLE = "with one sample per batch, two steps are not one step of twice the length"


def expected_failures(estimator):
    """Return the names of the checks that fail, with the reasons."""
    batch_size = estimator.get_params().get("batch_size")
    if isinstance(estimator, QuadraticLogisticRegression) and estimator.solver == "sgd":
        batch_size = 1
    return dict.fromkeys(EQUIVALENCE, IMPOSSIBLE) if batch_size == 1 else {}


@pytest.mark.filterwarnings("ignore")  # the checks train on badly scaled data
@parametrize_with_checks([QuadraticLogisticRegression()])
def test_scikit_learns_estimator_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        QuadraticClassifier(),
        QuadraticRegressor(),
        SparseQuadraticClassifier(),
        SparseQuadraticRegressor(),
    ]
)
def test_scikit_learns_estimator_checks_pass_for_other_estimators(estimator, check):
    check(estimator)


# The 5,654 combinations of settings and checks are not separate tests, because collecting them
# would take longer than running the fast tests of this package.


@cache
def combinations():
    """All pairs of an estimator and a check of it."""
    return [pair for setting in SETTINGS for pair in estimator_checks_generator(setting)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(40))
def test_scikit_learns_estimator_checks_pass_with_other_parameters(number):
    estimator, check = Random(SEED).sample(combinations(), 40)[number]
    name = getattr(check.func, "func", check.func).__name__
    if name in expected_failures(estimator):
        with pytest.raises(AssertionError):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_all_estimator_checks_pass_with_other_parameters(number):
    estimator = SETTINGS[number]
    expected = expected_failures(estimator)
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    statuses = {(each["check_name"], each["status"]): each["exception"] for each in results}
    failures = {name: error for (name, status), error in statuses.items() if status == "failed"}
    assert not failures, estimator
    assert {name for name, status in statuses if status == "xfail"} == set(expected), estimator
