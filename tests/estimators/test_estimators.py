"""The estimators: typical uses, and comparisons with scikit-learn."""

import copy
import inspect
import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import compute_sample_weight

import quadric
from quadric import (
    DivergenceError,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.datasets import clusters
from quadric.estimators._data import hold_out, with_class_weight
from quadric.training import Options, Samples

RNG = np.random.default_rng(0)
PAPER = {"solver": "sgd", "batch_size": 1, "momentum": 0.0}

# ---- a drop-in for MLPClassifier -----------------------------------------------------------


def test_every_parameter_and_attribute_of_mlp_exists():
    ours, theirs = QuadraticClassifier().get_params(), MLPClassifier().get_params()
    assert set(theirs) <= set(ours)
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    settings = {"hidden_layer_sizes": (5,), "max_iter": 20, "random_state": 0, "solver": "adam"}
    for options in (settings, settings | {"early_stopping": True}):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            mlp, mine = MLPClassifier(**options).fit(X, y), QuadraticClassifier(**options).fit(X, y)
        for name in vars(mlp):
            if name.endswith("_") and not name.startswith("_"):
                assert hasattr(mine, name), name
        assert [c.shape for c in mine.coefs_] == [c.shape for c in mlp.coefs_]
        assert [b.shape for b in mine.intercepts_] == [b.shape for b in mlp.intercepts_]
        assert mine.n_layers_ == mlp.n_layers_ == 3
        assert mine.out_activation_ == mlp.out_activation_ == "softmax"
        assert mine.t_ == mine.n_iter_ * (135 if options.get("early_stopping") else 150)
        assert len(mine.loss_curve_) == mine.n_iter_


@pytest.mark.skipif(
    "sample_weight" not in inspect.signature(MLPClassifier.fit).parameters,
    reason="MLPClassifier supports sample weights since scikit-learn 1.7",
)
def test_adam_matches_mlp_for_linear_layers():
    """From the same start, both take the same steps: alpha, batches, Adam and loss agree."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {
        "hidden_layer_sizes": (6,),
        "activation": "tanh",
        "alpha": 0.3,
        "batch_size": 50,
        "max_iter": 1,
        "shuffle": False,
        "random_state": 0,
        "warm_start": True,
        "solver": "adam",
    }
    weight = RNG.integers(1, 4, len(y)).astype(float)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        mine = QuadraticClassifier(layer_kinds="linear", **options).fit(X, y, weight)
        mlp = MLPClassifier(**options).fit(X, y, weight)
        for layer, W, b in zip(mine.network_.layers, mlp.coefs_, mlp.intercepts_, strict=True):
            W[...], b[...] = layer.W.T, layer.b
        mine.fit(X, y, weight)
        mlp.fit(X, y, weight)
    for mine_W, W in zip(mine.coefs_, mlp.coefs_, strict=True):
        np.testing.assert_allclose(mine_W, W, atol=1e-12)
    for mine_b, b in zip(mine.intercepts_, mlp.intercepts_, strict=True):
        np.testing.assert_allclose(mine_b, b, atol=1e-12)


# ---- kinds of targets ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["auto", "cross_entropy", "binary_cross_entropy"])
def test_binary_and_multiclass_probabilities(loss):
    for data in (load_iris, load_breast_cancer):
        X, y = data(return_X_y=True)
        names = np.array(["a", "b", "c"])[y]
        model = make_pipeline(
            StandardScaler(), QuadraticClassifier(hidden_layer_sizes=(), loss=loss, alpha=1.0)
        ).fit(X, names)
        p, log_p = model.predict_proba(X), model.predict_log_proba(X)
        n_classes = len(set(y))
        assert p.shape == (len(y), n_classes)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(np.log(p), log_p, atol=1e-9)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
        decision = model.decision_function(X)
        assert decision.shape == ((len(y),) if n_classes == 2 else (len(y), n_classes))
        assert model.score(X, names) > 0.96


def test_one_sigmoid_per_class_far_from_all_classes():
    """All sigmoids are tiny, but their normalized probabilities are finite."""
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier(hidden_layer_sizes=(), loss="binary_cross_entropy").fit(X, y)
    model.network_.layers[-1].b = [-2000.0, -2001.0, -2002.0]
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_multilabel_targets_are_learned_dense_or_sparse():
    X = RNG.normal(size=(300, 3))
    Y = np.stack([X[:, 0] * X[:, 1] > 0, (X**2).sum(axis=1) < 2], axis=1).astype(int)
    model = QuadraticClassifier(hidden_layer_sizes=(), alpha=0.1, random_state=0).fit(X, Y)
    assert model.predict(X).shape == model.predict_proba(X).shape == (300, 2)
    assert model.score(X, Y) > 0.95
    same = QuadraticClassifier(hidden_layer_sizes=(), alpha=0.1, random_state=0).fit(
        X, sparse.csr_matrix(Y)
    )
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="exclusive classes"):
        QuadraticClassifier(loss="cross_entropy").fit(X, Y)


@pytest.mark.parametrize("kinds", ["auto", "reduced"])
def test_multi_output_regression_in_any_unit(kinds):
    X = RNG.normal(size=(300, 3))
    Y = np.stack([1e4 + 300 * X[:, 0] * X[:, 1], 1e-3 * (X[:, 2] ** 2 - 1)], axis=1)
    model = QuadraticRegressor(hidden_layer_sizes=(), layer_kinds=kinds, alpha=0.1, random_state=0)
    if kinds == "reduced":
        Y = np.stack([300 * X[:, 0] * X[:, 1], 1e-3 * (X[:, 2] ** 2 - 1)], axis=1)
    model.fit(X, Y)
    assert model.predict(X).shape == (300, 2)
    assert model.score(X, Y) > 0.99
    np.testing.assert_array_equal(model.predict(X), model.network_.forward(X))


@pytest.mark.parametrize(
    "estimator", [QuadraticClassifier(random_state=0), QuadraticLogisticRegression()]
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_their_column_names(estimator, library):
    frames = pytest.importorskip(library)
    X, y = load_iris(return_X_y=True)
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = estimator.fit(frame, y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.predict(frame), clone(estimator).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        QuadraticClassifier(hidden_layer_sizes=(6,), alpha=1.0, random_state=0, max_iter=30),
        QuadraticClassifier(hidden_layer_sizes=(6,), solver="adam", random_state=0, max_iter=30),
        QuadraticClassifier(hidden_layer_sizes=(6,), **PAPER, random_state=0, max_iter=5),
        QuadraticLogisticRegression(tol=1e-8),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_equals_dense(estimator):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300, ::4] / 16, y[:300]
    dense = clone(estimator).fit(X, y).predict_proba(X)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        model = clone(estimator).fit(form(X), y)
        assert (model.predict_proba(form(X)).argmax(axis=1) == dense.argmax(axis=1)).mean() > 0.99


# ---- scikit-learn's tools ------------------------------------------------------------------


@pytest.mark.slow
def test_works_inside_scikit_learns_tools():
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), QuadraticClassifier((), alpha=1.0, random_state=0))
    assert cross_val_score(pipeline, X, y, n_jobs=2).mean() > 0.95
    search = GridSearchCV(pipeline, {"quadraticclassifier__alpha": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    calibrated = CalibratedClassifierCV(pipeline, cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.95
    importance = permutation_importance(pipeline.fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.shape == (13,)
    for again in (pickle.loads(pickle.dumps(pipeline)), copy.deepcopy(pipeline)):
        np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))
    assert clone(pipeline)[-1].get_params() == pipeline[-1].get_params()
    with pytest.raises(NotFittedError):
        clone(pipeline).predict(X)


def test_metadata_routing_of_sample_weight():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 2, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        model = QuadraticClassifier((), alpha=1.0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    assert set(pipeline.predict(X)) == {0, 1}  # class 2 had no weight


def test_a_warm_start_continues_and_early_stopping_ends_a_fit():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = QuadraticClassifier((6,), solver="adam", max_iter=5, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X, y).loss_
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).loss_ < first
    with pytest.raises(ValueError, match="warm_start can only be used where `y` has the same"):
        model.fit(X, np.where(y == 2, 1, y))
    model = QuadraticClassifier(
        (20,), early_stopping=True, random_state=0, learning_rate_init=0.05, max_iter=500
    ).fit(X, y)
    assert model.n_iter_ < 500
    assert len(model.validation_scores_) == model.n_iter_
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert model.best_loss_ is None


def test_learning_rate_schedules_follow_their_formulas():
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    rates = {}
    for schedule in ("constant", "invscaling", "adaptive"):
        model = QuadraticRegressor(
            (),
            solver="sgd",
            learning_rate=schedule,
            learning_rate_init=0.01,
            tol=0.1,
            n_iter_no_change=2,
            max_iter=60,
            random_state=0,
            batch_size=100,
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(X, y)
        options = Options(learning_rate=0.01, schedule=schedule)
        rates[schedule] = model._state.next_rate(options)
        if schedule == "invscaling":
            assert rates[schedule] == pytest.approx(0.01 / (model.t_ + 1) ** 0.5)
    assert rates["constant"] == 0.01
    assert rates["adaptive"] < 0.01


def test_verbose_writes_lines_to_a_file(capfd):
    X, y = load_iris(return_X_y=True)
    for options in ({"solver": "adam", "tol": 10.0, "n_iter_no_change": 2}, {}):
        model = QuadraticClassifier(verbose=True, **options).fit(X, y)
        captured = capfd.readouterr()
        assert captured.out == ""
        lines = captured.err.splitlines()
        assert lines[0].startswith("QuadraticClassifier: epoch 1 of")
        assert lines[-1].endswith(f"loss {model.loss_:.4g}")
        assert len(lines) == len(model.loss_curve_)
    options = {"max_iter": 1000, "n_iter_no_change": 1000, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        QuadraticClassifier((2,), solver="adam", verbose=True, **options).fit(X, y)
    lines = capfd.readouterr().err.splitlines()
    assert 100 <= len(lines) <= 102
    assert "epoch 1000 of 1000" in lines[-1]


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer", "ignore:Training diverged")
@pytest.mark.parametrize(("solver", "tol"), [("lbfgs", 0.1), ("sgd", 1e9)])
def test_logistic_regression_names_itself(solver, tol, capfd):
    """With 'sgd', a QuadraticClassifier does the work, but the user does not see it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) * [1, 1e5]
    options = {"max_iter": 5, "tol": tol, "random_state": 0}
    model = QuadraticLogisticRegression(solver=solver, verbose=True, **options)
    with pytest.warns(UserWarning, match="standard deviations") as caught:
        model.fit(X, np.arange(30) % 2)
    scales = [str(one.message) for one in caught if "standard deviations" in str(one.message)]
    assert len(scales) == 1
    assert "make_pipeline(StandardScaler(), QuadraticLogisticRegression())" in scales[0]
    lines = capfd.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("QuadraticLogisticRegression: ") for line in lines)


