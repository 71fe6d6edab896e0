"""Pipelines that are fitted to Dask collections are those that scikit-learn fits to tables."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import quadric
from quadric import QuadraticLogisticRegression, QuadraticRegressor
from quadric.cluster import lazily
from quadric.models import fit_pipeline

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
ROWS = 6000
NUMBERS = RNG.normal([1e3, -1, 0], [5, 1e-3, 1], size=(ROWS, 3))
NUMBERS[RNG.uniform(size=NUMBERS.shape) < 0.05] = np.nan
CITY = RNG.choice(["Rome", "Oslo", "Bern"], ROWS).astype(object)
CITY[RNG.uniform(size=ROWS) < 0.02] = None
SIZE = RNG.choice(["S", "M", "L"], ROWS).astype(object)
SIZE[-1] = "XL"  # only in the last part
FRAME = pd.DataFrame(NUMBERS, columns=["a", "b", "c"]).assign(city=CITY, size_=SIZE)
Y = (np.nan_to_num(NUMBERS[:, 2]) ** 2 > 0.7) ^ (SIZE == "L")


def mixed_steps():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    missing = SimpleImputer(strategy="constant", fill_value="missing")
    city = make_pipeline(missing, OneHotEncoder(handle_unknown="ignore"))
    sizes = OrdinalEncoder(categories=[["S", "M", "L", "XL"]])
    return ColumnTransformer(
        [
            ("numbers", numbers, ["a", "b"]),
            ("others", make_pipeline(SimpleImputer(), MinMaxScaler()), ["c"]),
            ("city", city, ["city"]),
            ("size", make_pipeline(sizes, MaxAbsScaler()), make_column_selector("size_")),
        ]
    )


def facts(step):
    """All fitted arrays of a step, by name."""
    found = {}
    if hasattr(step, "steps"):
        for name, one in step.steps:
            found |= {f"{name}.{key}": value for key, value in facts(one).items()}
        return found
    for key, value in vars(step).items():
        if key == "transformers_":
            for name, one, _ in value:
                found |= {
                    f"{name}.{k}": v
                    for k, v in ({} if isinstance(one, str) else facts(one)).items()
                }
        elif key.endswith("_") and not key.startswith("_") and key != "feature_names_in_":
            found[key] = value
    return found


def same_facts(found, expected):
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=1e-11, err_msg=name)
        elif isinstance(value, list):
            assert [list(one) for one in found[name]] == [list(one) for one in value], name
        else:
            assert np.array_equal(found[name], value), name
    assert set(found) == set(expected)


@pytest.mark.parametrize(
    "steps",
    [
        lambda: make_pipeline(SimpleImputer(), StandardScaler()),
        lambda: make_pipeline(StandardScaler(), SimpleImputer(strategy="constant")),
        lambda: make_pipeline(
            SimpleImputer(keep_empty_features=True), MinMaxScaler(), MaxAbsScaler()
        ),
    ],
)
def test_steps_of_arrays_are_those_of_scikit_learn(steps):
    X = da.from_array(NUMBERS, chunks=(2500, 2))
    model = make_pipeline(
        *(step for _, step in steps().steps), QuadraticLogisticRegression(tol=1e-9)
    )
    expected = make_pipeline(
        *(step for _, step in steps().steps), QuadraticLogisticRegression(tol=1e-9)
    )
    expected.fit(NUMBERS, Y)
    assert fit_pipeline(model, X, da.from_array(Y, chunks=999)) is model
    same_facts(facts(model[:-1]), facts(expected[:-1]))
    np.testing.assert_allclose(
        model.predict_proba(NUMBERS), expected.predict_proba(NUMBERS), atol=1e-6
    )


def test_a_table_of_numbers_and_categories(tmp_path):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    expected = make_pipeline(mixed_steps(), QuadraticLogisticRegression(tol=1e-8)).fit(FRAME, Y)
    files = []
    for parts in (1, 4):
        collection = dd.from_pandas(FRAME, npartitions=parts)
        model = make_pipeline(mixed_steps(), QuadraticLogisticRegression(tol=1e-8))
        fit_pipeline(model, collection, da.from_array(Y, chunks=2000))
        quadric.save(model, tmp_path / f"{parts}.quadric")
        files.append((tmp_path / f"{parts}.quadric").read_bytes())
        predicted = lazily(model.predict_proba, collection)
        assert predicted.npartitions == parts
        assert np.array_equal(predicted.compute(), model.predict_proba(FRAME))
    assert files[0] == files[1]
    same_facts(facts(model[:-1]), facts(expected[:-1]))
    assert list(model[:-1].get_feature_names_out()) == list(expected[:-1].get_feature_names_out())
    np.testing.assert_allclose(model.predict_proba(FRAME), expected.predict_proba(FRAME), atol=1e-5)
    loaded = quadric.load(tmp_path / "4.quadric")
    assert np.array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))


def test_other_steps_and_models_are_refused_by_name():
    X = da.from_array(np.nan_to_num(NUMBERS), chunks=2500)
    y = da.from_array(NUMBERS[:, 2], chunks=1000)
    last = QuadraticRegressor(())
    for steps, message in (
        ([PCA(2), last], r"step 'pca' \(PCA\) cannot be fitted on a cluster: it needs all rows"),
        ([SimpleImputer(strategy="median"), last], "strategy='median'; use 'mean'"),
        ([SimpleImputer(add_indicator=True), last], "has add_indicator=True"),
        ([OneHotEncoder(min_frequency=3), last], "groups infrequent categories"),
        ([StandardScaler()], "must be a Pipeline that ends with .* Got StandardScaler"),
    ):
        with pytest.raises(TypeError, match=message):
            fit_pipeline(make_pipeline(*steps), X, y)
    with pytest.raises(TypeError, match=r"Got ndarray; use model\.fit"):
        fit_pipeline(make_pipeline(last), NUMBERS, Y)
