"""Saved models are the same after loading, and `save` refuses values that it cannot store."""

import json
import os
import pickle
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

import quadric
from quadric import ModelFileError, Network, QuadraticClassifier, datasets, load, save
from quadric.core import _quadratic_form as quadratic_form
from quadric.core._layers import Quadratic
from quadric.explain import explain
from quadric.files import _safetensors as container, info
from tests.support import damage, processes
from tests.support.fitted_models import MODELS, answers, make, numbers
from tests.support.processes import output_of

FIXTURES = Path(__file__).parents[1] / "fixtures"


def assert_same_bits(first, second):
    assert first.keys() == second.keys()
    assert first
    for name, array in first.items():
        assert array.dtype == second[name].dtype
        assert array.shape == second[name].shape
        if array.dtype == object:
            assert array.tolist() == second[name].tolist()
        else:
            assert array.tobytes() == second[name].tobytes(), name


@pytest.mark.slow
def test_predictions_are_bit_identical_in_another_process(saved):
    models = {name: saved[name] for name in MODELS}
    module = "tests.support.fitted_models"
    assert processes.run(["-m", module, saved.directory]).returncode == 0
    for model, X, path in models.values():
        there = pickle.loads(path.with_suffix(".answers").read_bytes())
        assert_same_bits(answers(model, X), there)


@pytest.mark.slow
@pytest.mark.sample(24)
@pytest.mark.parametrize("name", MODELS)
def test_saving_again_gives_the_same_bytes(saved, name, tmp_path):
    model, X, path = saved[name]
    loaded = load(path)
    save(loaded, tmp_path / "again")
    save(make(name)[0], tmp_path / "anew")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert (tmp_path / "anew").read_bytes() == path.read_bytes()
    assert_same_bits(answers(model, X), answers(loaded, X))  # saving has not changed either


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("network")])
def test_a_loaded_estimator_keeps_parameters_attributes_and_methods(saved, name):
    model, X, path = saved[name]
    loaded = load(path)
    if name not in ("columns by type", "columns by index"):  # now selected by name
        assert repr(loaded) == repr(model)
        assert repr(clone(loaded)) == repr(clone(model))
    if name != "classifier linear":  # nothing to explain
        assert str(explain(loaded)) == str(explain(model))
    last, original = (m[-1] if hasattr(m, "steps") else m for m in (loaded, model))
    assert last.get_params().keys() == original.get_params().keys()
    for attribute in ("n_features_in_", "n_iter_", "loss_curve_", "best_loss_", "t_"):
        if hasattr(original, attribute):
            assert getattr(last, attribute) == getattr(original, attribute)
            assert type(getattr(last, attribute)) is type(getattr(original, attribute))
    if hasattr(model, "classes_"):
        y = model.predict(X)
        assert loaded.score(X, y) == model.score(X, y)
        assert loaded.classes_.dtype == model.classes_.dtype
    if hasattr(model, "feature_names_in_"):
        assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    if hasattr(model, "steps"):
        names = [m[:-1].get_feature_names_out().tolist() for m in (model, loaded)]
        assert names[0] == names[1]
        y = model.predict(X)
        again = clone(loaded)[:-1].fit_transform(X, y)  # fitted again on the selected columns
        assert again.shape == clone(model)[:-1].fit_transform(X, y).shape


def test_a_loaded_model_checks_feature_names(saved):
    model, frame, path = saved["frame"]
    loaded = load(path)
    assert_same_bits(answers(model, frame), answers(loaded, frame))
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(loaded.predict(frame.to_numpy()), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"size": "length"}))
    model, frame, path = saved["columns"]
    assert_same_bits(answers(model, frame), answers(load(path), frame[frame.columns[::-1]]))
    unseen = frame.assign(colour="mauve")
    assert_same_bits(answers(model, unseen), answers(load(path), unseen))


