"""Model files: what goes in comes out, and what is no model file is refused without harm."""

import contextlib
import json
import os
import pickle
import re
import resource
import stat
import struct
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

import quadric
from quadric import (
    ModelFileError,
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    datasets,
    load,
    save,
)
from quadric._utils.whole_files import temporary_name
from quadric.core import _triangle as triangle
from quadric.core._layers import Quadratic
from quadric.explain import explain
from quadric.model_file import _safetensors as container
from quadric.model_file import info
from quadric.model_file._describe import describe
from tests.support import mutated_model_files
from tests.support.model_file_models import MODELS, answers, make, numbers

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOBODY = 65534


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Every model, its file, and what another process says that has only the file."""
    directory = tmp_path_factory.mktemp("models")
    models = {}
    for i, name in enumerate(MODELS):
        model, X = make(name)
        path = directory / f"{i}.quadric"
        save(model, path)
        path.with_suffix(".data").write_bytes(pickle.dumps(X))
        models[name] = (model, X, path)
    subprocess.run(
        [sys.executable, "-m", "tests.support.model_file_models", str(directory)], check=True
    )
    return models


@pytest.fixture
def network_file(tmp_path):
    path = tmp_path / "network.quadric"
    save(make("network quadratic float64")[0], path)
    return path


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


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_in_another_process(saved, name):
    model, X, path = saved[name]
    there = pickle.loads(path.with_suffix(".answers").read_bytes())
    assert_same_bits(answers(model, X), there)


@pytest.mark.parametrize("name", MODELS)
def test_saving_again_gives_the_same_bytes(saved, name, tmp_path):
    model, X, path = saved[name]
    loaded = load(path)
    save(loaded, tmp_path / "again")
    save(make(name)[0], tmp_path / "anew")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert (tmp_path / "anew").read_bytes() == path.read_bytes()
    assert_same_bits(answers(model, X), answers(loaded, X))  # saving has changed neither


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("network")])
def test_a_loaded_estimator_is_an_estimator(saved, name):
    model, X, path = saved[name]
    loaded = load(path)
    if name not in ("columns by type", "columns by index"):  # now by their names
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
        again = clone(loaded)[:-1].fit_transform(X)  # anew, on the columns that were selected
        assert again.shape == clone(model)[:-1].fit_transform(X).shape


def test_numpy_and_pandas_inputs(saved):
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


def test_training_goes_on_after_loading(saved):
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
def test_plain_sgd_goes_on_as_if_never_saved(batch_size, tmp_path):
    X, z = numbers()
    settings = {"solver": "sgd", "momentum": 0.0, "batch_size": batch_size, "random_state": 3}
    model = QuadraticClassifier((3,), **settings).partial_fit(X, z > 0, classes=[False, True])
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    here, there = (answers(m.partial_fit(X, z > 0), X) for m in (model, loaded))
    if batch_size > 1:
        assert_same_bits(here, there)
    else:  # the compiled loop holds its weights as numbers times a factor: other roundings
        np.testing.assert_allclose(there["predict_proba"], here["predict_proba"], rtol=1e-12)


def test_views_of_the_network_are_views_again(saved):
    loaded = load(saved["logistic"][2])
    loaded.network_.layers[0].W = loaded.coef_ + 1
    assert loaded.coef_ is loaded.network_.layers[0].W
    loaded.network_.layers[0].packed = loaded.network_.layers[0].packed + 1
    assert np.array_equal(loaded.Q_, loaded.network_.layers[0].Q)


def test_smallest_and_largest_numbers_survive(tmp_path):
    tiny, huge = np.nextafter(0, 1), np.finfo(float).max
    layer = Quadratic.of(
        W=np.array([[-0.0, huge]]), b=np.array([tiny]),
        packed=np.array([[tiny], [3 * tiny], [-0.0]]),
    )  # fmt: skip
    save(Network([layer], ["identity"]), tmp_path / "model")
    assert_same_bits(load(tmp_path / "model").layers[0].arrays(), layer.arrays())


def test_layout_of_the_file(network_file):
    """Another reader of safetensors finds the parameters under the names of the design."""
    network, tensors = load(network_file), load_file(network_file)
    assert sorted(tensors) == [f"layers.{l}.{name}" for l in (0, 1) for name in "QWb"]
    assert np.array_equal(tensors["layers.0.Q"], triangle.pack(network.layers[0].Q).T)
    assert np.array_equal(tensors["layers.1.W"], network.layers[1].W)
    header, _ = mutated_model_files.split(network_file.read_bytes())
    assert list(json.loads(header)["__metadata__"]) == ["quadric"]
    description = json.loads(json.loads(header)["__metadata__"]["quadric"])
    assert sorted(description) == ["extra", "format", "hash", "model", "versions"]
    assert re.fullmatch("[0-9a-f]{64}", description["hash"])
    assert description["format"] == 2


def test_extra_and_info(tmp_path, monkeypatch):
    extra = {"columns": ["a", "\u00e9\ud800"], "n": [1, 2.5, None, True], "deep": {"x": {"y": ()}}}
    path = tmp_path / "model.quadric"
    save(make("scaler")[0], path, extra=extra)
    about = info(path)
    assert about["extra"] == {**extra, "deep": {"x": {"y": []}}}
    assert about["model"]["class"] == "Pipeline"
    assert about["tensors"]["layers.0.W"] == {"dtype": "F64", "shape": [3, 4]}
    assert about["versions"]["quadric"] == quadric.__version__
    with path.open("r+b") as stream:  # the numbers are not looked at
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
        f"import sys; from quadric.model_file import info; info({str(network_file)!r})\n"
        "print(*(m for m in ('sklearn', 'numba', 'scipy', 'pandas') if m in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


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
    "random_state of QuadraticClassifier is a RandomState.*give a number": lambda: fitted(
        random_state=np.random.RandomState(0)
    ),
    "class_weight of QuadraticClassifier is or holds a Fraction": lambda: changed(
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
    "not fitted.*call fit first": QuadraticClassifier,
    "an attribute 'note'.*extra": lambda: changed(fitted(), note="mine"),
    r"layers\[0\].W has an infinite": not_finite,
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_kept_is_refused_by_name(message, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError, match=message):
        save(REFUSED[message](), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# ---- files of other versions ----


def test_format_1_is_read_for_ever():
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


def test_a_later_format_is_refused_by_name(network_file):
    description, tensors = container.read(network_file)
    network_file.write_bytes(container.to_bytes({**description, "format": 3}, tensors))
    for reader in (load, info):
        with pytest.raises(
            ModelFileError, match=r"format 3.*up to 2.*pip install --upgrade quadric"
        ):
            reader(network_file)


# ---- damaged and forged files ----


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too short"),
        (b"PK\x03\x04" + b"x" * 100, "header does not fit"),
        (pickle.dumps(mutated_model_files.Command()) + b"x" * 50, "no model file"),
        (struct.pack("<Q", 2**63) + b"{}", "header does not fit"),
        (struct.pack("<Q", 2) + b"{}", "without the key 'quadric'"),
        (struct.pack("<Q", 2) + b"[]", "does not begin as safetensors"),
    ],
)
def test_other_files_are_refused_with_a_reason(content, message, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    for reader in (load, info):
        with pytest.raises(ModelFileError, match=f"{path}.*{message}"):
            reader(path)


def test_no_class_of_the_files_choosing(network_file):
    description, tensors = container.read(network_file)
    for name in ("os.system", "posix.system", "subprocess.Popen", "FunctionTransformer", "Network"):
        for number, kind, facts in ((1, "estimator", "fitted"), (2, "fitted", "facts")):
            forged = {"type": kind, "class": name, "parameters": {}, facts: {}}
            content = {**description, "model": forged, "format": number}
            network_file.write_bytes(container.to_bytes(content, tensors))
            with pytest.raises(ModelFileError, match="describes no model"):
                load(network_file)


def test_a_tensor_makes_one_array(saved, tmp_path):
    description, tensors = container.read(saved["classes text"][2])
    facts = description["model"]["facts"]
    facts["loss_curve_"] = [facts["loss_curve_"]] * 1000
    (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match="two things are made of the tensor loss_curve_"):
        load(tmp_path / "model")


def test_directories_and_pipes_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "a directory"), (tmp_path / "pipe", "a device or a pipe")):
        with pytest.raises(ModelFileError, match=what):
            load(path)
        with pytest.raises(OSError, match="cannot save the model"):
            save(make("network linear float64")[0], path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1000, 40])
def test_memory_to_load_a_large_model(n, dtype, tmp_path):
    network = Network.create(n, [("quadratic", 2_000_000 // n**2, "softmax")], dtype=dtype, rng=0)
    save(network, tmp_path / "model")
    load(tmp_path / "model")
    tracemalloc.start()
    load(tmp_path / "model")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * (tmp_path / "model").stat().st_size


def _nested(depth):
    return [_nested(depth - 1)] if depth else []


def _crafted_lists(description, tensors):
    description["model"]["parameters"]["hidden_layer_sizes"] = [_nested(8)] * 30_000
    tensors["loss_curve_"] = np.zeros(700_000)  # a large file may have a large header


def _crafted_extra(description, tensors):
    description["extra"] = {"a": [i + 1000 for i in range(600_000)]}


def _crafted_texts(description, tensors):
    texts = "".join(map(chr, range(2048, 50_000))).encode()
    tensors["classes_"] = np.frombuffer(texts, dtype=np.uint8)
    tensors["classes_.lengths"] = np.full(len(texts) // 3, 3)


@pytest.mark.parametrize("craft", [_crafted_lists, _crafted_extra, _crafted_texts])
def test_memory_to_load_a_crafted_file(craft, saved, tmp_path):
    description, tensors = container.read(saved["classes objects"][2])
    craft(description, tensors)
    path = tmp_path / "model"
    path.write_bytes(container.to_bytes(description, tensors))
    load(saved["classes objects"][2])  # all imports are made
    tracemalloc.start()
    with contextlib.suppress(ModelFileError):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak > 2 * path.stat().st_size  # it did read the file
    assert peak < 10 * path.stat().st_size + 2**19


@pytest.mark.parametrize("text", ["{},", '"a":1000,', '"ab",'])
def test_a_header_of_many_small_pieces_is_not_parsed(text, network_file):
    header, body = mutated_model_files.split(network_file.read_bytes())
    network_file.write_bytes(mutated_model_files.joined(header + (text * 10**6).encode(), body))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="more small pieces"):
        load(network_file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * network_file.stat().st_size


def _insert(entry):
    def forge(model):
        model["parameters"]["steps"].insert(0, {"type": "tuple", "items": ["z", entry]})

    return forge


def _entry(name, facts, **parameters):
    return {"type": "fitted", "class": name, "parameters": parameters, "facts": facts}


def _without_facts(model):
    model["facts"] = None


FORGED_PIPELINES = {
    "says nothing about its Pipeline": _without_facts,
    "steps of Pipeline must be a list of scikit-learn's steps": _insert(7),
    "StandardScaler is not fitted": _insert(_entry("StandardScaler", None)),
    "a list of named steps": _insert(_entry("FeatureUnion", {}, transformer_list=[])),
    "is given 134217728": _insert(
        _entry(
            "FeatureUnion",
            {},
            transformer_list=[
                {
                    "type": "tuple",
                    "items": ["a", _entry("FunctionTransformer", {"n_features_in_": 2**27})],
                }
            ],
            transformer_weights={"type": "dict", "items": [["a", 2.0]]},
        )
    ),
    "more than 64 bits": _insert(_entry("FunctionTransformer", {"n_features_in_": 10**400})),
}


@pytest.mark.filterwarnings("ignore")
def test_a_scaler_that_makes_every_value_missing_is_refused(tmp_path):
    """Unless the column is dropped or imputed, as where a column had no values in `fit`."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    last = QuadraticLogisticRegression(max_iter=100)
    model = make_pipeline(StandardScaler(), last).fit(X, y)
    model[0].scale_[2] = np.nan
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(model)))
    with pytest.raises(ModelFileError, match="every value of a column missing and no step imputes"):
        load(tmp_path / "model")
    X[:, 2] = np.nan
    nested = make_pipeline(StandardScaler(), make_pipeline(SimpleImputer(), last))
    for kept in (
        make_pipeline(StandardScaler(), SimpleImputer(), last),
        make_pipeline(StandardScaler(), SimpleImputer(keep_empty_features=True), last),
        make_pipeline(StandardScaler(), ColumnTransformer([("a", "passthrough", [0, 1])]), last),
        nested,
    ):
        save(kept.fit(X, y), tmp_path / "model")
        again = load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(X), kept.predict_proba(X))


