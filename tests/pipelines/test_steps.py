"""Every step of the table, asked for every ability: explained, exported, saved, rebuilt."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from quadric import QuadraticLogisticRegression, load, save
from quadric.explain import explain
from quadric.explain._model import select_layer
from quadric.model_file._saved_classes import RUNNING
from quadric.pipelines._operations import width_after
from quadric.pipelines._table import STEPS, UnknownStepError, find, operations, split

RNG = np.random.default_rng(5)
NUMBERS = RNG.normal([0, 3, -1, 100], [1, 2, 0.1, 5], size=(120, 4))
POSITIVE = np.exp(NUMBERS[:, :3])
GAPS = np.where(RNG.uniform(size=NUMBERS.shape) < 0.1, np.nan, NUMBERS)
EMPTY = np.column_stack([GAPS, np.full(len(GAPS), np.nan)])
TABLE = pd.DataFrame(
    {
        "size": GAPS[:, 0],
        "weight": NUMBERS[:, 1],
        "colour": RNG.choice(["red", "blue", "gr\u00fcn", "mauve"], 120, p=[0.4, 0.3, 0.28, 0.02]),
        "shop": RNG.choice([1, 2, 40], 120),
    }
)
TEXT = pd.DataFrame(
    {
        "colour": TABLE["colour"].astype(object),
        "grade": RNG.choice(["a", "b", "c"], 120).astype(object),
    }
)
TEXT_GAPS = TEXT.mask(RNG.uniform(size=TEXT.shape) < 0.1, None).astype(object)
WHOLE = pd.DataFrame({"shop": TABLE["shop"], "hour": RNG.integers(0, 4, 120)})
Y = np.where(NUMBERS[:, 0] ** 2 + NUMBERS[:, 1] > 4, "yes", "no")


def _columns(**settings):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ],
        **settings,
    )


# name: step, data, whether it is affine (None: it has affine and other branches)
CASES = {
    "StandardScaler": (StandardScaler(), NUMBERS, True),
    "StandardScaler scale only": (StandardScaler(with_mean=False), NUMBERS, True),
    "StandardScaler nothing": (StandardScaler(with_mean=False, with_std=False), NUMBERS, True),
    "MinMaxScaler": (MinMaxScaler((-1, 2)), NUMBERS, True),
    "MinMaxScaler clip": (MinMaxScaler(clip=True), NUMBERS, False),
    "MaxAbsScaler": (MaxAbsScaler(), NUMBERS, True),
    "RobustScaler": (RobustScaler(), NUMBERS, True),
    "RobustScaler center only": (RobustScaler(with_scaling=False), NUMBERS, True),
    "PowerTransformer": (PowerTransformer(), NUMBERS, False),
    "PowerTransformer box-cox": (PowerTransformer("box-cox", standardize=False), POSITIVE, False),
    "PCA": (PCA(2), NUMBERS, True),
    "PCA whiten": (PCA(0.9999, whiten=True), NUMBERS, True),
    "IncrementalPCA": (IncrementalPCA(2), NUMBERS, True),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), NUMBERS, True),
    "SimpleImputer": (SimpleImputer(), GAPS, True),
    "SimpleImputer marks": (SimpleImputer(strategy="median", add_indicator=True), GAPS, None),
    "SimpleImputer empty column": (SimpleImputer(), EMPTY, True),
    "SimpleImputer of -1": (SimpleImputer(missing_values=-1), np.nan_to_num(GAPS, nan=-1), False),
    "OneHotEncoder": (OneHotEncoder(), TEXT, False),
    "OneHotEncoder drop": (OneHotEncoder(drop="first", sparse_output=False), TEXT, False),
    "OneHotEncoder drop given": (OneHotEncoder(drop=["red", "b"]), TEXT, False),
    "OneHotEncoder rare": (
        OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"), TEXT, False
    ),
    "OneHotEncoder rare, two left": (
        OneHotEncoder(max_categories=2, drop="if_binary"), TEXT, False
    ),
    "OneHotEncoder missing": (OneHotEncoder(), TEXT_GAPS, False),
    "OneHotEncoder whole numbers": (OneHotEncoder(handle_unknown="ignore"), WHOLE, False),
    "OrdinalEncoder": (OrdinalEncoder(), TEXT, False),
    "OrdinalEncoder unknown": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), TEXT, False
    ),
    "OrdinalEncoder rare": (OrdinalEncoder(min_frequency=10), TEXT, False),
    "OrdinalEncoder missing": (
        OrdinalEncoder(encoded_missing_value=-2, min_frequency=10),
        TEXT_GAPS.fillna(np.nan), False,
    ),
    "OrdinalEncoder whole numbers": (OrdinalEncoder(), WHOLE, False),
    "KBinsDiscretizer": (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), NUMBERS,
                         False),
    "KBinsDiscretizer ordinal": (
        KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), NUMBERS, False
    ),
    "KBinsDiscretizer dense": (
        KBinsDiscretizer([2, 3, 2, 5], encode="onehot-dense", strategy="kmeans", random_state=0),
        NUMBERS, False,
    ),
    "SelectKBest": (SelectKBest(k=2), NUMBERS, True),
    "SelectKBest chi2": (SelectKBest(chi2, k=1), POSITIVE, True),
    "SelectPercentile": (SelectPercentile(percentile=60), NUMBERS, True),
    "SelectFpr": (SelectFpr(alpha=0.5), NUMBERS, True),
    "SelectFdr": (SelectFdr(alpha=0.9), NUMBERS, True),
    "SelectFwe": (SelectFwe(alpha=0.9), NUMBERS, True),
    "GenericUnivariateSelect": (
        GenericUnivariateSelect(mode="k_best", param=3), NUMBERS, True
    ),
    "VarianceThreshold": (VarianceThreshold(0.5), NUMBERS, True),
    "RFE": (RFE(LogisticRegression(), n_features_to_select=2), NUMBERS, True),
    "SelectFromModel": (SelectFromModel(LogisticRegression()), NUMBERS, True),
    "SelectKBest own score": (
        SelectKBest(lambda X, y: np.abs(X).sum(axis=0), k=2), NUMBERS, True
    ),
    "FunctionTransformer": (FunctionTransformer(), NUMBERS, True),
    "Pipeline": (make_pipeline(StandardScaler(), "passthrough", PCA(3)), NUMBERS, True),
    "FeatureUnion": (
        FeatureUnion([("a", StandardScaler()), ("b", PCA(1)), ("c", "passthrough")],
                     transformer_weights={"b": 0.5}), NUMBERS, True,
    ),
    "ColumnTransformer": (_columns(), TABLE, None),
    "ColumnTransformer affine, weighted": (
        ColumnTransformer(
            [("a", StandardScaler(), [0, 2]), ("b", "passthrough", [3]), ("gone", "drop", [1])],
            transformer_weights={"a": 3.0},
        ), NUMBERS, True,
    ),
    "ColumnTransformer rest": (_columns(remainder="passthrough"), TABLE, None),
    "ColumnTransformer rest scaled": (
        _columns(remainder=StandardScaler(), verbose_feature_names_out=False), TABLE, None
    ),
    "ColumnTransformer weighted": (_columns(transformer_weights={"numbers": 3.0}), TABLE, None),
    "ColumnTransformer no columns": (
        ColumnTransformer([("none", StandardScaler(), []), ("a", PCA(2), [0, 1, 2])]), NUMBERS,
        True,
    ),
    "ColumnTransformer inside": (
        ColumnTransformer([("in", ColumnTransformer([("a", MinMaxScaler(), [1, 0])]), [0, 2]),
                           ("bins", KBinsDiscretizer(3, strategy="uniform"), [1])]),
        NUMBERS, None,
    ),
}  # fmt: skip


def _fitted(name):
    step, X, _ = CASES[name]
    model = make_pipeline(
        clone(step), StandardScaler(with_mean=False), QuadraticLogisticRegression()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features without values, few iterations
        return model.fit(X, Y), X


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model, X = _fitted(request.param)
    return request.param, model, X


def test_every_step_of_the_table_is_tried():
    assert {find(step).name for step, _, _ in CASES.values()} >= set(STEPS) - {"Pipeline"}


@pytest.mark.filterwarnings("ignore")
def test_the_operations_have_the_width_of_the_step(case):
    _, model, _ = case
    for _, step in split(model)[0]:
        n = step.n_features_in_
        if isinstance(step, FunctionTransformer):
            assert operations(step) == []
            continue
        names = None if hasattr(step, "feature_names_in_") else [f"x{i}" for i in range(n)]
        assert width_after(operations(step), n) == len(step.get_feature_names_out(names))


@pytest.mark.filterwarnings("ignore")
def test_explained_in_the_users_units_where_it_is_affine(case):
    name, model, X = case
    explanation = explain(model, X)
    z = model.decision_function(X)
    assert explanation.space == ("inputs" if CASES[name][2] else "features")
    coordinates = select_layer(model).space.reach(X)
    value = explanation.classes[0].surface.value(coordinates)
    np.testing.assert_allclose(value, z, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exported(case, dtype):
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export
    from tests.onnx.test_export import run

    _, model, X = case
    X = (
        X.astype({c: dtype for c in X if X[c].dtype.kind == "f"})
        if isinstance(X, pd.DataFrame)
        else X.astype(dtype)
    )
    out = run(export(model, dtype=dtype), X, dtype)
    atol = 2e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), atol=atol)


@pytest.mark.filterwarnings("ignore")
def test_saved_and_rebuilt(case, tmp_path):
    name, model, X = case
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    kept_as = type(loaded[0]).__name__
    assert kept_as == find(model[0]).name
    said = str(explain(model, X)).replace(type(model[0]).__name__, kept_as)
    assert str(explain(loaded, X)) == said
    if "FunctionTransformer" not in name:
        assert (
            loaded[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
        )
    again = clone(loaded).fit(X, Y)
    assert np.allclose(again.decision_function(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore")
def test_rebuilt_steps_have_the_attributes_that_fit_gives(case, tmp_path):
    """So that no method of a rebuilt step meets an attribute that is missing or another's."""
    _, model, _ = case
    if find(model[0]).name != type(model[0]).__name__:
        pytest.skip("kept as SelectedFeatures")
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for (_, fitted), (_, rebuilt) in zip(split(model)[0], split(loaded)[0], strict=True):
        _assert_same_attributes(fitted, rebuilt)


