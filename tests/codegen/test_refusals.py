"""What generated code cannot compute is refused, by `generate` or by the code itself."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.codegen import generate
from tests.codegen.conftest import fitted
from tests.support.generated_code import run_c, run_javascript, run_sqlite


def iris(step):
    X, y = load_iris(return_X_y=True)
    return make_pipeline(step, QuadraticLogisticRegression(C=0.1, max_iter=1000)).fit(X, y), X


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("step", [StandardScaler(), KBinsDiscretizer(3, encode="ordinal")])
def test_rows_that_the_model_rejects_get_no_label(value, step, tmp_path):
    model, X = iris(step)
    row = X[:1].copy()
    row[0, 2] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(row)
    _, label = run_c(generate(model, "c"), row, tmp_path, width=3)
    assert label.tolist() == [-1]
    _, rows = run_sqlite(generate(model, "sqlite", keep=["id"]), row, ["x0", "x1", "x2", "x3"])
    assert rows == [(0, *[None] * 7)]
    module = {}
    exec(generate(model, "python"), module)
    with pytest.raises(ValueError, match="missing, infinite or unknown"):
        module["label"](row[0].tolist())
    if value != value:
        with pytest.raises(AssertionError, match="missing, infinite or unknown"):
            run_javascript(generate(model, "javascript"), row, tmp_path)


def test_unknown_categories_get_no_label():
    model, _ = fitted("mixed")
    module = {}
    exec(generate(model, "python"), module)
    known = [10.0, -1.0, "a color that is ignored", 2, 0.0]
    assert module["label"](known) in model.classes_
    with pytest.raises(ValueError, match="missing, infinite or unknown"):
        module["label"]([10.0, -1.0, "red", 3, 0.0])


def test_steps_with_code_are_refused_by_name():
    model, _ = iris(FunctionTransformer(np.log1p))
    with pytest.raises(TypeError, match="step 'functiontransformer' cannot be exported"):
        generate(model, "c")


def test_large_models_are_refused_with_their_size():
    net = Network.create(300, [("quadratic", 10, "softmax")], rng=0)
    with pytest.raises(ValueError, match=r"454,510 parameters, about 10 MB of text.*truncate"):
        generate(net, "sqlite")


def test_models_without_a_proof_are_refused():
    for name, reason in (("hidden wine", "fold to a single"), ("784-30-10", "fold to a single")):
        model, X = fitted(name)
        with pytest.raises(ValueError, match=reason):
            generate(model, "c", X=X)
    model, X = iris(KBinsDiscretizer(3, encode="ordinal"))
    with pytest.raises(ValueError, match="must be affine or encode categories"):
        generate(model, "c", X=X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"language": "cobol"}, "language must be one of 'c'"),
        ({"language": "c", "arithmetic": "half"}, "arithmetic must be one of"),
        ({"language": "c", "name": "a b"}, "name must be a letter followed by"),
    ],
)
def test_arguments_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        generate(fitted("iris")[0], **wrong)


@pytest.mark.parametrize(("unit", "problem"), [(1e-30, "too small"), (1e36, "too large")])
def test_numbers_that_do_not_fit_into_integers_are_refused(unit, problem):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=0.1, max_iter=1000))
    with pytest.raises(ValueError, match=f"{problem} for integers"):
        generate(model.fit(X * unit, y), "c", X=X * unit, arithmetic="int32")
    assert "proven" in generate(model, "c", X=X * unit, arithmetic="float")