def test_training_continues_after_loading(saved):
    model, X, path = saved["partial fit"]
    y = model.predict(X)
    loaded, again = load(path), load(path)
    for estimator in (loaded, again):
        estimator.partial_fit(X, y)
    assert_same_bits(answers(loaded, X), answers(again, X))
    assert loaded.t_ == model.t_ + len(X)
    for name in ("classifier quadratic", "regressor", "logistic", "multi-label", "early stopping"):
        original, X, path = saved[name]
        loaded = load(path).set_params(warm_start=True, max_iter=300)
        y = original.predict(X)
        assert loaded.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("batch_size", [1, 20])
def test_sgd_without_momentum_continues_as_if_never_saved(batch_size, tmp_path):
    X, z = numbers()
    settings = {"solver": "sgd", "momentum": 0.0, "batch_size": batch_size, "random_state": 3}
    model = QuadraticClassifier((3,), **settings).partial_fit(X, z > 0, classes=[False, True])
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    here, there = (answers(m.partial_fit(X, z > 0), X) for m in (model, loaded))
    if batch_size > 1:
        assert_same_bits(here, there)
    else:  # the compiled loop stores its weights with a common factor, so rounding differs
        np.testing.assert_allclose(there["predict_proba"], here["predict_proba"], rtol=1e-12)


def test_w_of_a_loaded_model_is_a_view_of_its_network(saved):
    loaded = load(saved["logistic"][2])
    loaded.network_.layers[0].W = loaded.w_ + 1
    assert loaded.w_ is loaded.network_.layers[0].W
    loaded.network_.layers[0].packed = loaded.network_.layers[0].packed + 1
    assert np.array_equal(loaded.Q_, loaded.network_.layers[0].Q)


def test_smallest_and_largest_numbers_survive(tmp_path):
    tiny, huge = np.nextafter(0, 1), np.finfo(float).max
    layer = Quadratic.of(
        W=np.array([[-0.0, huge]]),
        b=np.array([tiny]),
        packed=np.array([[tiny], [3 * tiny], [-0.0]]),
    )
    save(Network([layer], ["identity"]), tmp_path / "model")
    assert_same_bits(load(tmp_path / "model").layers[0].arrays(), layer.arrays())


def test_other_safetensors_readers_find_the_parameters(network_file):
    network, tensors = load(network_file), load_file(network_file)
    assert sorted(tensors) == [f"layers.{l}.{name}" for l in (0, 1) for name in "QWb"]
    assert np.array_equal(tensors["layers.0.Q"], quadratic_form.pack(network.layers[0].Q).T)
    assert np.array_equal(tensors["layers.1.W"], network.layers[1].W)
    header, _ = damage.split(network_file.read_bytes())
    assert list(json.loads(header)["__metadata__"]) == ["quadric"]
    description = json.loads(json.loads(header)["__metadata__"]["quadric"])
    assert sorted(description) == ["extra", "format", "hash", "model", "versions"]
    assert re.fullmatch("[0-9a-f]{64}", description["hash"])
    assert description["format"] == 1


@pytest.mark.slow
def test_info_returns_extra_and_does_not_read_tensors(tmp_path):
    extra = {"columns": ["a", "\u00e9\ud800"], "n": [1, 2.5, None, True], "deep": {"x": {"y": ()}}}
    path = tmp_path / "model.quadric"
    save(make("scaler")[0], path, extra=extra)
    about = info(path)
    assert about["extra"] == {**extra, "deep": {"x": {"y": []}}}
    assert about["model"]["class"] == "Pipeline"
    assert about["tensors"]["layers.0.W"] == {"dtype": "F64", "shape": [3, 4]}
    assert about["versions"]["quadric"] == quadric.__version__
    with path.open("r+b") as stream:  # the tensors are not read
        stream.seek(-4, os.SEEK_END)
        stream.write(b"\xff" * 4)
    assert info(path) == about
    with pytest.raises(ModelFileError, match="hash"):
        load(path)
    for bad in ({1: 2}, {"a": np.nan}, {"a": {1, 2}}, [1], {"a": np.ones(2)}, {"a": {None: 1}}):
        with pytest.raises(ModelFileError, match="extra must be a dict of JSON"):
            save(make("scaler")[0], path, extra=bad)