def test_verbose_shows_a_bar_on_a_terminal_and_works_without_rich(capfd, monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for there in (True, False):
        if not there:
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        QuadraticClassifier((), solver="adam", verbose=True, tol=10.0).fit(X, y)
        shown = capfd.readouterr().err
        assert "loss" in shown
        assert ("epoch 1 of 100" in shown) is not there


# ---- weights and chunks --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        QuadraticLogisticRegression(tol=1e-9),
        QuadraticLogisticRegression(loss="one-vs-rest", tol=1e-9, max_iter=5000),
        QuadraticClassifier(hidden_layer_sizes=(), alpha=1.0, random_state=0),
        QuadraticClassifier(random_state=0),
    ],
)
def test_integer_weights_equal_repetition(estimator):
    X, y = load_iris(return_X_y=True)
    weights = RNG.integers(0, 4, len(y))
    order = RNG.permutation(np.repeat(np.arange(len(y)), weights))
    weighted = clone(estimator).fit(X, y, sample_weight=weights).predict_proba(X)
    repeated = clone(estimator).fit(X[order], y[order]).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


@pytest.mark.parametrize("kinds", ["linear", "quadratic", "reduced"])
def test_weighted_loss_and_gradient_equal_repetition(kinds):
    from tests.support.networks import make_network, targets

    net = make_network((kinds, kinds), "tanh", "softmax")
    X, Y = RNG.normal(size=(20, 3)), targets("cross_entropy", 20, 2, RNG)
    weights = RNG.integers(0, 4, 20)
    repeated = np.repeat(np.arange(20), weights)
    value, grads = net.gradients(X, Y, sample_weight=weights)
    other, others = net.gradients(X[repeated], Y[repeated])
    factor = weights.mean()  # one divides by 20, the other by the sum of the weights
    assert value == pytest.approx(factor * other, rel=1e-12)
    for one, two in zip(grads, others, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_allclose(array, factor * two.arrays()[name], atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "adam", "hidden_layer_sizes": (7,)},
        {"solver": "sgd", "layer_kinds": "reduced", "hidden_layer_sizes": (4,)},
        {"solver": "sgd", "momentum": 0.0, "batch_size": 1, "alpha": 0.1},
    ],
)
@pytest.mark.parametrize("model", [QuadraticClassifier, QuadraticRegressor])
def test_partial_fit_over_chunks_equals_fit(model, options):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(150)
    X, y = StandardScaler().fit_transform(X)[order], y[order]
    settings = {"shuffle": False, "max_iter": 1, "batch_size": 10, "random_state": 3} | options
    whole, chunks = model(**settings), model(**settings)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        whole.fit(X, y)
    first = {"classes": np.unique(y)} if model is QuadraticClassifier else {}
    for start, stop in ((0, 50), (50, 60), (60, 150)):
        chunks.partial_fit(X[start:stop], y[start:stop], **(first if start == 0 else {}))
    for one, other in zip(whole.network_.layers, chunks.network_.layers, strict=True):
        for name, array in one.arrays().items():
            assert np.array_equal(array, other.arrays()[name]), name
    # the state of the solver persists, also through pickle
    again = pickle.loads(pickle.dumps(chunks))
    chunks.partial_fit(X, y)
    again.partial_fit(X, y)
    assert np.array_equal(chunks.coefs_[0], again.coefs_[0])


