"""ONNX graphs run by onnxruntime agree with the exported models."""

import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    __version__,
)
from tests.support.fixtures import CASES, NAMES, network
from tests.support.networks import ENDS, HIDDEN, KINDS, make_network

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
pd = pytest.importorskip("pandas")

from quadric.onnx import export  # noqa: E402
from tests.support.onnx_graphs import NUMBERS, assert_same, mixed, run, session  # noqa: E402

FLOATS = ("float32", "float64")


# ---- networks ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-12), ("float32", 2e-6)])
def test_graphs_agree_with_the_parity_fixture(case, dtype, atol):
    out = run(export(network(case), dtype=dtype), case["X"], dtype)
    np.testing.assert_allclose(out["outputs"], case["outputs"], atol=atol)
    np.testing.assert_allclose(out["logits"], case["logits"], atol=atol)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("last", sorted({last for _, last in ENDS}))
def test_graphs_agree_with_forward_for_every_layer_and_activation(kind, hidden, last, dtype):
    net = make_network([kind, kind], hidden, last, dtype=dtype)
    X = np.random.default_rng(1).normal(size=(20, 3)).astype(dtype)
    out = run(export(net, dtype=dtype), X, dtype)
    tight = {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(out["outputs"], net.forward(X), **tight)
    np.testing.assert_allclose(out["logits"], net.logits(X), **tight)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layers",
    [
        [("linear", 30, "logistic"), ("quadratic", 10, "logistic")],
        [("quadratic", 10, "softmax")],
        [("reduced", 10, "softmax")],
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float32_graphs_of_mnist_size_agree_with_forward(layers, dtype):
    """Compare float32 graphs with float32 and float64 networks."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(300, 784)) * (rng.uniform(size=(300, 784)) < 0.2)).astype("float32")
    net = Network.create(784, layers, init="normal", scale=0.05, rng=0, dtype=dtype)
    out = run(export(net), X)["outputs"]
    assert np.ptp(out) > 0.01
    np.testing.assert_allclose(out, net.forward(X), atol=1e-5, rtol=0)


def test_the_number_of_nodes_does_not_depend_on_the_number_of_inputs():
    for kind in KINDS:
        counts = set()
        for n in (4, 64, 784):
            net = Network.create(n, [(kind, 5, "tanh"), ("quadratic", 3, "softmax")], rng=0)
            counts.add(len(export(net).graph.node))
        (count,) = counts
        assert count <= 2 * 8
    steps = StandardScaler(), QuadraticClassifier((), alpha=0.1, max_iter=2, dtype="float32")
    counts = set()
    for n in (4, 64, 256):
        X = np.random.default_rng(n).normal(size=(12, n))
        with warnings.catch_warnings(action="ignore"):
            counts.add(len(export(make_pipeline(*steps).fit(X, [0, 1, 2] * 4)).graph.node))
    assert len(counts) == 1
    assert counts.pop() < 20


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_accept_any_batch_size(kind):
    net = make_network([kind, kind], "tanh", "softmax", dtype="float32")
    graph = session(export(net))
    assert graph.get_inputs()[0].shape == ["batch", 3]
    for rows in (0, 1, 7, 1000):
        X = np.random.default_rng(rows).normal(size=(rows, 3)).astype("float32")
        outputs, logits = graph.run(None, {"X": X})
        assert outputs.shape == logits.shape == (rows, 2)
        np.testing.assert_allclose(outputs, net.forward(X), atol=1e-5)


# ---- estimators ----------------------------------------------------------------------------

ENDINGS = [
    ("auto", ()),
    ("auto", (8,)),
    ("binary_cross_entropy", (8,)),
]


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_digits, load_wine])
@pytest.mark.parametrize(("loss", "hidden"), ENDINGS)
@pytest.mark.parametrize("trained", FLOATS)
def test_classifier_graphs_agree_with_predict_proba(load, loss, hidden, trained):
    """Compare float32 and float64 graphs with predict_proba in the dtype of training."""
    X, y = load(return_X_y=True)
    X = X.astype("float32").astype(trained)  # the same inputs for both
    last = QuadraticClassifier(hidden, loss=loss, alpha=0.1, dtype=trained)
    model = make_pipeline(StandardScaler(), last.set_params(random_state=0))
    with warnings.catch_warnings(action="ignore"):  # not converged, which does not matter
        model.fit(X, y)
    proto = assert_same(model, X)
    assert len(proto.graph.node) < 30
    if trained == "float64":
        assert_same(model, X, dtype="float64", atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "hidden"), [("auto", ()), ("binary_cross_entropy", (30,))])
def test_classifier_graphs_of_mnist_size_agree_with_predict_proba(loss, hidden):
    """Compare with predict_proba in float32 and float64, for models trained in float32."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(300, 784)) * (rng.uniform(size=(300, 784)) < 0.2)).astype("float32")
    y = np.arange(300) % 10
    last = QuadraticClassifier(hidden, loss=loss, solver="adam", max_iter=1, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # not converged, which does not matter
        model = make_pipeline(MaxAbsScaler(), last).fit(X, y)
    proto = assert_same(model, X)
    last.network_ = last.network_.astype("float64")
    assert_same(model, X, proto=proto)


def test_two_classes_keep_the_digits_of_small_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype("float32")
    for loss, classes in [("auto", y), ("cross_entropy", y == 1), ("auto", y * 2.0 - 1)]:
        last = QuadraticClassifier((), loss=loss, alpha=1.0, random_state=0)
        model = make_pipeline(StandardScaler(), last).fit(X, classes)
        proto = assert_same(model, X)
        assert run(proto, X)["label"].dtype == np.int64
    p, q = run(proto, X)["probabilities"], model.predict_proba(X)
    assert q[q > 0].min() < 1e-12
    np.testing.assert_allclose(p[q > 1e-30], q[q > 1e-30], rtol=1e-3)


def test_text_classes_give_text_labels():
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    for loss in ("multinomial", "one-vs-rest"):
        model = make_pipeline(MinMaxScaler((-1, 1)), QuadraticLogisticRegression(loss=loss))
        proto = assert_same(model.fit(X, names), X)
        assert run(proto, X)["label"].dtype == object
    assert_same(make_pipeline(PCA(2), QuadraticLogisticRegression()).fit(X, names == "setosa"), X)


def test_a_single_class_is_always_predicted():
    model = QuadraticClassifier((), alpha=0.1).fit([[0.0], [1.0]], ["only", "only"])
    model.network_.layers[0].b = [5.0]  # a logit that would select a second class
    out = run(export(model), [[0.0], [5.0]])
    np.testing.assert_array_equal(out["label"], ["only", "only"])
    np.testing.assert_array_equal(out["probabilities"], [[1.0], [1.0]])


def test_multilabel_graphs_agree_with_predict_proba():
    X, y = load_iris(return_X_y=True)
    Y = np.column_stack([y > 0, y < 2, X[:, 0] > 6]).astype(int)
    model = make_pipeline(StandardScaler(), QuadraticClassifier((), alpha=0.1, random_state=0))
    proto = assert_same(model.fit(X, Y), X)
    assert run(proto, X)["label"].shape == (150, 3)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_regressor_graphs_agree_with_predict(outputs, loss):
    X = load_iris().data
    Y = X[:, 2:] if outputs == 2 else X[:, 3]
    last = QuadraticRegressor((4,), loss=loss, alpha=0.1, random_state=0)
    model = make_pipeline(RobustScaler(), last).fit(X[:, :2], Y)
    out = run(export(model), X[:, :2])
    assert list(out) == ["variable"]
    wanted = model.predict(X[:, :2]).reshape(150, outputs)
    np.testing.assert_allclose(out["variable"], wanted, rtol=1e-5, atol=1e-5)


def test_tiny_sigmoids_are_normalized():
    """Probabilities are correct even if all sigmoids are tiny."""
    net = Network.create(1, [("linear", 3, "logistic")])
    net.layers[0].W, net.layers[0].b = [[-1.0], [-1.0], [-2.0]], [0.0, 1.0, 0.0]
    model = QuadraticClassifier((), layer_kinds="linear", loss="binary_cross_entropy", alpha=0.1)
    model.fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    model.network_ = net
    X = [[-1e30], [-50.0], [0.0], [50.0], [80.0], [1e4]]
    proto = assert_same(model, X)
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(run(proto, X)["probabilities"][4], [share, 1 - share, 0], atol=1e-5)


@pytest.mark.parametrize("loss", ["cross_entropy", "binary_cross_entropy"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [(), (3,)])
def test_large_inputs_give_finite_probabilities_if_the_model_does(loss, classes, kind, hidden):
    """If a float32 model returns probabilities, so does its graph."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).astype("float32")
    last = QuadraticClassifier(hidden, layer_kinds=kind, loss=loss, alpha=0.1, random_state=0)
    model = last.fit(X, np.arange(60) % classes)
    proto, answered = export(model), 0
    for scale in (1e3, 1e8, 1e15, 1e18, 1e30):
        far = (X * scale).astype("float32")
        try:
            wanted = model.predict_proba(far)
        except ValueError as error:
            assert "so large" in str(error)  # noqa: PT017
            continue
        out = run(proto, far)
        assert np.isfinite(out["probabilities"]).all()
        # a row whose largest logits are equal up to rounding may have either label
        near = np.abs(out["probabilities"] - wanted).max(axis=1) < 1e-5
        assert near.mean() > 0.9
        answered += 1
    assert answered >= 3


def test_infinite_logits_of_two_classes_give_0_and_1():
    model = QuadraticClassifier((), alpha=0.1).fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    out = run(export(model), [[1e30], [np.nan]])
    np.testing.assert_array_equal(out["probabilities"][0], [0, 1])
    np.testing.assert_allclose(model.predict_proba([[1e30]]), [[0, 1]])
    assert np.isnan(out["probabilities"][1]).all()


def test_inputs_that_overflow_give_nan_where_the_model_raises():
    X = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
    model = QuadraticClassifier((), alpha=0.1, random_state=0).fit(X, np.arange(60) % 3)
    far = np.array([[1e30, 1e30], [-1e30, 1e30]], dtype="float32")
    with pytest.raises(ValueError, match="so large"):
        model.predict(far)
    assert np.isnan(run(export(model), far)["probabilities"]).all()
    assert np.isfinite(run(export(model, dtype="float64"), far, "float64")["probabilities"]).all()


def test_a_large_mean_loses_no_digits():
    X, y = load_iris(return_X_y=True)
    X = (X * 16).round() / 16 + 2**14 + 1 / 16  # exact in float32, but their means are not
    np.testing.assert_array_equal(X.astype("float32"), X)
    for scaler in (StandardScaler(), MinMaxScaler()):
        model = make_pipeline(scaler, QuadraticLogisticRegression(C=100.0)).fit(X, y)
        assert_same(model, X, atol=3e-6)


# ---- preprocessing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(with_mean=False)],
        [StandardScaler(with_std=False)],
        [MinMaxScaler((1, 3), clip=True)],
        [MaxAbsScaler()],
        [RobustScaler(with_centering=False), PCA(3, whiten=True)],
        [TruncatedSVD(2, random_state=0), "passthrough", StandardScaler()],
        [SelectKBest(k=2), StandardScaler()],
        [FunctionTransformer(), StandardScaler()],
        [make_pipeline(StandardScaler(), PCA(2))],
        [FeatureUnion([("a", PCA(1)), ("b", StandardScaler())], transformer_weights={"b": 2.0})],
        [
            ColumnTransformer(
                [("a", StandardScaler(), [2, 0]), ("b", "drop", [1])], remainder="passthrough"
            )
        ],
    ],
    ids=lambda steps: type(steps[0]).__name__,
)
def test_numeric_steps_take_one_matrix(steps):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(X[::2], y[::2])
    graph = session(assert_same(model, X))
    assert [node.name for node in graph.get_inputs()] == ["X"]


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        SimpleImputer(strategy="constant", fill_value=-1.0),
        SimpleImputer(missing_values=5.0, strategy="most_frequent"),
    ],
    ids=str,
)
def test_imputed_numbers_agree(imputer):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X.round(), np.full(len(X), np.nan)])  # the last column is dropped
    if imputer.missing_values == 5.0:
        X = X[:, :4]
    else:
        X[::5, 0] = X[::7, 2] = np.nan
    model = make_pipeline(imputer, StandardScaler(), QuadraticLogisticRegression())
    # because of the column without values
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(X, y)
        assert_same(model, X)


def filled(**parameters):
    return make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(**parameters))


@pytest.mark.parametrize("dtype", FLOATS)
def test_columns_of_a_table_are_inputs_of_their_types(table, dtype):
    frame, y = table
    model = mixed(filled(handle_unknown="ignore")).fit(frame, y)
    proto = assert_same(model, frame, dtype=dtype)
    number = "tensor(float)" if dtype == "float32" else "tensor(double)"
    types = {node.name: node.type for node in session(proto).get_inputs()}
    wanted = dict.fromkeys(NUMBERS, number)
    wanted |= {"color": "tensor(string)", "size": "tensor(int64)", "flag": "tensor(int64)"}
    assert types == wanted
    assert all(node.shape == ["batch", 1] for node in session(proto).get_inputs())
    assert len(proto.graph.node) < 50
    unknown = frame.assign(color="never seen")
    assert_same(model, unknown, dtype=dtype)
    changed = np.abs(model.predict_proba(unknown) - model.predict_proba(frame)).max()
    assert changed > 1e-3


@pytest.mark.parametrize(
    "color",
    [
        OneHotEncoder(),  # a missing value is a category
        OneHotEncoder(drop="first"),
        OneHotEncoder(min_frequency=0.2),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.25),
        OneHotEncoder(max_categories=3, drop="first"),
        filled(drop=["green"], min_frequency=0.1),
        make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder()),
    ],
    ids=lambda color: re.sub(r"\s+", " ", str(color)),
)
def test_one_hot_encoders_agree(table, color):
    frame, y = table
    model = mixed(color, OneHotEncoder(drop="if_binary")).fit(frame, y)
    assert_same(model, frame)
    if getattr(color, "handle_unknown", None) == "infrequent_if_exist":
        assert_same(model, frame.assign(color="never seen"))


def test_unknown_categories_where_the_encoder_would_raise(table):
    frame, y = table
    unknown = frame.assign(color="never seen")
    model = mixed(filled()).fit(frame, y)
    with pytest.raises(ValueError, match="unknown categories"):
        model.predict(unknown)
    found = run(export(model), unknown)["probabilities"]
    model[0].named_transformers_["color"][-1].handle_unknown = "ignore"
    np.testing.assert_allclose(found, model.predict_proba(unknown), atol=1e-5)
    ordinal = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    model = mixed(ordinal).fit(frame, y)
    assert np.isnan(run(export(model), unknown)["probabilities"]).all()


def test_categories_that_are_numbers_agree():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([0.1, 0.7, np.nan], 60), rng.normal(size=60)])
    y = (np.nan_to_num(X[:, 0], nan=-1) + X[:, 1] > 0.3).astype(int)
    steps = ColumnTransformer([("a", OneHotEncoder(), [0]), ("b", "passthrough", [1])])
    model = make_pipeline(steps, QuadraticLogisticRegression()).fit(X, y)
    out = run(export(model), X)
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), atol=1e-5)
    whole = make_pipeline(OneHotEncoder(), QuadraticLogisticRegression())
    whole.fit(np.array([[2**40, 1], [2**40 + 1, 2], [5, 1]]), [0, 1, 1])
    graph = session(export(whole))
    assert [node.name for node in graph.get_inputs()] == ["x0", "x1"]
    X = np.array([[2**40, 1], [2**40 + 1, 1]])
    _, p = graph.run(None, {"x0": X[:, :1], "x1": X[:, 1:]})
    np.testing.assert_allclose(p, whole.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("encode", ["ordinal", "onehot"])
@pytest.mark.parametrize("kept", [None, *FLOATS])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bins_agree_on_either_side_of_an_edge(encode, kept, dtype):
    """A discretizer of dtype float32 rounds its inputs before it compares them with the edges."""
    X = np.random.default_rng(0).normal(size=(200, 1))
    bins = KBinsDiscretizer(5, encode=encode, dtype=kept and np.dtype(kept).type)
    model = make_pipeline(bins, QuadraticClassifier(()))
    model.fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    edges = bins.bin_edges_[0][1:-1]
    near = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    single = edges.astype("float32")
    near += [single, np.nextafter(single, np.float32(np.inf))]
    assert_same(model, np.concatenate(near)[:, None].astype(dtype), dtype=dtype)


def test_a_dropped_column_is_not_an_input(table):
    frame, y = table
    scaled = ColumnTransformer([("scale", StandardScaler(), ["d", "sepal width"])])
    model = make_pipeline(scaled, QuadraticClassifier((), alpha=0.1)).fit(frame, y)
    proto = assert_same(model, frame)
    assert [node.name for node in proto.graph.input] == ["sepal width", "d"]
    # without names, the graph takes the whole array and ignores dropped columns
    X = frame[NUMBERS].to_numpy("float32")
    by_place = make_pipeline(
        ColumnTransformer([("scale", StandardScaler(), [1, 3])]), QuadraticClassifier((), alpha=0.1)
    ).fit(X, y)
    proto = assert_same(by_place, X)
    assert [node.name for node in proto.graph.input] == ["X"]


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_columns_that_a_second_transformer_encodes_or_drops_agree(table, output):
    frame, y = table
    first = ColumnTransformer(
        [
            ("scale", StandardScaler(), ["d", "sepal width"]),
            ("keep", "passthrough", ["unused", "size"]),
            ("fill", SimpleImputer(strategy="most_frequent"), ["color"]),
        ]
    ).set_output(transform=output)
    second = ColumnTransformer(
        [("encode", OneHotEncoder(), [4, 3]), ("drop", "drop", [2])], remainder="passthrough"
    )
    model = make_pipeline(first, second, QuadraticClassifier((), alpha=0.1)).fit(frame, y)
    proto = assert_same(model, frame)
    names = [node.name for node in proto.graph.input]
    assert names == ["sepal width", "d", "color", "size"]


def test_a_column_used_as_number_and_category_is_a_float_input():
    frame = pd.DataFrame({"size": [1, 2, 3, 2, 1, 3], "t": list("abaabb")})
    parts = [("n", StandardScaler(), ["size"]), ("e", OneHotEncoder(), ["size", "t"])]
    model = make_pipeline(ColumnTransformer(parts), QuadraticLogisticRegression())
    proto = assert_same(model.fit(frame, [0, 1, 1, 0, 1, 0]), frame)
    types = {node.name: node.type for node in session(proto).get_inputs()}
    assert types == {"size": "tensor(float)", "t": "tensor(string)"}


def test_categories_that_are_equal_in_float32_are_rejected():
    X = np.array([[1.0], [1.0 + 1e-12], [2.0]])
    model = make_pipeline(OneHotEncoder(), QuadraticLogisticRegression()).fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match=r"same number in float32\. Export with dtype=\"float64\""):
        export(model)
    assert_same(model, X, dtype="float64")


# ---- file, errors --------------------------------------------------------------------------


def test_the_file_has_the_metadata(tmp_path, table):
    frame, y = table
    model = mixed(filled()).fit(frame, y)
    path = tmp_path / "model.onnx"
    proto = export(model, path)
    assert path.read_bytes() == proto.SerializeToString()
    export(model, str(path))  # overwrites the file
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    properties = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert properties["quadric_version"] == __version__
    assert properties["model"] == "QuadraticClassifier"
    assert json.loads(properties["feature_names"]) == list(frame.columns)
    assert json.loads(properties["classes"]) == ["setosa", "versicolor", "virginica"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    net = make_network(["linear", "linear"], "tanh", "softmax")
    path = tmp_path / "model.onnx"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export(net, path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_bounds_of_clip_are_scalars_as_onnx_requires():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(MinMaxScaler(clip=True), QuadraticLogisticRegression()).fit(X, y > 0)
    graph = export(model).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    clips = [node for node in graph.node if node.op_type == "Clip"]
    assert len(clips) == 2  # of the scaler and of the logits
    assert all(shapes[bound] == [] for node in clips for bound in node.input[1:])


@pytest.mark.parametrize("opset", [13, 15, 17, 21])
def test_graphs_have_the_requested_opset(opset):
    net = make_network(["quadratic", "reduced"], "relu", "softmax")
    proto = export(net, opset=opset)
    assert proto.opset_import[0].version == opset
    X = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(run(proto, X)["outputs"], net.forward(X), atol=1e-5)


def test_wrong_models_and_options_raise_helpful_errors():
    X, y = load_iris(return_X_y=True)
    last = QuadraticLogisticRegression()
    steps = Pipeline(
        [("a", StandardScaler()), ("bend", QuantileTransformer(n_quantiles=9)), ("last", last)]
    )
    with pytest.raises(TypeError, match="step 'bend' cannot be exported: QuantileTransformer is"):
        export(steps.fit(X, y))
    inner = Pipeline([("poly", PolynomialFeatures(2)), ("scale", StandardScaler())])
    steps = Pipeline([("columns", ColumnTransformer([("some", inner, [0, 1])])), ("last", last)])
    with pytest.raises(TypeError, match=r"step 'columns__some__poly' .* PolynomialFeatures"):
        export(steps.fit(X, y))
    with pytest.raises(TypeError, match=r"step 'functiontransformer' .* contains Python code"):
        export(make_pipeline(StandardScaler(), FunctionTransformer(np.tanh), last).fit(X, y))
    with pytest.raises(TypeError, match=r"Got QuadraticClassifier; call fit first\."):
        export(make_pipeline(StandardScaler(), QuadraticClassifier()))
    search = GridSearchCV(last, {"C": [1.0]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"Got GridSearchCV; pass its best_estimator_\."):
        export(search)
    net = make_network(["linear", "linear"], "tanh", "softmax")
    with pytest.raises(ValueError, match=r"dtype must be 'float32' or 'float64'\. Got 'int8'"):
        export(net, dtype="int8")
    for opset in (12, 1000, 17.0):
        with pytest.raises(ValueError, match=f"opset must be an integer from 13 to .* Got {opset}"):
            export(net, opset=opset)


def test_text_that_utf8_cannot_encode_is_rejected():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = QuadraticLogisticRegression().fit(X, np.where(X[:, 0] > 0, "a\ud800", "b"))
    with pytest.raises(ValueError, match=r"UTF-8, which cannot encode 'a\\ud800'\. Rename"):
        export(model)
    frame = pd.DataFrame({"t": ["a\ud800", "b"] * 15}, dtype=object)
    model = make_pipeline(OneHotEncoder(), QuadraticLogisticRegression()).fit(frame, [0, 1] * 15)
    with pytest.raises(ValueError, match="which cannot encode"):
        export(model)


def test_a_column_with_the_name_of_an_output_is_rejected():
    frame = pd.DataFrame({"label": ["a", "b", "a"], "Gemm": [0.0, 1.0, 2.0]})
    steps = ColumnTransformer([("e", OneHotEncoder(), ["label"]), ("n", "passthrough", ["Gemm"])])
    model = make_pipeline(steps, QuadraticLogisticRegression()).fit(frame, [0, 1, 1])
    with pytest.raises(ValueError, match="column 'label' cannot be an input"):
        export(model)
    frame = frame.rename(columns={"label": "constant"})
    steps = ColumnTransformer(
        [("e", OneHotEncoder(), ["constant"]), ("n", "passthrough", ["Gemm"])]
    )
    assert_same(make_pipeline(steps, QuadraticLogisticRegression()).fit(frame, [0, 1, 1]), frame)


def test_empty_and_missing_text_cannot_be_distinguished():
    frame = pd.DataFrame({"t": np.array(["", None, "a"], dtype=object)})
    model = make_pipeline(OneHotEncoder(), QuadraticLogisticRegression()).fit(frame, [0, 1, 1])
    with pytest.raises(
        ValueError, match=r"step 'onehotencoder' cannot be exported: .* distinguishes several kinds"
    ):
        export(model)


def without(package, statement):
    script = f"import sys\nsys.modules[{package!r}] = None\n{statement}"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_missing_packages_are_reported_with_the_pip_command():
    result = without("onnx", "import quadric.onnx")
    assert result.stderr.splitlines()[-1] == (
        'ImportError: quadric.onnx needs onnx: pip install "quadric[onnx]"'
    )
    result = without("skl2onnx", "from quadric.onnx import export, register\nregister()")
    assert result.stderr.splitlines()[-1] == (
        'ImportError: quadric.onnx.register needs skl2onnx: pip install "quadric[onnx]"'
    )
