"""Counterfactuals keep the decomposed matrices of a model, but never those of an earlier one."""

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.certify import counterfactual
from quadric.certify._radius import Spectrum

X, Y = load_iris(return_X_y=True)
ROW = X[70]


@pytest.fixture
def model():
    return make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, Y)


def test_certify_C13_further_calls_decompose_nothing(model, monkeypatch):
    first = [counterfactual(model, ROW), counterfactual(model, ROW, to=2)]
    calls, decompose = [], Spectrum.of
    monkeypatch.setattr(Spectrum, "of", lambda *given: calls.append(given) or decompose(*given))
    again = [counterfactual(model, ROW), counterfactual(model, ROW, to=2)]
    assert not calls
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.point, other.point)
        assert one.lower_bound == other.lower_bound
    counterfactual(model, ROW, units="scaled")
    assert calls  # other units are another problem


def weights(model):
    model[-1].network_.layers[0].W *= 1.5


def bias(model):
    model[-1].network_.layers[0].b[1] += 0.3


def curvature(model):
    model[-1].network_.layers[0].packed[0, 0] += 0.1


def scaler(model):
    model[0].mean_ += 0.2


def spread(model):
    model[0].scale_ = model[0].scale_ * 1.1


def refit(model):
    model.fit(X[::2], Y[::2])


def refit_network(model):
    model[-1].fit(model[0].transform(X[::2]), Y[::2])


@pytest.mark.parametrize("change", [weights, bias, curvature, scaler, spread, refit, refit_network])
def test_certify_C13_a_changed_model_is_decomposed_anew(model, change):
    before = counterfactual(model, ROW)
    change(model)
    found, wanted = counterfactual(model, ROW), counterfactual(copy.deepcopy(model), ROW)
    np.testing.assert_array_equal(found.point, wanted.point)
    assert found.lower_bound == wanted.lower_bound
    assert found.lower_bound != before.lower_bound
    assert model.predict(found.point[None])[0] == found.becomes


def test_certify_C13_the_dtype_of_the_row_belongs_to_the_problem(model):
    found = {}
    for dtype in ("float64", "float32", "float64"):
        x = ROW.astype(dtype)
        found[dtype] = counterfactual(model, x).lower_bound
        assert found[dtype] == counterfactual(copy.deepcopy(model), x).lower_bound
    assert found["float32"] < found["float64"]  # its rounding errors are larger


def test_certify_C13_a_model_is_not_kept_alive():
    network = Network.create(3, [("quadratic", 3, "softmax")], rng=0)
    counterfactual(network, np.ones(3))
    known = weakref.ref(network)
    del network
    gc.collect()
    assert known() is None


def test_certify_C13_several_threads_share_a_model(model):
    wanted = [counterfactual(model, x).lower_bound for x in X[::10]]
    fresh = copy.deepcopy(model)
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda x: counterfactual(fresh, x).lower_bound, X[::10])
        assert list(found) == wanted
