"""Estimators whose training was interrupted are not fitted, or can be used and saved."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from quadric import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    load,
    save,
)

X = np.random.default_rng(0).normal(size=(60, 3))
Y = {
    QuadraticClassifier: (X[:, 0] > 0).astype(int),
    QuadraticRegressor: X[:, 0] * X[:, 1],
    QuadraticLogisticRegression: (X[:, 0] > 0).astype(int),
}
# functions that `fit` calls before there is a network, and while a candidate is chosen
EARLY = {
    QuadraticClassifier: ("quadric.estimators._data.as_samples", "quadric.estimators._base.choose"),
    QuadraticRegressor: ("quadric.estimators._data.as_samples", "quadric.estimators._base.choose"),
    QuadraticLogisticRegression: (
        "quadric.estimators._logistic.merge_repeated",
        "quadric.estimators._logistic.train",
    ),
}


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("of", EARLY)
def test_faults_R11_an_interrupted_first_fit_counts_as_fitted(of, place, monkeypatch):
    model = of()
    monkeypatch.setattr(EARLY[of][place], interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y[of])
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(of, method):
            with pytest.raises(NotFittedError):
                getattr(model, method)(X)
    monkeypatch.undo()
    again = clone(model).set_params(random_state=0).fit(X, Y[of]).predict(X)
    np.testing.assert_array_equal(model.set_params(random_state=0).fit(X, Y[of]).predict(X), again)


def test_faults_R11_an_interrupted_refit_leaves_the_network_of_other_classes(monkeypatch):
    model = QuadraticLogisticRegression().fit(X, Y[QuadraticLogisticRegression])
    monkeypatch.setattr("quadric.estimators._logistic.train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.array(["b", "a"])[Y[QuadraticLogisticRegression]])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("of", [QuadraticClassifier, QuadraticRegressor])
def test_faults_R11_an_interrupted_choice_leaves_the_network_of_other_data(of, monkeypatch):
    model = of(random_state=0).fit(X, Y[of])
    monkeypatch.setattr("quadric.estimators._base.choose", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], Y[of])
    with pytest.raises(NotFittedError):
        model.predict(X[:, :2])


@pytest.mark.filterwarnings("ignore:Training interrupted")
@pytest.mark.parametrize("solver", ["lbfgs", "adam", "sgd"])
@pytest.mark.parametrize("of", [QuadraticClassifier, QuadraticRegressor])
def test_faults_R11_a_stopped_model_cannot_be_saved(of, solver, tmp_path, monkeypatch):
    from quadric.estimators import _base

    train = _base.train

    def stop(*args, callback, **options):
        def after_two(record):
            seen.append(record)
            if len(seen) == 2:
                raise KeyboardInterrupt

        return train(*args, callback=after_two, **options)

    seen = []
    monkeypatch.setattr(_base, "train", stop)
    model = of((3,), solver=solver, random_state=0)
    try:
        model.fit(X, Y[of])
    except KeyboardInterrupt:
        assert solver == "lbfgs"
    assert len(seen) == 2
    assert model.n_iter_ >= 1
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