def test_partial_fit_refuses_unsupported_options():
    X, y = load_iris(return_X_y=True)
    assert not hasattr(QuadraticClassifier(solver="lbfgs"), "partial_fit")
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        QuadraticClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="early_stopping"):
        QuadraticClassifier(early_stopping=True).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="does not support class_weight='balanced'"):
        QuadraticClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    for options in ({"early_stopping": True}, {"class_weight": "balanced"}, {"solver": "lbfgs"}):
        assert not hasattr(QuadraticClassifier(**options), "partial_fit")


def test_class_weights_apply_to_parts_of_the_classes():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((), solver="sgd", class_weight={2: 3.0}, random_state=0)
    weighted = clone(model).set_params(class_weight=None)
    for rows in (y < 2, y > 0):  # the first call lacks the class that has a weight
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        weight = np.where(y == 2, 3.0, 1.0)[rows]
        weighted.partial_fit(X[rows], y[rows], sample_weight=weight, classes=[0, 1, 2])
    assert np.array_equal(model.coefs_[0], weighted.coefs_[0])
    with pytest.raises(ValueError, match="a dict cannot weight several labels"):
        model.set_params(solver="lbfgs").fit(X, np.eye(3, dtype=int)[y])


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "adam", "dtype": "float32"},
        {"solver": "sgd", "learning_rate": "invscaling"},
        {"solver": "adam", "early_stopping": True},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_batch_of_weighted_samples_equals_repeated_ones(options):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    weight = np.arange(50) % 3
    repeated = np.repeat(np.arange(50), weight)
    one = QuadraticClassifier((4,), max_iter=20, random_state=0, **options)
    other = clone(one).fit(X[repeated], y[repeated])
    one.fit(X, y, sample_weight=weight)
    assert np.array_equal(one.coefs_[1], other.coefs_[1])
    assert one.loss_curve_ == other.loss_curve_
    assert one.t_ == other.t_
    if not one.early_stopping:
        assert one.t_ == one.n_iter_ * len(repeated)


