"""Every model that a file can store, in Python, C and SQL: all kinds, all steps."""

import numpy as np
import pandas as pd
import pytest

from quadric.codegen import generate
from quadric.models import ModelView
from tests.support.fitted_models import MODELS, make
from tests.support.generated_code import run_c, run_javascript, run_python, run_sqlite


def case(name):
    """The model, the rows that generated code takes, and what the model computes for them."""
    model, X = make(name)
    view = ModelView.of(model)
    X = X[:40]
    read = view.read(X)
    names = view.input_names
    frame = pd.DataFrame(read, columns=names) if not hasattr(read, "columns") else read
    if names is None:
        frame.columns = [f"x{i}" for i in range(frame.shape[1])]
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    values = model.forward(X) if hasattr(model, "forward") else getattr(model, method)(X)
    return model, frame, np.reshape(values, (len(frame), -1)), model.predict(X)


def assert_labels(found, wanted, model):
    if hasattr(model, "predict_proba"):
        assert np.array_equal(np.asarray(found, dtype=wanted.dtype), wanted)


@pytest.mark.slow
@pytest.mark.sample(10)
@pytest.mark.parametrize("name", MODELS)
def test_python_computes_what_the_model_predicts(name):
    model, X, values, labels = case(name)
    atol = 1e-12 if ModelView.of(model).network.dtype == np.float64 else 1e-5
    found = run_python(generate(model, "python"), X)
    computed = found.get("probabilities", found.get("values"))
    np.testing.assert_allclose(computed, values, atol=atol, rtol=atol)
    if "label" in found:
        assert_labels(found["label"], labels, model)


def texts_of(model):
    from quadric.codegen._translation import program_of

    columns = program_of(ModelView.of(model).after_reading).columns
    return [i for i, column in enumerate(columns) if column.kind == "text"]


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", MODELS)
def test_c_and_sql_compute_what_the_model_predicts(name, tmp_path):
    model, X, values, labels = case(name)
    atol = 1e-9 if ModelView.of(model).network.dtype == np.float64 else 1e-5
    text = generate(model, "c")
    call = "probabilities" if "model_probabilities" in text else "values"
    texts = texts_of(model)
    found, index = run_c(text, X, tmp_path, width=values.shape[1], call=call, text_columns=texts)
    np.testing.assert_allclose(found, values, atol=atol, rtol=atol)
    if "model_label(" in text and hasattr(model, "predict_proba"):
        classes = ModelView.of(model).labels
        assert classes[index].tolist() == labels.tolist()
    names, rows = run_sqlite(generate(model, "sqlite", keep=["id"]), X, list(X.columns))
    places = [i for i, one in enumerate(names) if one.startswith(("probability", "value"))]
    computed = np.array([[row[i] for i in places] for row in rows], dtype=float)
    np.testing.assert_allclose(computed, values, atol=atol, rtol=atol)
    found = run_javascript(generate(model, "javascript"), X, tmp_path)
    computed = found.get("probabilities", found.get("values"))
    np.testing.assert_allclose(computed, values, atol=atol, rtol=atol)