def test_a_class_weight_that_is_no_number_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = QuadraticClassifier(class_weight={0: 1.0, 1: 2.0}, max_iter=100)
    model.fit(X, (X[:, 0] > X[:, 1]).astype(int)).set_params(class_weight={0: "x", 1: 2.0})
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(model)))
    with pytest.raises(ModelFileError, match="class_weight of QuadraticClassifier must be"):
        load(tmp_path / "model")


@pytest.mark.parametrize("message", FORGED_PIPELINES)
def test_steps_that_do_not_fit_are_refused_before_anything_is_allocated(message, saved, tmp_path):
    path = tmp_path / "model"
    description, tensors = container.read(saved["scaler"][2])
    FORGED_PIPELINES[message](description["model"])
    path.write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match=message):
        load(path)
    tracemalloc.start()
    with contextlib.suppress(ModelFileError):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * path.stat().st_size + 2**19


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model, _ = make("scaler")
    model[0].scale_ = np.ones(7)
    with pytest.raises(ModelFileError, match="could not be loaded again, it is not saved"):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def _entries(value):
    """All estimators and steps in a description."""
    inside = value.values() if isinstance(value, dict) else value
    found = [value] if isinstance(value, dict) and "class" in value else []
    return found + [e for v in inside if isinstance(v, (dict, list)) for e in _entries(v)]