def test_class_weights_shift_the_prior():
    X = RNG.normal(size=(400, 2))
    y = (RNG.random(400) < 0.1).astype(int)  # only the prior can be learned
    plain = QuadraticClassifier((), alpha=1.0).fit(X, y).predict_proba(X)[:, 1].mean()
    for weights in ("balanced", {0: 1.0, 1: (y == 0).sum() / (y == 1).sum()}):
        balanced = QuadraticClassifier((), alpha=1.0, class_weight=weights).fit(X, y)
        assert balanced.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)
        logistic = QuadraticLogisticRegression(class_weight=weights).fit(X, y)
        assert logistic.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)
    assert plain < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        QuadraticClassifier((), alpha=1.0, tol=1e-9, random_state=0),
        QuadraticLogisticRegression(tol=1e-9),
    ],
)
def test_balanced_classes_count_samples_by_their_weight(model):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weights = np.random.default_rng(0).integers(0, 4, len(y)) * (1 + (y == 1))
    repeated = np.repeat(np.arange(len(y)), weights)
    model = model.set_params(class_weight="balanced")
    weighted = clone(model).fit(X, y, sample_weight=weights).predict_proba(X)
    wanted = clone(model).fit(X[repeated], y[repeated]).predict_proba(X)
    np.testing.assert_allclose(weighted, wanted, atol=1e-6)


