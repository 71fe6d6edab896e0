"""Every supported step can be explained, exported, saved and rebuilt."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from quadric import QuadraticLogisticRegression, load, save
from quadric.explain import explain
from quadric.models import ModelView, UnknownStepError, find, operations, split, width_after
from quadric.models._saved_classes import RUNNING
from quadric.models._supported_steps import STEPS
from tests.support.fitted_models import (
    CASES,
    GAPS,
    NUMBERS,
    TABLE,
    TARGETS,
    TEXT_GAPS,
    WHOLE,
    Y,
    fitted_case,
)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model, X = fitted_case(request.param)
    return request.param, model, X


def test_every_step_of_the_table_has_a_case():
    elsewhere = {"Pipeline", "TableColumns"}  # see test_table_columns
    assert {find(step).name for step, _, _ in CASES.values()} >= set(STEPS) - elsewhere


@pytest.mark.filterwarnings("ignore")
def test_the_operations_return_as_many_columns_as_the_step(case):
    _, model, _ = case
    for _, step in split(model)[0]:
        n = step.n_features_in_
        if isinstance(step, FunctionTransformer):
            assert operations(step) == []
            continue
        names = None if hasattr(step, "feature_names_in_") else [f"x{i}" for i in range(n)]
        assert width_after(operations(step), n) == len(step.get_feature_names_out(names))


@pytest.mark.filterwarnings("ignore")
def test_surfaces_are_explained_in_input_units_if_the_step_is_affine(case):
    name, model, X = case
    explanation = explain(model, X)
    z = model.decision_function(X)
    assert explanation.space == ("inputs" if CASES[name][2] else "features")
    coordinates = ModelView.of(model).coordinates.reach(X)
    values = np.squeeze([one.surface.value(coordinates) for one in explanation.classes]).T
    np.testing.assert_allclose(values, z, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exported_models_predict_the_same(case, dtype):
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export
    from tests.support.onnx_graphs import run

    _, model, X = case
    X = (
        X.astype({c: dtype for c in X if X[c].dtype.kind == "f"})
        if isinstance(X, pd.DataFrame)
        else X.astype(dtype)
    )
    out = run(export(model, dtype=dtype), X, dtype)
    atol = 2e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), atol=atol)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_loaded_models_predict_the_same_and_can_be_refitted(case, tmp_path):
    name, model, X = case
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    before, after = model.decision_function(X), loaded.decision_function(X)
    if isinstance(model[0], IncrementalPCA):  # its components are a part of a larger matrix
        np.testing.assert_allclose(after, before, rtol=1e-12)
    else:
        assert np.array_equal(after, before)
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
    again = clone(loaded).fit(X, TARGETS.get(name, Y))
    assert np.allclose(again.decision_function(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore")
def test_rebuilt_steps_have_the_attributes_that_fit_sets(case, tmp_path):
    """This ensures that no method of a rebuilt step finds a missing or wrong attribute."""
    _, model, _ = case
    if find(model[0]).name != type(model[0]).__name__:
        pytest.skip("saved as SelectedFeatures")
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for (_, fitted), (_, rebuilt) in zip(split(model)[0], split(loaded)[0], strict=True):
        _assert_same_attributes(fitted, rebuilt)


# attributes that may differ after rebuilding: the chosen solver, and columns given as numbers
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
    elif isinstance(a, KFold):
        assert (type(a), vars(a)) == (type(b), vars(b)), where
    else:
        assert a == b or (a != a and b != b), where


# ---- regressions -----------------------------------------------------------------------------


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
    parts = IncrementalPCA(4).partial_fit(NUMBERS)  # does not set batch_size_
    save(Pipeline([("p", parts), ("q", last.fit(parts.transform(NUMBERS), Y))]), path)
    assert load(path)[0].components_.shape == (4, 4)
    union = FeatureUnion([("x", "drop"), ("s", StandardScaler())])
    _round_trip(make_pipeline(union, last).fit(NUMBERS, Y), NUMBERS, path)
    columns = ColumnTransformer([("u", union, [0, 1])])
    _round_trip(make_pipeline(columns, last).fit(NUMBERS, Y), NUMBERS, path)
    texts = TEXT_GAPS.astype(object).where(TEXT_GAPS.notna(), None)
    imputed = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), last)
    _round_trip(imputed.fit(texts, Y), texts, path)  # None is a value, not missing


def test_whitening_of_small_data_is_explained_exactly():
    X = (NUMBERS * 1e-4).astype(np.float32)
    model = make_pipeline(PCA(3, whiten=True), QuadraticLogisticRegression()).fit(X, Y)
    value = explain(model).classes[0].surface.value(X.astype(float))
    np.testing.assert_allclose(value, model.decision_function(X), atol=1e-3)


def test_a_selector_with_its_own_transform_is_not_supported():
    class Ten(SelectKBest):
        def transform(self, X):
            return 10 * super().transform(X)

    with pytest.raises(UnknownStepError, match="Ten is not among"):
        find(Ten())


def test_dropped_columns_are_not_explained():
    frame = pd.DataFrame(NUMBERS, columns=list("abcd"))
    columns = ColumnTransformer([("s", StandardScaler(), ["a", "b"])])
    model = make_pipeline(columns, QuadraticLogisticRegression()).fit(frame, Y)
    expected = str(explain(model, frame))
    assert str(explain(model, frame[["b", "a"]])) == expected
    assert str(explain(model, frame[["c", "b", "a"]].assign(e=1))) == expected
    renamed = ModelView.of(model).layer_coordinates(0, list("bacd"))  # names for display only
    reached = renamed.reach(frame)
    assert np.array_equal(reached, NUMBERS * [1, 1, 0, 0])


@pytest.mark.parametrize(
    "steps", [(StandardScaler(), SimpleImputer()), (SimpleImputer(strategy="constant"),)]
)
def test_missing_values_that_a_later_step_imputes_are_explained(steps):
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(GAPS, Y)
    reached = ModelView.of(model).coordinates.reach(GAPS)
    value = explain(model, GAPS).classes[0].surface.value(reached)
    np.testing.assert_allclose(value, model.decision_function(GAPS), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_export_refuses_categories_that_onnx_cannot_distinguish():
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export

    texts = np.array([["x"], ["x"], ["y"], [None]] * 30, dtype=object)
    texts[::5] = np.nan
    steps = SimpleImputer(strategy="most_frequent"), OneHotEncoder()
    model = make_pipeline(*steps, QuadraticLogisticRegression()).fit(texts, Y)
    with pytest.raises(ValueError, match="several kinds of missing or empty text"):
        export(model)


def test_an_encoder_that_drops_categories_gives_a_small_graph():
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export

    frame = pd.DataFrame({"t": [f"c{i}" for i in range(120)]})
    model = make_pipeline(OneHotEncoder(drop="first"), QuadraticLogisticRegression(max_iter=1))
    with warnings.catch_warnings(action="ignore"):
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
def test_every_parameter_of_the_installed_class_is_stored_or_controls_running(name):
    known = STEPS[name]
    assert set(known.of._get_param_names()) <= {*known.parameters, *known.absent, *RUNNING}


def test_an_unknown_step_is_named_with_its_path():
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
