"""Fitted attributes: those of scikit-learn, and parameters that can be assigned."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.neural_network import MLPClassifier, MLPRegressor

from quadric import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor

X = np.random.default_rng(0).normal(size=(300, 5))
PRODUCT = (X[:, 0] * X[:, 1] > 0).astype(int)
PAPER = {"solver": "sgd", "batch_size": 1, "momentum": 0.0}


@pytest.fixture
def logistic():
    return QuadraticLogisticRegression().fit(X, PRODUCT)


@pytest.fixture
def network():
    return QuadraticClassifier((4,), alpha=0.1, random_state=0).fit(X, PRODUCT)


# ---- QuadraticLogisticRegression is not a linear model ---------------------------------------


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
def test_the_attributes_of_a_linear_model_do_not_exist(logistic, name):
    for model in (logistic, QuadraticLogisticRegression()):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'.* w_, b_ and Q_"):
            getattr(model, name)
        with pytest.raises(AttributeError, match="not linear"):
            setattr(model, name, np.zeros((1, 5)))


@pytest.mark.parametrize(
    "selector",
    [
        RFE(QuadraticLogisticRegression(), n_features_to_select=2),
        SelectFromModel(QuadraticLogisticRegression(), max_features=2),
    ],
    ids=["RFE", "SelectFromModel"],
)
def test_selectors_keep_the_features_of_an_interaction(selector):
    kept = clone(selector).fit(X, PRODUCT).get_support()
    assert kept.tolist() == [True, True, False, False, False]


def test_the_number_of_iterations_is_an_array():
    for options in ({}, {"solver": "sgd", "max_iter": 300, "random_state": 0}):
        model = QuadraticLogisticRegression(**options).fit(X, PRODUCT)
        assert model.n_iter_.shape == (1,)
        assert model.n_iter_[0] > 1


# ---- assignment ------------------------------------------------------------------------------


def test_parameters_of_the_neurons_can_be_assigned(logistic):
    rng = np.random.default_rng(1)
    w, b, Q = rng.normal(size=(1, 5)), rng.normal(size=1), rng.normal(size=(1, 5, 5))
    logistic.w_, logistic.b_, logistic.Q_ = w.tolist(), b, Q
    expected = np.einsum("ni,ij,nj->n", X, Q[0], X) + X @ w[0] + b[0]
    np.testing.assert_allclose(logistic.decision_function(X), expected, rtol=1e-12)
    logistic.w_[:] = logistic.b_[:] = 0  # both are views
    np.testing.assert_allclose(
        logistic.decision_function(X), np.einsum("ni,ij,nj->n", X, Q[0], X), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["w_", "b_", "Q_"])
def test_invalid_parameters_of_the_neurons_change_nothing(logistic, name):
    before, old = logistic.decision_function(X), getattr(logistic, name)
    for value in (np.zeros(3), np.full(old.shape, np.nan), "text", np.full(old.shape, 1j)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            setattr(logistic, name, value)
    assert np.array_equal(logistic.decision_function(X), before)
    with pytest.raises(AttributeError, match="not fitted"):
        setattr(QuadraticLogisticRegression(), name, old)


def test_coefficients_of_a_network_can_be_assigned(network):
    other = QuadraticClassifier((4,), alpha=0.1, max_iter=5, random_state=1).fit(X, PRODUCT)
    network.network_.layers[1].packed = other.network_.layers[1].packed
    network.coefs_ = [W.tolist() for W in other.coefs_]
    network.intercepts_[0] = other.intercepts_[0]
    network.intercepts_[-1] = other.intercepts_[-1]
    assert np.array_equal(network.predict_proba(X), other.predict_proba(X))
    network.intercepts_ = [np.zeros(4), [7.0]]
    assert network.network_.layers[1].b.tolist() == [7.0]


def test_invalid_coefficients_of_a_network_change_nothing(network):
    before = network.predict_proba(X)
    good, bad = [0 * W for W in network.coefs_], np.full((4, 1), np.inf)
    with pytest.raises(ValueError, match="coefs_ must have one array for each of the 2 layers"):
        network.coefs_ = good[:1]
    with pytest.raises(ValueError, match=r"coefs_\[1\] must be finite"):
        network.coefs_ = [good[0], bad]
    with pytest.raises(ValueError, match=r"coefs_\[1\] must be finite"):
        network.coefs_[1] = bad
    with pytest.raises(ValueError, match=r"intercepts_\[0\] must be .* of shape \(4,\)"):
        network.intercepts_ = [np.zeros(5), np.zeros(1)]
    with pytest.raises(TypeError, match="all of coefs_, or to one item"):
        network.coefs_[:1] = good[:1]
    with pytest.raises(AttributeError, match="not fitted"):
        QuadraticClassifier().coefs_ = good
    assert np.array_equal(network.predict_proba(X), before)


@pytest.mark.parametrize("options", [{}, PAPER], ids=["batches", "per sample"])
def test_training_continues_from_assigned_coefficients(options):
    model = QuadraticClassifier((4,), random_state=0, **({"solver": "adam"} | options))
    model.partial_fit(X, PRODUCT, classes=[0, 1])
    model.coefs_ = [W + 10 for W in model.coefs_]
    model.partial_fit(X, PRODUCT)
    assert min(W.min() for W in model.coefs_) > 5


# ---- the attributes of scikit-learn's networks -----------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(QuadraticClassifier, MLPClassifier), (QuadraticRegressor, MLPRegressor)],
)
@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_public_attributes_of_scikit_learns_networks_exist(ours, theirs, early_stopping):
    options = {"solver": "adam", "max_iter": 2, "early_stopping": early_stopping}
    mine, their = (kind(**options).fit(X, PRODUCT) for kind in (ours, theirs))
    for name in dir(their):
        if not name.startswith("_") and not (early_stopping and name == "partial_fit"):
            assert hasattr(mine, name), name
            for kind in (list, type(None)):
                values = getattr(mine, name), getattr(their, name)
                assert isinstance(values[0], kind) == isinstance(values[1], kind), name
