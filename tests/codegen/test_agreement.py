"""Generated programs compute what the models predict, for all rows."""

import numpy as np
import pytest

from quadric import Network
from quadric.codegen import generate
from tests.support.generated_code import run_c, run_javascript, run_python


def texts_of(X):
    return [i for i, d in enumerate(getattr(X, "dtypes", [])) if d.kind not in "fiub"]


def test_python(case):
    model, X, probabilities, labels = case
    found = run_python(generate(model, "python"), X)
    wanted = "values" if isinstance(model, Network) else "probabilities"
    np.testing.assert_allclose(found[wanted], probabilities, atol=1e-12, rtol=0)
    assert found["label"] == labels


def test_javascript(case, tmp_path):
    model, X, probabilities, labels = case
    found = run_javascript(generate(model, "javascript"), X, tmp_path)
    wanted = "values" if isinstance(model, Network) else "probabilities"
    np.testing.assert_allclose(found[wanted], probabilities, atol=1e-12, rtol=0)
    assert found["label"] == labels


@pytest.mark.parametrize(("real", "atol"), [("double", 1e-12), ("float", 1e-5)])
def test_c(case, tmp_path, real, atol):
    model, X, probabilities, labels = case
    text = generate(model, "c", arithmetic=real)
    found, index = run_c(
        text,
        X,
        tmp_path,
        width=probabilities.shape[1],
        call="values" if isinstance(model, Network) else "probabilities",
        text_columns=texts_of(X),
        real=real,
    )
    np.testing.assert_allclose(found, probabilities, atol=atol, rtol=0)
    classes = np.arange(10) if isinstance(model, Network) else model.classes_
    assert classes[index].tolist() == labels
