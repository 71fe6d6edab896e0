"""Parameters of scikit-learn's estimators: accepted where they mean the same, otherwise refused."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from quadric import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    load,
    save,
)

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (QuadraticClassifier, MLPClassifier),
        (QuadraticRegressor, MLPRegressor),
        (QuadraticLogisticRegression, LogisticRegression),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_parameter_and_default_of_scikit_learns_estimator_is_accepted(ours, theirs):
    given = theirs().get_params()
    given.pop("multi_class", None)  # LogisticRegression before 1.8
    model = ours(**{**given, "max_iter": 3}).fit(X, y)
    assert model.get_params().items() >= {**given, "max_iter": 3}.items()


def test_penalty_none_means_an_infinite_c():
    unpenalized = QuadraticLogisticRegression(penalty=None, tol=1e-2).fit(X, y)
    infinite = QuadraticLogisticRegression(C=np.inf, tol=1e-2).fit(X, y)
    assert np.array_equal(unpenalized.w_, infinite.w_)
    assert not np.array_equal(unpenalized.w_, QuadraticLogisticRegression(tol=1e-2).fit(X, y).w_)
    with pytest.warns(UserWarning, match=r"penalty=None will ignore the C .*C=0\.5"):
        ignoring = QuadraticLogisticRegression(C=0.5, penalty=None, tol=1e-2).fit(X, y)
    assert np.array_equal(unpenalized.w_, ignoring.w_)


@pytest.mark.parametrize(
    "options",
    [
        {"n_jobs": 2},
        {"intercept_scaling": 100.0},
        {"penalty": "l2"},
        {"l1_ratio": None},
        {"l1_ratio": 0},
        {"dual": False},
        {"verbose": 0},
    ],
)
def test_parameters_without_effect_are_accepted(options):
    plain = QuadraticLogisticRegression().fit(X, y)
    assert np.array_equal(plain.w_, QuadraticLogisticRegression(**options).fit(X, y).w_)


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l1"},
        {"penalty": "elasticnet"},
        {"l1_ratio": 1},
        {"l1_ratio": 0.5},
        {"dual": True},
    ],
)
@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_other_penalties_are_refused(options, solver):
    ((name, value),) = options.items()
    model = QuadraticLogisticRegression(solver=solver, **options)
    with pytest.raises(ValueError, match=f"{name}={value!r}.*PolynomialFeatures"):
        model.fit(X, y)


@pytest.mark.parametrize("solver", ["liblinear", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_other_solvers_are_refused(solver):
    with pytest.raises(ValueError, match=r"'solver' parameter .* must be a str among"):
        QuadraticLogisticRegression(solver=solver).fit(X, y)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_without_iterations_the_initial_values_are_kept(solver):
    model = QuadraticLogisticRegression(max_iter=0, solver=solver, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.n_iter_ == [0]
    assert np.abs(model.w_).max() < 0.1
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3, atol=0.1)
    started = QuadraticLogisticRegression(warm_start=True).fit(X, y)
    fitted = started.w_.copy()
    with pytest.warns(ConvergenceWarning):
        started.set_params(max_iter=0).fit(X, y)
    assert np.array_equal(started.w_, fitted)


def test_batches_do_not_use_the_penalty_that_was_chosen_for_all_samples():
    """A penalty is divided by the samples of a batch, so the one for all of them is too large."""
    model = QuadraticRegressor(random_state=0, learning_rate_init=0.01).fit([[2.0]], [4.0])
    for _ in range(200):
        model.partial_fit([[2.0]], [1.0])
    np.testing.assert_allclose(model.predict([[2.0]]), 1, atol=1e-3)


def test_poisson_regression_equals_scikit_learns(tmp_path):
    counts = np.random.default_rng(0).poisson(np.exp(X[:, 0] / 2))
    expected = PoissonRegressor(alpha=0, tol=1e-9).fit(X, counts).predict(X)
    options = {"layer_kinds": "linear", "alpha": 0, "solver": "lbfgs", "tol": 1e-8}
    model = QuadraticRegressor((), loss="poisson", random_state=0, **options).fit(X, counts)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
    save(model, tmp_path / "counts.quadric")
    assert np.array_equal(load(tmp_path / "counts.quadric").predict(X), model.predict(X))


@pytest.mark.parametrize("solver", ["lbfgs", "adam", "sgd"])
def test_poisson_regression_refuses_negative_targets(solver):
    with pytest.raises(ValueError, match="y must not be negative for loss='poisson'"):
        QuadraticRegressor(loss="poisson", solver=solver).fit(X, y - 1.0)
