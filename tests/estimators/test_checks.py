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
HIDDEN = {"hidden_layer_sizes": (6,)}
CLASSIFIER = [
    {"loss": "cross_entropy"},
    {"loss": "binary_cross_entropy"},
    {"layer_kinds": "quadratic"},
]
SETTINGS = [
    *(
        QuadraticClassifier(**shape, **solver)
        for shape, solver in product(SHAPES, SOLVERS.values())
    ),
    *(
        QuadraticClassifier(**HIDDEN, **options, **solver)
        for options in CLASSIFIER
        for name, solver in SOLVERS.items()
        if name != "paper" or "loss" in options
    ),
    *(
        QuadraticClassifier(**HIDDEN, **options, **SOLVERS[name])
        for name, options in [
            ("lbfgs", {"dtype": "float32"}),
            ("adam", {"dtype": "float32"}),
            ("sgd", {"dtype": "float32"}),
            ("paper", {"dtype": "float64"}),
            ("lbfgs", {"init": "glorot"}),
            ("lbfgs", {"class_weight": "balanced"}),
            ("adam", {"class_weight": "balanced"}),
            ("sgd", {"class_weight": "balanced"}),
            ("lbfgs", {"class_weight": {0: 1, 1: 2}}),
            ("adam", {"class_weight": {0: 1, 1: 2}}),
            ("adam", {"batch_size": 20}),
            ("adam", {"early_stopping": True, "validation_fraction": 0.3}),
            ("sgd", {"learning_rate": "adaptive"}),
            ("sgd", {"learning_rate": "invscaling"}),
            ("sgd", {"nesterovs_momentum": False}),
        ]
    ),
    *(QuadraticRegressor(**shape, **solver) for shape, solver in product(SHAPES, SOLVERS.values())),
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
]

EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
PARTIAL_FIT = (
    "check_estimators_partial_fit_n_features",
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
)
FLOAT32, EARLY = {"dtype": "float32"}, {"early_stopping": True}
DICT = {"class_weight": {0: 1, 1: 2}}
# reason, parameters of the settings to which it applies, checks that fail there
FAILURES = [
    (
        "with one sample per batch, two steps are not one step of twice the length",
        [{"batch_size": 1}],
        EQUIVALENCE,
    ),
    ("repeated samples fill more batches than weighted ones", [{"batch_size": 20}], EQUIVALENCE),
    (
        "'invscaling' counts samples, as in MLPClassifier, and repeated ones count again",
        [{"learning_rate": "invscaling"}],
        EQUIVALENCE,
    ),
    (
        "the rate falls too fast for an accuracy of 0.83 (MLPClassifier: 0.54 for two classes)",
        [{"learning_rate": "invscaling"}],
        ("check_classifiers_train",),
    ),
    ("copies of one sample may be trained on and held out", [EARLY], EQUIVALENCE),
    (
        "sums in another order differ by the rounding of float32, and the check allows 1e-7",
        [FLOAT32 | {"solver": "adam"}, FLOAT32 | {"solver": "sgd", "momentum": 0.9}],
        EQUIVALENCE,
    ),
    ("it expects float64 predictions", [FLOAT32], ("check_regressor_multioutput",)),
    (
        "a probability is rounded to 1.0, and predict_log_proba is computed from the logits",
        [FLOAT32 | {"solver": "lbfgs"}],
        ("check_classifiers_train",),
    ),
    ("partial_fit has no held-out samples, as in MLPClassifier", [EARLY], PARTIAL_FIT),
    (
        "partial_fit cannot count classes in advance, as in SGDClassifier",
        [{"class_weight": "balanced", "solver": solver} for solver in ("adam", "sgd")],
        PARTIAL_FIT,
    ),
    (
        "y contains neither class of the dict, or only one: an error, as in LogisticRegression",
        [DICT],
        (
            "check_classifier_data_not_an_array",
            "check_classifiers_classes",
            "check_estimators_dtypes",
            "check_fit2d_1feature",
            "check_sample_weights_not_an_array",
            "check_sample_weights_not_overwritten",
            "check_sample_weights_pandas_series",
            "check_sample_weights_shape",
        ),
    ),
    (
        "one dict cannot weight several labels: an error, as in RandomForestClassifier",
        [DICT],
        (
            "check_classifiers_multilabel_output_format_decision_function",
            "check_classifiers_multilabel_output_format_predict",
            "check_classifiers_multilabel_output_format_predict_proba",
            "check_classifiers_multilabel_representation_invariance",
        ),
    ),
    (
        "its features are not scaled, and momentum makes the product of two factors oscillate",
        [{"layer_kinds": ["reduced"], "solver": "sgd", "momentum": 0.9}],
        ("check_class_weight_classifiers",),
    ),
]


def expected_failures(estimator):
    """Return the names of the checks that fail, with the reasons."""
    parameters = estimator.get_params()
    if isinstance(estimator, QuadraticLogisticRegression) and estimator.solver == "sgd":
        parameters["batch_size"] = 1
    return {
        check: reason
        for reason, settings, checks in FAILURES
        if any(setting.items() <= parameters.items() for setting in settings)
        for check in checks
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
@parametrize_with_checks(SETTINGS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_scikit_learns_estimator_checks_pass_with_other_parameters(estimator, check):
    check(estimator)