# what a rebuilt step may have otherwise: which solver was chosen; columns as numbers
FREE = {"_fit_svd_solver", "_columns", "_remainder", "transformers_", "remainder", "transformers"}


def _assert_same_attributes(fitted, rebuilt):
    assert type(rebuilt) is type(fitted)
    there, here = vars(fitted), vars(rebuilt)
    passing = {"_callback_fit_ctx", "_skl_callbacks", "_metadata_request"}
    assert set(there) - set(here) <= passing, type(fitted).__name__
    for attribute in set(there) - FREE - passing:
        _assert_same(there[attribute], here[attribute], f"{type(fitted).__name__}.{attribute}")
    if isinstance(fitted, ColumnTransformer):
        for (name, inner, _), (other, made, _) in zip(
            fitted.transformers_, rebuilt.transformers_, strict=True
        ):
            assert name == other
            _assert_same(inner, made, name)


def _assert_same(a, b, where):
    if hasattr(a, "get_params") and not isinstance(a, type):
        if hasattr(a, "n_features_in_"):
            _assert_same_attributes(a, b)
        else:
            assert repr(a) == repr(b)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        if a.dtype == object:
            _assert_same(a.tolist(), b.tolist(), where)
        else:
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), where
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for x, y in zip(a, b, strict=True):
            _assert_same(x, y, where)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            _assert_same(a[key], b[key], where)
    else:
        assert a == b or (a != a and b != b), where