def test_info_needs_neither_scikit_learn_nor_the_estimators(network_file):
    script = (
        f"import sys; from quadric.files import info; info({str(network_file)!r})\n"
        "print(*(m for m in ('sklearn', 'numba', 'scipy', 'pandas') if m in sys.modules))"
    )
    assert output_of(script).split() == []


class Derived(QuadraticClassifier):
    pass


def fitted(*steps, **settings):
    X, z = numbers()
    last = QuadraticClassifier((), **settings)
    return (make_pipeline(*steps, last) if steps else last).fit(X, z > 0)


def changed(model, **attributes):
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def not_finite():
    network = make("network linear float64")[0]
    network.layers[0].W[0, 0] = np.inf
    return network


REFUSED = {
    "Normalizer is not among the supported steps.*StandardScaler.*ColumnTransformer": lambda: (
        fitted(Normalizer())
    ),
    "Normalizer is not among the supported steps": lambda: fitted(
        ColumnTransformer([("a", make_pipeline(StandardScaler(), Normalizer()), [0, 1])])
    ),
    "func of FunctionTransformer is a function.*code": lambda: fitted(FunctionTransformer(np.tanh)),
    "feature_name_combiner of OneHotEncoder is a function": lambda: fitted(
        OneHotEncoder(feature_name_combiner=lambda *names: "x")
    ),
    "random_state of QuadraticClassifier is a RandomState.*use an integer": lambda: fitted(
        random_state=np.random.RandomState(0)
    ),
    "class_weight of QuadraticClassifier is or contains a Fraction": lambda: changed(
        fitted(), class_weight={Fraction(1, 2): 1.0}
    ),
    "classes_ of QuadraticClassifier is an array of complex128": lambda: changed(
        fitted(), classes_=np.array([1j, 2])
    ),
    "Got Derived": lambda: Derived(()).fit(*datasets.xor()),
    "Got Pipeline that ends in StandardScaler": lambda: make_pipeline(StandardScaler()).fit(
        numbers()[0]
    ),
    "Got dict": lambda: {"model": 1},
    "not fitted: call fit before save": QuadraticClassifier,
    "an attribute 'note'.*extra": lambda: changed(fitted(), note="mine"),
    r"layers\[0\].W has an infinite": not_finite,
}


@pytest.mark.parametrize("message", REFUSED)
def test_save_names_the_attribute_that_it_cannot_store(message, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError, match=message):
        save(REFUSED[message](), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# ---- files of other versions ---------------------------------------------------------------


def test_format_1_is_read():
    expected = json.loads((FIXTURES / "format1.json").read_text())
    model = load(FIXTURES / "format1_pipeline.quadric")
    rows = pd.DataFrame(expected["rows"]).replace({None: np.nan})
    rows = rows.astype({"colour": object, "weight": float})
    assert model.predict(rows).tolist() == expected["classes"]
    np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], rtol=1e-9)
    assert model[0].get_feature_names_out().tolist() == expected["names"]
    assert info(FIXTURES / "format1_pipeline.quadric")["extra"] == {"target": "kind"}
    network = load(FIXTURES / "format1_network.quadric")
    X = np.array(expected["X"], dtype=np.float32)
    np.testing.assert_allclose(network.forward(X), expected["outputs"], rtol=1e-5)


def test_a_later_format_is_refused_with_advice_to_upgrade(network_file):
    description, tensors = container.read(network_file)
    network_file.write_bytes(container.to_bytes({**description, "format": 2}, tensors))
    for reader in (load, info):
        with pytest.raises(
            ModelFileError, match=r"format 2.*up to 1.*pip install --upgrade quadric"
        ):
            reader(network_file)