RUNNING = {
    "Pipeline": {"memory": "/tmp/cache", "verbose": True},
    "ColumnTransformer": {"n_jobs": 40, "verbose": True},
    "StandardScaler": {"copy": False},
    "SimpleImputer": {"copy": False},
    "QuadraticClassifier": {"verbose": True},
}


def test_how_a_step_runs_is_not_taken_from_a_file(saved, tmp_path):
    """Refused in format 2; in format 1, which had them, left unread."""
    forged = 0
    for path, number in ((saved["columns"][2], 2), (FIXTURES / "format1_pipeline.quadric", 1)):
        places = len(_entries(container.read(path)[0]["model"]))
        for k in range(places):
            description, tensors = container.read(path)
            entry = _entries(description["model"])[k]
            added = RUNNING.get(entry["class"], {"n_jobs": 2})
            entry["parameters"].update(added)
            (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
            if number == 2:
                with pytest.raises(ModelFileError, match=f"gives {entry['class']} an unknown"):
                    load(tmp_path / "model")
                forged += 1
                continue
            loaded = load(tmp_path / "model")
            for name, value in added.items():
                values = [v for k, v in loaded.get_params().items() if k.split("__")[-1] == name]
                assert value not in values
                forged += 1
    assert forged > 20


def mutate(count, seed):
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.mutated_model_files", str(count), str(seed)],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    outcome = json.loads(result.stdout)
    assert outcome["same"] + outcome["refused"] + outcome["forged"] == count
    assert set(outcome["kinds"]) == {m.__name__ for m in mutated_model_files.MUTATIONS}
    assert outcome["kinds"]["flip_bits"] == {"refused": sum(outcome["kinds"]["flip_bits"].values())}
    assert outcome["memory"] < 10
    assert outcome["seconds"] < 5
    return outcome


def test_mutated_files_load_the_same_model_or_are_refused():
    outcome = mutate(400, 1)
    assert outcome["refused"] > 300
    assert outcome["forged"] > 2  # a forger may change a model, and nothing else


@pytest.mark.full
def test_10_000_mutated_files(capsys):
    outcome = mutate(10_000, 2)
    with capsys.disabled():
        print(f"\n10 000 mutated model files: {json.dumps(outcome)}")


# ---- saving, interrupted ----


def kill(count):
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_saves", str(count), "0"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    outcome = json.loads(result.stdout)
    assert outcome["first"] + outcome["second"] == count
    return outcome


def test_killed_saves_leave_a_whole_file():
    kill(8)


@pytest.mark.full
def test_300_killed_saves(capsys):
    outcome = kill(300)
    for stage, least in {"making": 60, "writing": 60, "renaming": 20, "caught halfway": 60}.items():
        assert outcome[stage] >= least  # else the test has proved little
    with capsys.disabled():
        print(f"\n300 killed saves: {json.dumps(outcome)}")


@contextlib.contextmanager
def small_disk(directory):
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextlib.contextmanager
def small_files(directory):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextlib.contextmanager
def not_root():
    """Root may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("trouble", "message"), [(small_disk, "No space left"), (small_files, "File too large")]
)
def test_no_room_on_the_disk(trouble, message, tmp_path):
    directory = tmp_path / "disk"
    directory.mkdir()
    path = directory / "model.quadric"
    old = make("network linear float64")[0]
    large = Network.create(100, [("quadratic", 10, "logistic")], rng=0)
    with trouble(directory):
        save(old, path)
        before = path.read_bytes()
        with pytest.raises(OSError, match=f"cannot save the model: {message}.*untouched.*{path}"):
            save(large, path)
        assert path.read_bytes() == before
        assert list(directory.iterdir()) == [path]
        assert load(path).n_inputs == old.n_inputs


def test_places_that_cannot_be_written(tmp_path):
    model = make("network linear float64")[0]
    closed = tmp_path / "closed"
    closed.mkdir()
    path = closed / "model.quadric"
    save(model, path)
    before = path.read_bytes()
    for place in (tmp_path, *list(tmp_path.parents)[:2]):
        place.chmod(0o755)
    for mode, directory_mode in ((0o666, 0o555), (0o444, 0o777)):
        path.chmod(mode)
        closed.chmod(directory_mode)
        with not_root(), pytest.raises(PermissionError, match=r"cannot save the model.*untouched"):
            save(model, path)
        assert path.read_bytes() == before
    closed.chmod(0o755)
    assert list(closed.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="cannot save the model: No such"):
        save(model, tmp_path / "nowhere" / "model")


def test_links_and_modes_are_kept_and_leftovers_removed(tmp_path):
    model = make("network linear float64")[0]
    path, link = tmp_path / "model", tmp_path / "link"
    save(model, path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    old, new = temporary_name(path), temporary_name(path)
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    save(make("network quadratic float64")[0], link)
    assert link.is_symlink()
    assert load(path).layers[0].kind == "quadratic"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == sorted([path, link, new])


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(make("network linear float64")[0], path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