# ---- one by one, what went wrong once --------------------------------------------------------


def _round_trip(model, X, path):
    save(model, path)
    assert np.array_equal(load(path).decision_function(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore")
def test_steps_fitted_in_unusual_ways_are_saved(tmp_path):
    path, last = tmp_path / "model", QuadraticLogisticRegression()
    frame = pd.DataFrame(NUMBERS, columns=list("abcd"))
    _round_trip(make_pipeline(FunctionTransformer(), last).fit(frame, Y), frame, path)
    weight = np.linspace(0.1, 1, len(Y))
    weighted = make_pipeline(StandardScaler(), last)
    _round_trip(weighted.fit(NUMBERS, Y, standardscaler__sample_weight=weight), NUMBERS, path)
    _round_trip(make_pipeline(OneHotEncoder(dtype="float32"), last).fit(WHOLE, Y), WHOLE, path)
    parts = IncrementalPCA(4).partial_fit(NUMBERS)  # which sets no batch_size_
    save(Pipeline([("p", parts), ("q", last.fit(parts.transform(NUMBERS), Y))]), path)
    assert load(path)[0].components_.shape == (4, 4)
    union = FeatureUnion([("x", "drop"), ("s", StandardScaler())])
    _round_trip(make_pipeline(union, last).fit(NUMBERS, Y), NUMBERS, path)
    columns = ColumnTransformer([("u", union, [0, 1])])
    _round_trip(make_pipeline(columns, last).fit(NUMBERS, Y), NUMBERS, path)
    texts = TEXT_GAPS.astype(object).where(TEXT_GAPS.notna(), None)
    imputed = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), last)
    _round_trip(imputed.fit(texts, Y), texts, path)  # None is a value, not a missing one


