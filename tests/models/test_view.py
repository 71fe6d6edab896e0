"""One view of a model: what other packages know about it, read and folded once."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression, certify, models
from quadric.models import ModelView, NotAffineError, _model_view

X, Y = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X, columns=NAMES)
LABELS = np.array(["setosa", "versicolor", "virginica"])
BILINEAR = [("linear", 6, "identity"), ("reduced", 8, "identity"), ("linear", 3, "softmax")]
# The packages that ask the view, instead of reading fitted objects themselves.
READERS = ("certify", "convert", "explain", "onnx")
LEARNED = {"classes_", "feature_names_in_"}


@pytest.fixture(scope="module")
def pipeline():
    inner = make_pipeline(VarianceThreshold(), StandardScaler())
    model = make_pipeline(inner, "passthrough", QuadraticLogisticRegression())
    return model.fit(FRAME, LABELS[Y])


def test_the_parts_of_a_pipeline(pipeline):
    view = ModelView.of(pipeline)
    assert [type(step).__name__ for step in view.transformers] == [
        "VarianceThreshold",
        "StandardScaler",
    ]
    assert view.network is pipeline[-1].network_
    assert view.name == "QuadraticLogisticRegression"
    assert list(view.input_names) == NAMES
    assert view.n_inputs == 4
    assert view.labels.tolist() == LABELS.tolist()
    assert view.chooses_a_class
    assert [len(inside) for inside in view.operations.values()] == [0, 1]  # nothing is dropped
    assert view.coordinates.names == NAMES
    assert "StandardScaler undone" in view.coordinates.note("axes")
    np.testing.assert_allclose(view.coordinates.reach(FRAME), X)


def test_a_network_has_numbers_as_labels():
    view = ModelView.of(Network.create(4, [("quadratic", 1, "logistic")], rng=0))
    assert view.classes is None
    assert view.labels.tolist() == [0, 1]
    assert view.input_names is None
    assert not view.transformers


def test_several_labels_at_once_are_not_a_choice():
    model = QuadraticClassifier(hidden_layer_sizes=(), random_state=0, max_iter=5)
    view = ModelView.of(model.fit(X, np.column_stack([Y > 0, Y > 1])))
    assert view.is_multilabel
    assert not view.chooses_a_class


def test_a_model_without_a_network_is_refused():
    with pytest.raises(TypeError, match="Got StandardScaler\\."):
        ModelView.of(StandardScaler())
    with pytest.raises(TypeError, match=r"a fitted quadric estimator.*; call fit first"):
        ModelView.of(QuadraticClassifier())


def test_why_there_is_no_affine_map():
    model = make_pipeline(PowerTransformer(), QuadraticLogisticRegression()).fit(X, Y)
    with pytest.raises(NotAffineError, match="PowerTransformer raises values to powers"):
        assert ModelView.of(model).affine_maps
    assert ModelView.of(model).coordinates.kind == "features"


def test_the_fold_is_computed_once_and_is_the_network():
    network = Network.create(4, BILINEAR, rng=0)
    view = ModelView.of(network)
    assert view.one_layer is view.one_layer
    np.testing.assert_allclose(view.one_layer.forward(X)[0], network.logits(X), rtol=1e-9)
    deep = ModelView.of(Network.create(4, [("quadratic", 3, "relu"), ("linear", 2, "softmax")]))
    assert len(deep.folded.layers) == 2
    with pytest.raises(ValueError, match="folds to 2 layers"):
        assert deep.one_layer


@pytest.mark.parametrize("bilinear", [False, True])
def test_a_radius_reads_and_folds_the_model_once(pipeline, bilinear, monkeypatch):
    calls = {}

    def count(owner, name):
        function = getattr(owner, name)

        def counted(*given):
            calls.setdefault(name, []).append(given[0])
            return function(*given)

        monkeypatch.setattr(owner, name, counted)

    model = Network.create(4, BILINEAR, rng=0) if bilinear else pipeline
    network = ModelView.of(model).network
    for owner, name in [
        (_model_view, "split"),
        (_model_view, "fold_layers"),
        (certify._model_and_rounding, "fold_layers"),
        (_model_view, "layer_to_quadratic"),
    ]:
        count(owner, name)
    certify.radius(model, X[:5] if bilinear else FRAME[:5])
    assert calls["split"] == [model]
    folded = [one for one in calls["fold_layers"] if one is network]
    assert len(folded) == 1
    assert len(calls["fold_layers"]) == 2  # the other one has the absolute values
    assert "layer_to_quadratic" not in calls


def reads(source):
    """Return the names of learned attributes that a module reads, also by `getattr`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            found |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    return found & LEARNED


@pytest.mark.parametrize("package", READERS)
def test_only_models_reads_what_scikit_learn_has_learned(package):
    folder = Path(models.__file__).parents[1] / package
    assert not {
        path.name: found for path in folder.glob("*.py") if (found := reads(path.read_text()))
    }


def test_a_reader_is_detected():
    assert reads("model.classes_") == {"classes_"}
    assert reads('getattr(model, "feature_names_in_", None)') == {"feature_names_in_"}
    assert not reads("model.classes_ = labels")
