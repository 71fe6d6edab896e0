"""scikit-learn's checks of an estimator, for many combinations of parameters."""

from itertools import product

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from quadric import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor

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
CLASSIFIER = [
    {"loss": "cross_entropy"},
    {"loss": "binary_cross_entropy"},
    {"dtype": "float64"},
    {"init": "glorot"},
    {"layer_kinds": "quadratic"},
]
SETTINGS = [
    *(
        QuadraticClassifier(**shape, **solver)
        for shape in SHAPES
        for name, solver in SOLVERS.items()
        # momentum makes the product of two factors oscillate on the data of one check
        if (shape["layer_kinds"], name) != (["reduced"], "sgd")
    ),
    *(
        QuadraticClassifier(**{"hidden_layer_sizes": (6,)} | options | solver)
        for options in CLASSIFIER
        for name, solver in SOLVERS.items()
        if name != "paper" or "loss" in options or "dtype" in options
    ),
    QuadraticClassifier(hidden_layer_sizes=(6,), class_weight="balanced", **SOLVERS["lbfgs"]),
    QuadraticClassifier(hidden_layer_sizes=(6,), nesterovs_momentum=False, **SOLVERS["sgd"]),
    *(
        QuadraticRegressor(**shape, **solver)
        for shape in SHAPES
        if shape["layer_kinds"] != ["reduced"]  # a product of two factors has no mean of its own
        for solver in SOLVERS.values()
    ),
    *(
        QuadraticRegressor(hidden_layer_sizes=(), dtype=dtype, **solver)
        for dtype in ("float32", "float64")
        for name, solver in SOLVERS.items()
        # the checks compare to 1e-7, which sums of float32 in another order do not allow
        if dtype == "float64" or name not in ("adam", "sgd")
    ),
    QuadraticLogisticRegression(loss="one-vs-rest", C=0.5),
    QuadraticLogisticRegression(penalty=None, tol=1e-2),
    QuadraticLogisticRegression(fit_intercept=False),
    QuadraticLogisticRegression(class_weight="balanced"),
    QuadraticLogisticRegression(warm_start=True),
    QuadraticLogisticRegression(solver="sgd", max_iter=200),
    QuadraticLogisticRegression(solver="sgd", loss="one-vs-rest", max_iter=200),
]


def excused(estimator):
    """With one sample per batch, a repeated sample means two steps and a weight one longer step."""
    one_at_a_time = estimator.solver == "sgd" and getattr(estimator, "batch_size", 1) == 1
    excuses = {}
    if getattr(estimator, "dtype", None) == "float32":
        excuses["check_regressor_multioutput"] = "it expects float64 predictions"
    if not one_at_a_time:
        return excuses
    reason = "batches of one sample: two steps are not one step of twice the length"
    return excuses | {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@pytest.mark.filterwarnings("ignore")  # the checks train on badly scaled data
@parametrize_with_checks([QuadraticLogisticRegression()])
def test_scikit_learns_estimator_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([QuadraticClassifier(), QuadraticRegressor()])
def test_scikit_learns_estimator_checks_pass_for_other_estimators(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.sample(40)
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(SETTINGS, expected_failed_checks=excused)
def test_scikit_learns_estimator_checks_pass_with_other_parameters(estimator, check):
    check(estimator)