def test_balanced_labels_match_scikit_learn_without_weights():
    rng = np.random.default_rng(0)
    for y in (rng.integers(0, 3, 50), (rng.random((50, 2)) < [0.2, 0.7]).astype(int)):
        balanced = with_class_weight("balanced", np.unique(y), y, None)
        np.testing.assert_allclose(balanced, compute_sample_weight("balanced", y))
        if y.ndim == 2:
            same = with_class_weight("balanced", np.unique(y), sparse.csr_array(y), None)
            np.testing.assert_array_equal(same, balanced)
    weight = np.array([1.0, 1.0, 0.0])  # a class without weight is not counted
    y = np.array([0, 0, 1])
    assert with_class_weight("balanced", np.unique(y), y, weight).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_early_stopping_with_tiny_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    rows = np.r_[0:50, 50:51, 100:142, 143:150]  # one versicolor, and no sample twice
    model = QuadraticClassifier((), early_stopping=True, random_state=0, max_iter=3)
    for seed in range(5):
        model.set_params(random_state=seed).fit(X[rows], names[y[rows]])
        assert model.t_ == 3 * 90  # ten are held out, never the only one of a class
    few = np.arange(0, 150, 8)[:20]
    assert set(model.fit(X[few], names[y[few]]).classes_) == set(names)
    assert len(model.validation_scores_) == 3
    model.set_params(validation_fraction=0.2)
    assert model.fit(X[::15], np.arange(10)).n_iter_ == 3  # every class has one member
    with pytest.raises(ValueError, match="The validation set is too small"):
        model.fit(X[::50], y[::50])


# ---- quadratic logistic regression ---------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("data", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_equals_polynomial_features_and_logistic_regression(data, C):
    X, y = data(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = QuadraticLogisticRegression(C=C, tol=1e-10, max_iter=20000).fit(X, y)
    theirs = make_pipeline(
        PolynomialFeatures(2, include_bias=False),
        LogisticRegression(C=C, tol=1e-10, solver="newton-cholesky"),
    ).fit(X, y)
    difference = np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max()
    assert difference < 1e-6
    # the coefficients themselves: w, then q_ii and 2 q_ij in the order of the triangle
    n = X.shape[1]
    rows, columns = np.triu_indices(n)
    monomials = ours.Q_[:, rows, columns] * np.where(rows == columns, 1, 2)
    np.testing.assert_allclose(
        np.hstack([ours.w_, monomials]), theirs[-1].coef_, atol=1e-4 * max(1, C)
    )


def test_one_vs_rest_equals_binary_fits():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    together = QuadraticLogisticRegression(loss="one-vs-rest", tol=1e-9).fit(X, y)
    for k in range(3):
        alone = QuadraticLogisticRegression(tol=1e-9).fit(X, y == k)
        np.testing.assert_allclose(together.w_[k], alone.w_[0], atol=1e-4)
        np.testing.assert_allclose(
            together.decision_function(X)[:, k], alone.decision_function(X), atol=1e-3
        )


def test_a_warm_start_needs_fewer_iterations_and_keeps_b_at_zero():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = QuadraticLogisticRegression(fit_intercept=False, warm_start=True).fit(X, y)
    assert model.b_ == [0.0]
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first / 2


def test_sgd_learns_xor_with_one_neuron():
    from quadric.datasets import xor

    X, y = xor()
    model = QuadraticLogisticRegression(solver="sgd", C=1e6, learning_rate_init=0.1, random_state=0)
    assert (model.fit(X, y).predict(X) == y).all()
    assert model.Q_.shape == (1, 2, 2)
    assert model.Q_[0, 0, 1] < 0


@pytest.mark.slow
def test_wide_data_is_never_expanded():
    """784 features would have 308 504 columns; only Q and a few triangles are stored."""
    import tracemalloc

    X = RNG.random((200, 784)).astype(np.float32) * (RNG.random((200, 784)) < 0.2)
    y = RNG.integers(0, 2, 200)
    tracemalloc.start()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        QuadraticLogisticRegression(max_iter=3).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    expanded = 200 * (784 * 787 // 2) * 8
    assert peak < expanded / 2


# ---- memory, divergence, scale -------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        QuadraticClassifier((), solver="adam"),
        QuadraticClassifier(()),
        QuadraticRegressor(()),
        QuadraticLogisticRegression(),
    ],
)
@pytest.mark.filterwarnings("ignore:The features' standard deviations")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_hundred_thousand_features_are_refused_immediately(model):
    X = sparse.random(20, 100_000, density=1e-4, random_state=0, format="csr")
    with pytest.raises(MemoryError) as caught:
        model.fit(X, np.arange(20) % 2)
    message = str(caught.value)
    assert "layer 0 (quadratic, 100,000 inputs, 1 neurons)" in message
    assert "GB" in message or "TB" in message
    assert "'reduced'" in message
    assert "smaller layer in front" in message
    # the two alternatives that the error suggests
    QuadraticClassifier((), layer_kinds="reduced", solver="adam", max_iter=2, tol=1e9).fit(
        X, np.arange(20) % 2
    )
    if not isinstance(model, QuadraticLogisticRegression):
        smaller = clone(model).set_params(hidden_layer_sizes=(3,), max_iter=1)
        assert smaller.fit(X, np.arange(20) % 2).n_iter_ == 1


