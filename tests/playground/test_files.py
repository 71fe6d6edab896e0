"""Files that the page writes are read by Python, and the other way round."""

import csv
import json
import runpy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    datasets,
    load,
    save,
)
from quadric.files import info
from tests.support.browser import export, imported, needs_node

pytestmark = [needs_node, pytest.mark.slow]

LAYERS = [{"kind": "quadratic", "outputs": 4}, {"kind": "reduced", "outputs": 3}]
POINTS = {
    "X": [0.5, 1, -1, 1.5, 3, -2, 2, 0, 0.25, 0.1, 7, 1],
    "classes": [0, 1, 2, 0, 1, 2],
    "names": ["Löwe 🙂", 'ape, "big"', "zebra"],
    "features": ["Länge [cm]", "class"],
}
EXPORTED = {
    "one neuron": {},
    "linear": {"lastKind": "linear", "data": "moons"},
    "without a scaler": {"data": "circles", "standardize": False, "lastKind": "reduced"},
    "softmax": {"data": "clusters", "output": "softmax", "layers": LAYERS, "optimizer": "adam"},
    "a sigmoid per class": {"data": "quantiles", "layers": LAYERS[:1], "batch": 8, "l2": 0.01},
    "softmax of two classes": {"data": "noisy-xor", "output": "softmax"},
    "names": {"data": "points", "points": POINTS, "output": "softmax"},
    "two names": {
        "data": "points",
        "points": POINTS | {"classes": [0, 1, 1, 0, 1, 0], "names": ["a", "b"]},
        "lastKind": "reduced",
    },
}


REGRESSIONS = {
    "one neuron": {},
    "hidden layers": {"layers": LAYERS, "lastKind": "linear", "activation": "relu"},
    "reduced": {"lastKind": "reduced", "standardize": False},
    "reduced after a hidden layer": {"layers": LAYERS[:1], "lastKind": "reduced"},
    "in the user's units": {
        "data": "points",
        "points": POINTS
        | {"values": [1e5, 2e5, 4e5, 5e4, 3e5, 2e5], "classes": [0] * 6, "names": ["price"]},
    },
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_an_exported_regressor_predicts_the_same_in_python(name, tmp_path):
    export({"data": "hills"} | REGRESSIONS[name], tmp_path)
    header, *rows = rows_of(tmp_path / "data.csv")
    assert header[2:] == ["target", "set"]
    X, y = np.array([row[:2] for row in rows], float), np.array([row[2] for row in rows], float)
    model = load(tmp_path / "trained.quadric")
    expected = json.loads((tmp_path / "probabilities.json").read_text())["values"]
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-12 * np.abs(y).max())
    last = model[-1] if isinstance(model, Pipeline) else model
    assert isinstance(last, QuadraticRegressor)
    assert len(last.layer_kinds) == len(REGRESSIONS[name].get("layers", [])) + 1
    again = clone(model).fit(X, y)  # as the page advises
    assert again.score(X, y) >= model.score(X, y)
    save(model, tmp_path / "again.quadric")


@pytest.fixture(scope="module", params=EXPORTED.values(), ids=EXPORTED)
def settings(request):
    return request.param


@pytest.fixture(scope="module")
def exported(settings, tmp_path_factory):
    """A folder with what the page exports."""
    folder = tmp_path_factory.mktemp("exported")
    export(settings, folder)
    return folder


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_an_exported_model_predicts_the_same_in_python(settings, exported, tmp_path):
    rows = rows_of(exported / "data.csv")[1:]
    X = np.array([row[:2] for row in rows], dtype=float)
    model = load(exported / "trained.quadric")
    assert isinstance(model, Pipeline) == settings.get("standardize", True)
    answer = json.loads((exported / "probabilities.json").read_text())
    outputs, names = np.array(answer["probabilities"]), answer["classes"]
    classes = model.classes_.astype(str).tolist()
    if outputs.shape[1] == 1:
        outputs = np.hstack([1 - outputs, outputs])
    outputs = outputs[:, [names.index(name) for name in classes]]
    np.testing.assert_allclose(
        model.predict_proba(X), outputs / outputs.sum(axis=1, keepdims=True), atol=1e-12
    )
    save(model, tmp_path / "again.quadric")
    assert info(exported / "trained.quadric")["extra"] == {
        "columns": settings.get("points", {"features": ["x1", "x2"]})["features"]
    }