def test_whitening_of_small_data():
    X = (NUMBERS * 1e-4).astype(np.float32)
    model = make_pipeline(PCA(3, whiten=True), QuadraticLogisticRegression()).fit(X, Y)
    value = explain(model).classes[0].surface.value(X.astype(float))
    np.testing.assert_allclose(value, model.decision_function(X), atol=1e-3)


def test_a_selector_that_does_more_is_not_taken_for_one():
    class Ten(SelectKBest):
        def transform(self, X):
            return 10 * super().transform(X)

    with pytest.raises(UnknownStepError, match="Ten is not among"):
        find(Ten())


def test_explained_without_the_columns_that_are_dropped():
    frame = pd.DataFrame(NUMBERS, columns=list("abcd"))
    columns = ColumnTransformer([("s", StandardScaler(), ["a", "b"])])
    model = make_pipeline(columns, QuadraticLogisticRegression()).fit(frame, Y)
    expected = str(explain(model, frame))
    assert str(explain(model, frame[["b", "a"]])) == expected
    assert str(explain(model, frame[["c", "b", "a"]].assign(e=1))) == expected
    reached = select_layer(model, names=list("bacd")).space.reach(frame)  # names for people
    assert np.array_equal(reached, NUMBERS * [1, 1, 0, 0])


@pytest.mark.parametrize(
    "steps", [(StandardScaler(), SimpleImputer()), (SimpleImputer(strategy="constant"),)]
)
def test_explained_with_gaps_that_a_later_step_fills(steps):
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(GAPS, Y)
    reached = select_layer(model).space.reach(GAPS)
    value = explain(model, GAPS).classes[0].surface.value(reached)
    np.testing.assert_allclose(value, model.decision_function(GAPS), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_what_onnx_cannot_tell_apart_is_refused():
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export

    texts = np.array([["x"], ["x"], ["y"], [None]] * 30, dtype=object)
    texts[::5] = np.nan
    steps = SimpleImputer(strategy="most_frequent"), OneHotEncoder()
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(texts, Y)
    with pytest.raises(ValueError, match="several kinds of missing or empty text"):
        export(model)


def test_an_encoder_that_drops_categories_is_a_small_graph():
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export

    frame = pd.DataFrame({"t": [f"c{i}" for i in range(120)]})
    model = make_pipeline(OneHotEncoder(drop="first"), QuadraticLogisticRegression(max_iter=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = export(model.fit(frame, Y)).graph.node
    assert "Gather" in {node.op_type for node in nodes}


def test_a_column_that_is_dropped_may_hold_text():
    frame = TABLE.assign(weight=NUMBERS[:, 1])[["weight", "colour", "shop"]]
    columns = ColumnTransformer([("a", StandardScaler(), ["weight", "shop"])])
    model = make_pipeline(columns, QuadraticLogisticRegression()).fit(frame, Y)
    explanation = explain(model, frame)
    assert explanation.names == ["weight", "colour", "shop"]
    assert not explanation.classes[0].surface.Q[1].any()


@pytest.mark.parametrize("name", STEPS)
def test_every_parameter_of_the_installed_class_is_kept_or_only_says_how_it_runs(name):
    known = STEPS[name]
    assert set(known.of._get_param_names()) <= {*known.parameters, *known.absent, *RUNNING}


def test_steps_that_are_not_in_the_table_are_named():
    inner = Pipeline([("poly", PolynomialFeatures(2))])
    step = ColumnTransformer([("some", inner, [0, 1])]).fit(NUMBERS)
    with pytest.raises(UnknownStepError, match="PolynomialFeatures is not among") as caught:
        operations(step)
    assert caught.value.path == "some__poly"
    with pytest.raises(UnknownStepError, match="StandardScaler is not fitted"):
        operations(StandardScaler())

    class StandardScaler2(StandardScaler):
        pass

    with pytest.raises(UnknownStepError, match="StandardScaler2 is not among"):
        find(StandardScaler2())