def test_the_memory_limit_can_be_set():
    X, y = load_digits(return_X_y=True)
    model = QuadraticClassifier((), solver="adam", max_iter=1, tol=1e9)
    try:
        quadric.set_config(max_memory="1 MB")
        QuadraticClassifier((3,), solver="adam", tol=1e9, n_iter_no_change=1).fit(X[:50], y[:50])
        wide = np.tile(X[:50], 10)
        with pytest.raises(MemoryError, match=r"the limit is 1\.0 MB"):
            model.fit(wide, y[:50])
        for bad in ("plenty", 0, "0 GB", "0.5 B", True):
            with pytest.raises(ValueError, match=f"max_memory must be .* Got {bad!r} instead"):
                quadric.set_config(max_memory=bad)
        assert quadric.get_config() == {"max_memory": 2**20}
    finally:
        quadric.set_config(max_memory=None)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("options", [{"solver": "sgd"}, PAPER])
def test_divergence_is_recovered_from_or_raised(options):
    rng = np.random.default_rng(3)
    X = 1000 * rng.normal(size=(100, 3))
    y = (X**2).sum(axis=1) / 1e6
    settings = options | {"hidden_layer_sizes": (), "max_iter": 20, "random_state": 0}
    settings["learning_rate_init"] = 1e-8 if options is PAPER else 1e-3
    with pytest.raises(DivergenceError) as caught:
        QuadraticRegressor(**settings, on_divergence="raise").fit(X, y)
    assert caught.value.learning_rate == settings["learning_rate_init"]
    with pytest.warns(ConvergenceWarning, match=r"diverged \d+ time.*learning rate lowered"):
        model = QuadraticRegressor(**settings).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model._state.schedule.damping < 1


def test_a_fit_that_cannot_recover_stops():
    X, y = np.full((10, 2), 1e300), np.arange(10) % 2
    X[::2] *= -1
    with pytest.raises(DivergenceError, match="not finite"):
        QuadraticLogisticRegression().fit(X, y)
    outcomes = set()
    for seed in range(4):
        for solver in ("sgd", "lbfgs"):
            model = QuadraticClassifier((), solver=solver, random_state=seed)
            try:
                model.fit(X, y)
            except DivergenceError:
                outcomes.add("an error")
            else:  # Q starts at zero; the linear part alone may separate these classes
                assert np.isfinite(model.predict_proba(X)).all()
                assert model.score(X, y) == 1.0
    assert outcomes == {"an error"}


@pytest.mark.parametrize("solver", ["auto", "adam"])
def test_a_network_whose_hidden_neurons_are_all_off_causes_a_warning(solver):
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = QuadraticRegressor((3,), activation="relu", solver=solver, warm_start=True, alpha=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, X[:, 0])
    model.network_.layers[0].b[...] = -1e6
    with pytest.warns(ConvergenceWarning, match="are off .*random_state"):
        model.fit(X, X[:, 0])
    assert np.ptp(model.predict(X)) == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_suggests_scaling():
    X, y = load_wine(return_X_y=True)
    X[:, 0] *= 1e5
    for model in (QuadraticClassifier(()), QuadraticLogisticRegression(max_iter=5)):
        with pytest.warns(UserWarning, match=r"StandardScaler\(\), Quadratic"):
            model.fit(X, y)
    with warnings.catch_warnings(action="error"):
        QuadraticClassifier(()).fit(StandardScaler().fit_transform(X), y)


# ---- odd data ------------------------------------------------------------------------------


def test_a_single_class_is_predicted_or_refused():
    X, y = RNG.normal(size=(10, 2)), np.full(10, "only")
    model = QuadraticClassifier(()).fit(X, y)
    assert (model.predict(X) == "only").all()
    assert model.predict_proba(X).tolist() == [[1.0]] * 10
    with pytest.raises(ValueError, match="at least 2 classes"):
        QuadraticLogisticRegression().fit(X, y)


def test_one_sample_or_constant_features_can_be_fitted():
    model = QuadraticRegressor().fit([[1.0, 2.0]], [3.0])
    assert model.predict([[1.0, 2.0]]) == pytest.approx([3.0], abs=1e-3)
    X = np.hstack([RNG.normal(size=(50, 2)), np.full((50, 1), 7.0)])
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    assert QuadraticClassifier((), alpha=0.1).fit(X, y).score(X, y) > 0.9
    assert QuadraticLogisticRegression(C=10).fit(X, y).score(X, y) > 0.9