def test_the_python_lines_run_and_learn(exported, monkeypatch, capsys):
    monkeypatch.chdir(exported)
    result = runpy.run_path("continue.py")
    before, after = load("initial.quadric"), result["model"]
    lines = capsys.readouterr().out.splitlines()
    test = {row[3] for row in rows_of(exported / "data.csv")[1:]} == {"train", "test"}
    assert [line.split(":")[0] for line in lines] == ["training accuracy", "test accuracy"][
        : 1 + test
    ]
    train, X, Y = result["train"], result["inputs"], result["Y"]
    last = before[-1] if isinstance(before, Pipeline) else before
    start = last.network_.gradients(X[train], Y[train])[0]
    assert result["network"].gradients(X[train], Y[train])[0] < start
    assert not np.array_equal(after.predict_proba(result["X"]), before.predict_proba(result["X"]))


def test_the_data_file_has_the_split_of_the_page(tmp_path):
    export({"data": "points", "points": POINTS}, tmp_path)
    header, *rows = rows_of(tmp_path / "data.csv")
    assert header == [*POINTS["features"], "class", "set"]
    assert [row[2] for row in rows] == [POINTS["names"][k] for k in POINTS["classes"]]
    export({"data": "moons", "test": 0.25}, tmp_path)
    rows = rows_of(tmp_path / "data.csv")[1:]
    assert sum(row[3] == "test" for row in rows) == 76  # 38 of 150 in each class


X, Y = datasets.clusters(40)
NAMES = np.array(["red", "green", "blue"])


def network_classifier(**options):
    return QuadraticClassifier(
        hidden_layer_sizes=(5,), layer_kinds="quadratic", max_iter=20, random_state=0, **options
    )


TRAINED = {
    "classifier": lambda: network_classifier().fit(X, Y),
    "with its scaler": lambda: make_pipeline(StandardScaler(), network_classifier()).fit(X, Y),
    "text classes": lambda: make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(
        X, NAMES[Y % 3]
    ),
    "object classes": lambda: QuadraticLogisticRegression().fit(
        X / 10, NAMES[Y % 2].astype(object)
    ),
    "float32": lambda: make_pipeline(
        StandardScaler(with_mean=False), network_classifier(dtype="float32")
    ).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("train", TRAINED.values(), ids=TRAINED)
def test_a_model_trained_in_python_is_imported(train, tmp_path):
    model = train()
    save(model, tmp_path / "model.quadric")
    found = imported(tmp_path / "model.quadric", X[::7].tolist())
    assert found["classes"] == [str(name) for name in model.classes_]
    assert found["scaled"] == isinstance(model, Pipeline)
    outputs = np.array(found["outputs"])
    if outputs.shape[1] == 1:
        outputs = np.hstack([1 - outputs, outputs])
    last = model[-1] if found["scaled"] else model
    atol = 1e-4 if last.network_.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(outputs, model.predict_proba(X[::7]), atol=atol)


def test_names_of_features_are_imported(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["width", "height"])
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(table, Y)
    save(model, tmp_path / "model.quadric")
    assert imported(tmp_path / "model.quadric", [])["features"] == ["width", "height"]


def test_a_network_is_imported(tmp_path):
    net = Network.create(2, [("linear", 3, "tanh"), ("reduced", 2, "softmax")], rng=0)
    save(net, tmp_path / "net.quadric", extra={"classes": ["no", "yes"], "columns": ["a", "b"]})
    found = imported(tmp_path / "net.quadric", X[:9].tolist())
    np.testing.assert_allclose(found["outputs"], net.forward(X[:9]), atol=1e-12)
    assert (found["classes"], found["features"]) == (["no", "yes"], ["a", "b"])


REFUSED = {
    "2 features": lambda: QuadraticLogisticRegression().fit(np.hstack([X, X]) / 10, Y),
    "QuadraticRegressor": lambda: QuadraticRegressor(max_iter=1, solver="sgd").fit(X / 10, Y),
    "MinMaxScaler": lambda: make_pipeline(MinMaxScaler(), QuadraticLogisticRegression()).fit(X, Y),
    "12 neurons": lambda: Network.create(2, [("linear", 13, "tanh"), ("linear", 2, "softmax")]),
    "exponential": lambda: Network.create(2, [("linear", 1, "exponential")]),
    "identity": lambda: Network.create(2, [("linear", 2, "identity")]),
    "2 outputs for 2 classes": lambda: Network.create(2, [("linear", 2, "logistic")]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_the_page_says_why_it_cannot_show_a_model(name, tmp_path):
    save(REFUSED[name](), tmp_path / "model.quadric")
    assert (
        name.replace("2 features", "two features")
        in imported(tmp_path / "model.quadric", [])["error"]
    )


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.quadric"
    save(Network.create(2, [("quadratic", 3, "softmax")], rng=0), path)
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:-9] + b"\1" + whole[-8:], b"a,b\n1,2\n"):
        path.write_bytes(damaged)
        assert "not a .quadric file, or it is damaged" in imported(path, [])["error"]
