"""Run ONNX graphs, and compare them with the models that were exported."""

import numpy as np
import onnx
import onnxruntime
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import QuadraticClassifier
from quadric.onnx import export

NUMBERS = ["sepal length", "sepal width", "c", "d"]


def mixed(color, size=None):
    numeric = Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())])
    parts = [
        ("numbers", numeric, NUMBERS),
        ("color", color, ["color"]),
        ("size", size or OneHotEncoder(), ["size", "flag"]),
    ]
    return make_pipeline(ColumnTransformer(parts), QuadraticClassifier((), alpha=0.1))


def session(proto):
    onnx.checker.check_model(proto, full_check=True)
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def run(proto, X, dtype="float32"):
    """Return the outputs by name, for a matrix or a table."""
    graph = session(proto)
    if isinstance(X, pd.DataFrame):
        feed = {node.name: column(X[node.name], node.type) for node in graph.get_inputs()}
    else:
        feed = {"X": np.asarray(X, dtype=dtype)}
    names = [node.name for node in graph.get_outputs()]
    return dict(zip(names, graph.run(None, feed), strict=True))


def column(values, kind):
    if kind == "tensor(string)":
        array = values.fillna("").to_numpy(object)
    else:
        array = values.to_numpy({"tensor(int64)": "int64", "tensor(float)": "f4"}.get(kind, "f8"))
    return array.reshape(-1, 1)


def assert_same(model, X, *, dtype="float32", atol=1e-5, proto=None):
    """Check labels, and probabilities to `atol`; return the graph."""
    proto = export(model, dtype=dtype) if proto is None else proto
    out = run(proto, X, dtype)
    assert list(out) == ["label", "probabilities"]
    assert out["probabilities"].dtype == dtype
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), atol=atol, rtol=0)
    np.testing.assert_array_equal(out["label"], model.predict(X))
    return proto