def test_denormal_features_give_finite_probabilities():
    X = 1e-310 * RNG.normal(size=(40, 2))
    y = np.arange(40) % 2
    model = QuadraticClassifier((), alpha=1.0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.slow
def test_read_only_mapped_and_fortran_arrays_give_the_same_fit(tmp_path):
    X, y = load_iris(return_X_y=True)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    read_only = X.copy()
    read_only.flags.writeable = False
    for options in ({}, {"solver": "adam", "tol": 1e9, "n_iter_no_change": 1}):
        wanted = QuadraticClassifier(random_state=0, **options).fit(X, y).predict_proba(X)
        for form in (mapped, read_only, np.asfortranarray(X), X[:, ::-1][:, ::-1]):
            model = QuadraticClassifier(random_state=0, **options).fit(form, y)
            np.testing.assert_array_equal(model.predict_proba(form), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_dtype_is_that_of_the_parameter_or_the_data(dtype):
    X, y = load_iris(return_X_y=True)
    for given in (np.float32, np.float64):
        model = QuadraticClassifier((4,), dtype=dtype).fit(X.astype(given), y)
        assert model.network_.dtype == np.dtype(dtype or given)
        for new in (np.float32, np.float64):
            wanted = np.result_type(new, model.network_.dtype)  # as in MLPClassifier
            assert model.predict_proba(X.astype(new)).dtype == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1}, "The 'alpha' parameter of QuadraticClassifier must be"),
        ({"layer_kinds": "cubic"}, "layer_kinds must be 'auto', one of 'linear'"),
        (
            {"hidden_layer_sizes": (3,), "layer_kinds": ["linear"]},
            "of length 2 .hidden layers and output.. Got",
        ),
        ({"hidden_layer_sizes": (3, 0)}, "hidden_layer_sizes must be > 0"),
        ({"on_divergence": "ignore"}, "The 'on_divergence' parameter of QuadraticClassifier"),
    ],
)
def test_wrong_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        QuadraticClassifier(**options).fit([[0.0], [1.0]], [0, 1])


# ---- the paper's six clusters --------------------------------------------------------------


def accuracies(model, X, y):
    """Return the accuracy by argmax and by thresholds (every neuron is correct)."""
    z = model.decision_function(X)
    thresholded = ((z > 0) == np.eye(6, dtype=bool)[y]).all(axis=1).mean()
    return (z.argmax(axis=1) == y).mean(), thresholded


@pytest.mark.slow
def test_six_clusters_need_quadratic_neurons():
    results = {"quadratic": [], "linear": [], "linear, softmax": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        (X, y), (X_new, y_new) = clusters(2000, rng), clusters(500, rng)
        for name, options in (
            ("quadratic", {"loss": "binary_cross_entropy"}),
            ("linear", {"loss": "binary_cross_entropy", "layer_kinds": "linear"}),
            ("linear, softmax", {"layer_kinds": "linear"}),
        ):
            model = QuadraticClassifier(hidden_layer_sizes=(), random_state=seed, **options)
            results[name].append(accuracies(model.fit(X, y), X_new, y_new))
    median = {name: np.median(values, axis=0) for name, values in results.items()}
    assert (median["quadratic"] >= 0.999).all(), median
    assert median["linear"][0] > 0.99  # by argmax a linear layer is sufficient
    assert median["linear"][1] < 0.7  # but not by thresholds
    assert median["linear, softmax"][0] > 0.99


# ---- settings changed between calls, and other corner cases --------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_uses_a_new_penalty_and_refuses_a_new_shape():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = QuadraticClassifier((4,), solver="lbfgs", warm_start=True, alpha=1e-3).fit(X, y)
    small = np.abs(model.coefs_[0]).max()
    model.set_params(alpha=1e4).fit(X, y)
    assert np.abs(model.coefs_[0]).max() < small / 10  # the new penalty is used
    for early, scores in ((True, list), (False, type(None))):
        model.set_params(solver="adam", early_stopping=early, max_iter=3).fit(X, y)
        assert isinstance(model.validation_scores_, scores)
    for change in ({"hidden_layer_sizes": (5,)}, {"loss": "binary_cross_entropy"}):
        other = copy.deepcopy(model).set_params(**change)
        with pytest.raises(ValueError, match="continue with the network of the last call"):
            other.fit(X, y)


def test_early_stopping_stratifies_two_classes():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(200, 2)), (np.arange(200) < 20).astype(float)
    weights = np.zeros(200)
    weights[::5] = 1  # rows without weight are in neither part
    for weight, most in ((None, 20), (weights, 4)):
        kept, held = hold_out(Samples(X, y[:, None], weight), 0.25, rng, by_class=True)
        assert held.Y.sum() == most / 4
        assert kept.Y.sum() == most - most / 4
    model = QuadraticClassifier(early_stopping=True, random_state=0, max_iter=1, tol=10.0)
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y, sample_weight=weights).n_iter_ == 1


