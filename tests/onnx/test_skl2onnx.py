"""skl2onnx converts Pipelines and ensembles of the estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from quadric import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor

pytest.importorskip("onnxruntime")
pytest.importorskip("pandas")
skl2onnx = pytest.importorskip("skl2onnx")

from quadric.onnx import register  # noqa: E402
from tests.support.onnx_graphs import assert_same, mixed, run, session  # noqa: E402
from tests.support.processes import output_of  # noqa: E402


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "last", [QuadraticClassifier((), alpha=0.1), QuadraticLogisticRegression()]
)
def test_skl2onnx_converts_classifiers(last, dtype):
    register()  # a second call has no effect
    X, y = load_wine(return_X_y=True)
    X, names = X.astype(dtype), np.array(["a", "b", "c"])[y]
    model = make_pipeline(StandardScaler(), last).fit(X, names)
    proto = skl2onnx.to_onnx(model, X[:1], options={type(last): {"zipmap": False}})
    assert_same(model, X, dtype=dtype, proto=proto, atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.slow
def test_importing_quadric_onnx_registers_the_converters():
    script = "import quadric.onnx, skl2onnx; print(*skl2onnx.supported_converters())"
    converters = output_of(script).split()
    for estimator in (QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor):
        assert f"Quadric{estimator.__name__}" in converters


def test_skl2onnx_options_are_respected():
    X, y = load_iris(return_X_y=True)
    X = X.astype("float32")
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y + 3)
    proba = model.predict_proba(X)

    def converted(**options):
        chosen = {QuadraticLogisticRegression: options} if options else None
        return run(skl2onnx.to_onnx(model, X[:1], options=chosen), X)

    label, maps = converted().values()
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose([[m[k] for k in (3, 4, 5)] for m in maps], proba, atol=1e-5)
    _, *columns = converted(zipmap="columns").values()
    np.testing.assert_allclose(np.column_stack(columns), proba, atol=1e-5)
    numbers = converted(zipmap=False, nocl=True)
    np.testing.assert_array_equal(numbers["label"] + 3, model.predict(X))
    labels = converted(zipmap=False, output_class_labels=True)
    np.testing.assert_array_equal(labels["class_labels"], [3, 4, 5])


def test_skl2onnx_converts_pipelines_that_export_does_not():
    """PolynomialFeatures with a regressor, and several labels."""
    X = load_iris().data.astype("float32")
    last = QuadraticRegressor((3,), alpha=0.1, random_state=0)
    model = make_pipeline(PolynomialFeatures(2), StandardScaler(), last).fit(X[:, :2], X[:, 3])
    out = run(skl2onnx.to_onnx(model, X[:1, :2]), X[:, :2])["variable"]
    np.testing.assert_allclose(out[:, 0], model.predict(X[:, :2]), atol=1e-5)
    Y = np.column_stack([X[:, 0] > 6, X[:, 1] > 3]).astype(int)
    labels = make_pipeline(StandardScaler(), QuadraticClassifier((), alpha=0.1)).fit(X, Y)
    options = {QuadraticClassifier: {"zipmap": False}}
    proto = assert_same(labels, X, proto=skl2onnx.to_onnx(labels, X[:1], options=options))
    assert [node.shape for node in session(proto).get_outputs()] == [[None, 2], [None, 2]]


def test_skl2onnx_converts_columns_of_several_types(table):
    """The text has no missing values, because skl2onnx has no imputer for text."""
    frame, y = table
    frame = frame.astype({"flag": "int64"}).assign(color=frame["color"].fillna("none"))
    model = mixed(OneHotEncoder(handle_unknown="ignore")).fit(frame, y)
    proto = skl2onnx.to_onnx(
        model, frame.drop(columns="unused")[:1], options={QuadraticClassifier: {"zipmap": False}}
    )
    out = run(proto, frame.rename(columns=lambda name: name.replace(" ", "_")))
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(frame), atol=1e-5)
    np.testing.assert_array_equal(out["label"], model.predict(frame))


# ---- ensembles -----------------------------------------------------------------------------

Q = QuadraticClassifier((), alpha=0.1)
SCALED = make_pipeline(StandardScaler(), Q)
BY_SCORES = {"stack_method": "decision_function", "cv": 2}
ENSEMBLES = {
    "calibrated": CalibratedClassifierCV(Q, cv=2),
    "calibrated once": CalibratedClassifierCV(Q, cv=2, ensemble=False),
    "calibrated pipeline": CalibratedClassifierCV(SCALED, cv=2),
    "calibrated search": CalibratedClassifierCV(GridSearchCV(Q, {"alpha": [0.1]}, cv=2), cv=2),
    "calibrated, sigmoids": CalibratedClassifierCV(
        QuadraticClassifier((), alpha=0.1, loss="binary_cross_entropy"), cv=2
    ),
    "calibrated, two outputs": CalibratedClassifierCV(
        QuadraticClassifier((), alpha=0.1, loss="cross_entropy"), cv=2
    ),
    "calibrated logistic": CalibratedClassifierCV(QuadraticLogisticRegression(C=0.1), cv=2),
    "stacking": StackingClassifier([("a", Q), ("b", LogisticRegression())], cv=2),
    "stacking by scores": StackingClassifier([("a", Q), ("b", clone(Q))], **BY_SCORES),
    "stacking pipelines by scores": StackingClassifier([("a", SCALED)], **BY_SCORES),
    "stacking, inputs passed": StackingClassifier([("a", Q)], passthrough=True, **BY_SCORES),
    "stacking, last": StackingClassifier([("a", LogisticRegression())], Q, cv=2),
    "voting": VotingClassifier(
        [("a", Q), ("b", CalibratedClassifierCV(Q, cv=2))], voting="soft", flatten_transform=False
    ),
    "one against the rest": OneVsRestClassifier(Q),
    "bagging": BaggingClassifier(Q, n_estimators=3, max_features=0.5, random_state=0),
    "boosting": AdaBoostClassifier(Q, n_estimators=3, random_state=0),
}


@pytest.fixture(scope="module", params=[load_iris, load_breast_cancer])
def samples(request):
    X, y = request.param(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :6].astype("float32")
    return X, y


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_give_the_same_probabilities(name, samples):
    X, y = samples
    model = clone(ENSEMBLES[name]).fit(X[::2], y[::2])
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}})
    label, probabilities = run(proto, X).values()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5, rtol=0)
    np.testing.assert_array_equal(label, model.predict(X))


def test_voting_gives_the_same_labels(samples):
    X, y = samples
    voters = [("a", Q), ("b", LogisticRegression())]
    model = VotingClassifier(voters, flatten_transform=False).fit(X[::2], y[::2])
    label = next(iter(run(skl2onnx.to_onnx(model, X[:1]), X).values()))
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("loss", ["auto", "cross_entropy"])
def test_raw_scores_are_the_decision_function(loss, samples):
    X, y = samples
    model = clone(Q).set_params(loss=loss).fit(X[::2], y[::2])
    options = {id(model): {"zipmap": False, "raw_scores": True}}
    _, scores = run(skl2onnx.to_onnx(model, X[:1], options=options), X).values()
    z = model.decision_function(X)
    expected = np.column_stack([-z, z]) if z.ndim == 1 else z
    np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-5)
