"""Predictions check their input once: arrays that validation would return unchanged skip it."""

import numpy as np
import pandas as pd
import pytest
from scipy import special

import quadric
from quadric import QuadraticClassifier
from quadric.core import log_softmax
from quadric.errors import MemoryLimitError
from quadric.estimators import _fitted_attributes


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return QuadraticClassifier((), alpha=0.1, max_iter=200, random_state=0).fit(
        X, np.arange(60) % 3
    )


@pytest.fixture
def validated(monkeypatch):
    """The inputs that scikit-learn's validation received."""
    received = []
    original = _fitted_attributes.validate_data

    def validate(estimator, X, **options):
        received.append(X)
        return original(estimator, X, **options)

    monkeypatch.setattr(_fitted_attributes, "validate_data", validate)
    return received


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_plain_array_is_not_validated_again(fitted, validated, dtype, monkeypatch):
    X = np.ones((1, 3), dtype)
    expected = fitted.predict_proba(X.tolist())
    assert len(validated) == 1
    monkeypatch.setattr(QuadraticClassifier, "__sklearn_tags__", None)  # a lookup would raise
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-6)
    assert len(validated) == 1


@pytest.mark.parametrize(
    "X",
    [
        np.ones((2, 3), ">f8"),
        np.ones((2, 3), np.float16),
        np.ones((2, 3), int),
        pd.DataFrame(np.ones((2, 3))),
        np.ones((2, 3)).tolist(),
    ],
    ids=["swapped bytes", "half", "integers", "frame", "list"],
)
def test_other_inputs_are_validated(fitted, validated, X):
    expected = fitted.predict_proba(np.ones((2, 3)))
    assert not validated
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    assert len(validated) == 1


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 4)), "X has 4 features, but QuadraticClassifier is expecting 3"),
        (np.ones(3), "Expected 2D array"),
        (np.ones((0, 3)), "Found array with 0 sample"),
        (np.full((1, 3), np.nan), "Input X contains NaN"),
        (np.ma.masked_array(np.ones((1, 3)), [[1, 0, 0]]), "masked"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(fitted, X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.predict_proba(X)


def test_an_array_without_the_names_of_the_fit_causes_a_warning():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = QuadraticClassifier((), alpha=0.1, max_iter=200).fit(frame, np.arange(60) % 2)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(np.ones((1, 2)))


def test_a_block_is_answered_once(fitted, monkeypatch):
    sizes = []

    def count(z):
        sizes.append(len(z))
        return log_softmax(z)

    monkeypatch.setattr(_fitted_attributes, "log_softmax", count)
    fitted.predict_log_proba(np.ones((1, 3)))
    assert sizes == [1]


@pytest.fixture
def limit():
    yield lambda size: quadric.set_config(max_memory=size)
    quadric.set_config(max_memory=None)


def test_a_single_row_respects_the_limit_of_memory(fitted, limit):
    limit(10)
    with pytest.raises(MemoryLimitError, match="the predictions for 1 samples"):
        fitted.predict_proba(np.ones((1, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e3, 1e30])
def test_log_softmax_has_the_bits_of_scipy(dtype, size):
    z = (size * np.random.default_rng(0).normal(size=(50, 7))).astype(dtype)
    np.testing.assert_array_equal(log_softmax(z), special.log_softmax(z, axis=1))
    assert log_softmax(z).dtype == dtype
