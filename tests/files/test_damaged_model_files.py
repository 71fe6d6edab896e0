"""Damaged and forged model files are refused, before memory is allocated for them."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import (
    ModelFileError,
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    load,
    save,
)
from quadric.files import _safetensors as container, info
from quadric.files._describe import describe
from tests.support import damage
from tests.support.fitted_models import make
from tests.support.forging.files import NESTED
from tests.support.memory import peak

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too short"),
        (b"PK\x03\x04" + b"x" * 100, "header does not fit"),
        (pickle.dumps(damage.Command()) + b"x" * 50, "not a model file"),
        (struct.pack("<Q", 2**63) + b"{}", "header does not fit"),
        (struct.pack("<Q", 2) + b"{}", "without the key 'quadric'"),
        (struct.pack("<Q", 2) + b"[]", "does not start like a safetensors"),
    ],
)
def test_other_files_are_refused_with_a_reason(content, message, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    for reader in (load, info):
        with pytest.raises(ModelFileError, match=f"{path}.*{message}"):
            reader(path)


def test_a_file_cannot_choose_a_class_outside_the_table(network_file):
    description, _ = container.read(network_file)
    for name in ("os.system", "posix.system", "subprocess.Popen", "FunctionTransformer", "Network"):
        forged = {"type": "fitted", "class": name, "parameters": {}, "facts": {}}
        network_file.write_bytes(container.to_bytes({**description, "model": forged}, {}))
        with pytest.raises(ModelFileError, match="does not describe a valid model"):
            load(network_file)


@pytest.mark.parametrize("model", [2.5, None, "passthrough", [], True])
def test_a_description_that_is_not_an_object_is_refused(model, network_file):
    description, _ = container.read(network_file)
    network_file.write_bytes(container.to_bytes({**description, "model": model}, {}))
    with pytest.raises(ModelFileError, match="does not describe a valid model"):
        load(network_file)


def test_a_tensor_can_be_used_only_once(saved, tmp_path):
    description, tensors = container.read(saved["classes text"][2])
    facts = description["model"]["facts"]
    facts["loss_curve_"] = [facts["loss_curve_"]] * 1000
    (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match="the tensor loss_curve_ is used twice"):
        load(tmp_path / "model")


@pytest.mark.unix
def test_directories_and_pipes_are_refused_immediately(tmp_path):
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
def test_loading_a_large_model_takes_little_memory(n, dtype, tmp_path):
    network = Network.create(n, [("quadratic", 2_000_000 // n**2, "softmax")], dtype=dtype, rng=0)
    save(network, tmp_path / "model")
    load(tmp_path / "model")
    size, _ = peak(lambda: load(tmp_path / "model"))
    assert size < 5 * (tmp_path / "model").stat().st_size


def _crafted_lists(description, tensors):
    description["model"]["parameters"]["hidden_layer_sizes"] = [NESTED] * 30_000
    tensors["loss_curve_"] = np.zeros(700_000)  # a large file may have a large header


def _crafted_extra(description, tensors):
    description["extra"] = {"a": [i + 1000 for i in range(600_000)]}


def _crafted_texts(description, tensors):
    texts = "".join(map(chr, range(2048, 50_000))).encode()
    tensors["classes_"] = np.frombuffer(texts, dtype=np.uint8)
    tensors["classes_.lengths"] = np.full(len(texts) // 3, 3)
    described = {"type": "array", "tensor": "classes_", "dtype": "object", "others": []}
    description["model"]["facts"]["classes_"] = described


@pytest.mark.slow
@pytest.mark.parametrize("craft", [_crafted_lists, _crafted_extra, _crafted_texts])
def test_memory_to_load_a_crafted_file(craft, saved, tmp_path):
    description, tensors = container.read(saved["classes objects"][2])
    craft(description, tensors)
    path = tmp_path / "model"
    path.write_bytes(container.to_bytes(description, tensors))
    load(saved["classes objects"][2])  # import everything first
    size, _ = peak(lambda: load(path))
    assert size > 2 * path.stat().st_size  # the file was read
    assert size < 10 * path.stat().st_size + 2**19


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{},", '"a":1000,', '"ab",'])
def test_a_header_of_many_small_pieces_is_not_parsed(text, network_file):
    header, body = damage.split(network_file.read_bytes())
    network_file.write_bytes(damage.joined(header + (text * 10**6).encode(), body))
    size, found = peak(lambda: load(network_file))
    assert "too many objects for a model file of this size" in str(found)
    assert size < 3 * network_file.stat().st_size


def _insert(entry):
    def forge(model):
        model["parameters"]["steps"].insert(0, {"type": "tuple", "items": ["z", entry]})

    return forge


def _entry(name, facts, **parameters):
    return {"type": "fitted", "class": name, "parameters": parameters, "facts": facts}


def _without_facts(model):
    model["facts"] = None


FORGED_PIPELINES = {
    "the fitted attributes of Pipeline are missing": _without_facts,
    "steps of Pipeline must be a list of scikit-learn's steps": _insert(7),
    "StandardScaler is not fitted": _insert(_entry("StandardScaler", None)),
    "a list of named steps": _insert(_entry("FeatureUnion", {}, transformer_list=[])),
    "expects 4 columns, but the input has 134217728": _insert(
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
    """It is accepted if a later step drops or imputes the column, as in models fitted this way."""
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


def test_unsigned_indices_that_decrease_are_refused(saved, tmp_path):
    """The differences of unsigned integers wrap around and are positive."""
    description, tensors = container.read(saved["imputer"][2])
    steps = description["model"]["parameters"]["steps"]
    marked = steps[0]["items"][1]["facts"]["marked"]
    marked["dtype"], tensors[marked["tensor"]] = "uint64", np.array([10**9, 2, 1, 0])
    (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match="marked of SimpleImputer must be increasing indices"):
        load(tmp_path / "model")


def test_a_class_weight_that_is_not_a_number_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = QuadraticClassifier(class_weight={0: 1.0, 1: 2.0}, max_iter=100)
    model.fit(X, (X[:, 0] > X[:, 1]).astype(int)).set_params(class_weight={0: "x", 1: 2.0})
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(model)))
    with pytest.raises(ModelFileError, match="class_weight of QuadraticClassifier must be"):
        load(tmp_path / "model")


TRAINED_ON = np.random.default_rng(0).normal(size=(40, 2)).round()


def _fit(step):
    model = make_pipeline(step, QuadraticClassifier((), alpha=1e-3, max_iter=50))
    return model.fit(TRAINED_ON, TRAINED_ON[:, 0] > 0)


def _tiny_scale():
    model = _fit(StandardScaler())
    model[0].scale_[1] = 5e-324
    return model


def _long_directions():
    model = _fit(PCA())
    model[0].components_[:] = -1e308
    return model


def _no_penalty():
    model = _fit(StandardScaler())
    del model[1]._alpha
    return model


def _text_marker():
    return _fit(SimpleImputer()).set_params(simpleimputer__missing_values="?")


def _unsorted_categories():
    given = [np.unique(column) for column in TRAINED_ON.T]
    model = _fit(OneHotEncoder(categories=given))
    return model.set_params(onehotencoder__categories=[given[0][::-1], given[1]])


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (_tiny_scale, "scale_ of StandardScaler must be at least 1e-162"),
        (_long_directions, "components_ of PCA must be unit vectors"),
        (_no_penalty, "_alpha of QuadraticClassifier must be a number"),
        (_text_marker, "missing_values of SimpleImputer must be a number or NaN"),
        (_unsorted_categories, "categories of OneHotEncoder must be increasing"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_values_that_fit_never_computes_are_refused(forge, message, tmp_path):
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(forge())))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sparse_output_without_sparse_blocks_is_dense(tmp_path):
    model = _fit(ColumnTransformer([("a", StandardScaler(), [0, 1])]))
    expected = model.predict_proba(TRAINED_ON)
    model[0].sparse_output_ = True  # scikit-learn would fail to join dense blocks
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(model)))
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(TRAINED_ON), expected)


@pytest.mark.parametrize("message", FORGED_PIPELINES)
def test_steps_that_do_not_fit_are_refused_before_anything_is_allocated(message, saved, tmp_path):
    path = tmp_path / "model"
    description, tensors = container.read(saved["scaler"][2])
    FORGED_PIPELINES[message](description["model"])
    path.write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match=message):
        load(path)
    size, _ = peak(lambda: load(path))
    assert size < 10 * path.stat().st_size + 2**19


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model, _ = make("scaler")
    model[0].scale_ = np.ones(7)
    with pytest.raises(ModelFileError, match="is not saved, because it could not be loaded again"):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def _entries(value):
    """Yield all estimators and steps in a description."""
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


@pytest.mark.slow
def test_parameters_that_control_running_are_not_read_from_a_file(saved, tmp_path):
    forged = 0
    for path in (saved["columns"][2], FIXTURES / "format1_pipeline.quadric"):
        places = len(_entries(container.read(path)[0]["model"]))
        for k in range(places):
            description, tensors = container.read(path)
            entry = _entries(description["model"])[k]
            added = RUNNING.get(entry["class"], {"n_jobs": 2})
            entry["parameters"].update(added)
            (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
            with pytest.raises(ModelFileError, match=f"gives {entry['class']} an unknown"):
                load(tmp_path / "model")
            forged += 1
    assert forged > 12


@pytest.mark.parametrize(
    "kinds",
    [
        {"type": "scalar type", "name": "float64"},
        {"type": "builtin", "name": "float"},
        [["linear"]],
        [{"type": "builtin", "name": "float"}],
    ],
)
def test_faults_R12_layer_kinds_that_are_not_strings_are_loaded(kinds, saved, tmp_path):
    description, tensors = container.read(saved["classes text"][2])
    description["model"]["parameters"]["layer_kinds"] = kinds
    (tmp_path / "model").write_bytes(container.to_bytes(description, tensors))
    with pytest.raises(ModelFileError, match="layer_kinds"):
        load(tmp_path / "model")


@pytest.mark.parametrize("kinds", [np.float64, [["linear"]], [float], np.array(3.0)])
def test_faults_R12_layer_kinds_that_are_not_strings_raise_a_type_error(kinds):
    model = QuadraticClassifier((), layer_kinds=kinds, max_iter=10)
    with pytest.raises(ValueError, match="layer_kinds must be 'auto'"):
        model.fit(TRAINED_ON, TRAINED_ON[:, 0] > 0)


@pytest.mark.parametrize("fill", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_faults_R12_an_infinite_fill_value_is_loaded(fill, dtype, tmp_path):
    model = _fit(SimpleImputer())
    model[0].statistics_ = np.array([0.0, fill], dtype=dtype)
    (tmp_path / "model").write_bytes(container.to_bytes(*describe(model)))
    with pytest.raises(ModelFileError, match="statistics_ of SimpleImputer must be not infinite"):
        load(tmp_path / "model")
