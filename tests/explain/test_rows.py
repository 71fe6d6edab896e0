"""`rows` has one dictionary per term, for any data frame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import quadric
from quadric import QuadraticClassifier, SparseQuadraticClassifier, SparseQuadraticRegressor
from quadric.explain import explain

KEYS = [
    *("output", "kind", "input", "other_input", "center", "other_center"),
    *("coefficient", "unit", "effect", "share", "frequency"),
]


def value(rows, constant, X):
    """The equation, computed from the rows."""
    z = np.full(len(X), constant)
    for row in rows:
        term = row["coefficient"] * (X[row["input"]] - row["center"])
        if row["other_input"] is not None:
            term = term * (X[row["other_input"]] - row["other_center"])
        z += term
    return z


@pytest.mark.parametrize("sparse", [True, False])
def test_the_rows_are_the_equation(sparse):
    data = load_iris(as_frame=True)
    last = (
        SparseQuadraticClassifier(max_terms=4)
        if sparse
        else QuadraticClassifier((), random_state=0)
    )
    model = make_pipeline(StandardScaler(), last).fit(data.data, data.target)
    found = explain(model, data.data, top=None)
    rows = found.rows()
    assert all(list(row) == KEYS for row in rows)
    assert len(pd.DataFrame(rows)) == sum(item.n_terms for item in found.classes)
    z = np.log(model.predict_proba(data.data))
    z -= z.mean(axis=1, keepdims=True)
    for k, item in enumerate(found.classes):
        mine = [row for row in rows if row["output"] == item.label]
        np.testing.assert_allclose(value(mine, item.constant, data.data), z[:, k], atol=1e-6)
        assert sum(row["share"] for row in mine) == pytest.approx(1)


@pytest.mark.parametrize("scaler", [None, StandardScaler(), MinMaxScaler()])
def test_frequencies_and_units_belong_to_the_inputs(scaler, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)) * [1, 10, 100] + 5, columns=["a", "b", "c"])
    y = (X.a - 5) * (X.c - 5) / 100 + (X.b - 5) / 10 + ((X.b - 5) / 10) ** 2
    model = SparseQuadraticRegressor(alpha=0.1, random_state=0)
    whole = model if scaler is None else make_pipeline(scaler, model)
    whole.fit(X, y)
    last = whole if scaler is None else whole[-1]
    known = last.stability(X if scaler is None else whole[:-1].transform(X), y, n_pairs=2)
    quadric.save(whole, tmp_path / "model.quadric")
    for one in (whole, quadric.load(tmp_path / "model.quadric")):
        rows = {(row["input"], row["other_input"]): row for row in explain(one, X).rows()}
        assert set(rows) == {("a", "c"), ("b", None), ("b", "b")}
        assert rows["b", None]["unit"] == "y per b"
        assert rows["b", "b"]["unit"] == "y per b²"
        assert rows["a", "c"]["unit"] == "y per a·c"
        for names, term in ((("a", "c"), (0, 2)), (("b", None), (1,)), (("b", "b"), (1, 1))):
            assert rows[names]["frequency"] == known.by_term.get(term, 0.0)
    assert "selected 100 %" in str(explain(one, X))
    assert explain(one, X).classes[0].table()[1][2] == "100 %"
    last.fit(X.to_numpy(), y)
    assert not hasattr(last, "stability_")


def test_a_hidden_layer_has_no_rows():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((3,), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="has a hidden layer"):
        explain(model).rows()