def test_without_intercept_b_stays_zero():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = QuadraticLogisticRegression(warm_start=True).fit(X, y)
    assert model.set_params(fit_intercept=False).fit(X, y).b_ == [0.0]
    with pytest.raises(ValueError, match="fit_intercept=False needs solver='lbfgs'"):
        model.set_params(solver="sgd").fit(X, y)


def test_infinite_C_means_no_penalty():
    X = RNG.normal(size=(100, 2))
    y = RNG.integers(0, 2, 100)
    free = QuadraticLogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    weak = QuadraticLogisticRegression(C=1e8, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(free.predict_proba(X), weak.predict_proba(X), atol=1e-4)


def test_finite_input_that_overflows_raises():
    X, y = load_iris(return_X_y=True)
    for model in (QuadraticLogisticRegression(), QuadraticClassifier(())):
        with pytest.raises(ValueError, match="Scale the features"):
            model.fit(X, y).predict_proba(np.full((1, 4), 1e200) * [1, -1, 1, 1])


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_the_unit_of_the_targets_does_not_matter(unit):
    X = RNG.normal(size=(200, 2))
    y = X[:, 0] * X[:, 1] + 3
    model = QuadraticRegressor((), alpha=0.1).fit(X, unit * y)
    np.testing.assert_allclose(model.predict(X) / unit, y, atol=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:lbfgs failed.*increase max_iter")
def test_the_budget_includes_the_search():
    X, y = load_iris(return_X_y=True)
    for max_iter in (3, 20, 100):
        assert QuadraticClassifier(max_iter=max_iter).fit(X, y).n_iter_ <= max_iter
    with pytest.warns(ConvergenceWarning, match="max_fun"):
        QuadraticClassifier((5,), alpha=1.0, solver="lbfgs", max_fun=3).fit(X, y)


def test_a_fit_without_a_search_uses_all_iterations():
    X, y = load_digits(return_X_y=True)
    model = QuadraticClassifier((4,), alpha=1e-4, max_iter=150, random_state=0)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        assert model.fit(X / 16, y).n_iter_ == 150


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_layer_kinds_may_be_an_array():
    X, y = load_iris(return_X_y=True)
    kinds = np.array(["linear", "reduced"])
    model = QuadraticClassifier((4,), layer_kinds=kinds, alpha=1.0).fit(X, y)
    assert [layer.kind for layer in model.network_.layers] == ["linear", "reduced"]


# ---- numerical accuracy --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kinds", ["quadratic", "reduced", "linear"])
def test_predictions_do_not_depend_on_batches_or_threads(dtype, kinds):
    from threadpoolctl import threadpool_limits

    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(dtype)
    model = QuadraticClassifier((20,), layer_kinds=("linear", kinds), max_iter=10, random_state=0)
    model.fit(X, y)
    whole = model.predict_proba(X)
    assert whole.dtype == dtype
    rounding = 200 * np.finfo(dtype).eps
    for size in (1, 7, 500):
        parts = [model.predict_proba(X[i : i + size]) for i in range(0, 900, size)]
        np.testing.assert_allclose(np.vstack(parts)[:900], whole[:900], atol=rounding)
    for threads in (1, 2):
        with threadpool_limits(threads):
            np.testing.assert_allclose(model.predict_proba(X), whole, atol=rounding)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_huge_inputs_are_probabilities(dtype):
    """z can have any finite size: sigmoid, softmax and logarithm do not overflow."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X).astype(dtype)
    for labels, loss in ((y, "auto"), (y > 0, "auto"), (y, "binary_cross_entropy")):
        model = QuadraticClassifier((), loss=loss, random_state=0).fit(X, labels)
        for size in (1e3, 1e10, 1e17):
            probabilities = model.predict_proba(X * np.asarray(size, dtype=dtype))
            assert np.isfinite(probabilities).all()
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
            assert not np.isnan(model.predict_log_proba(X * np.asarray(size, dtype=dtype))).any()
