"""Estimators accept Dask collections of any division, and refuse what they cannot use."""

import importlib.util

import numpy as np
import pytest
from scipy import sparse

from quadric import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor, cluster
from quadric.core import parameters

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9000, 4))
NOISE = RNG.normal(size=len(X))
CODES = (X[:, 0] * X[:, 1] + 0.5 * NOISE > 0).astype(int) + (X[:, 2] > 1)
LABELS = np.array(["low", "mid", "top"])[CODES]
TARGETS = np.column_stack([X[:, 0] ** 2 + 50, 1e-3 * X[:, 1] * X[:, 2]]) + 1e-4 * NOISE[:, None]
WEIGHT = RNG.uniform(size=len(X))


def unknown(array):
    """The same array with chunks whose sizes Dask does not know."""
    return array[da.from_array(np.ones(len(X), dtype=bool), chunks=array.chunks[:1])]


def divisions(array):
    """The same rows in different chunks."""
    some = da.from_array(array, chunks=(2000, *([3] if array.ndim > 1 else [])))
    empty = da.concatenate([some[:100], some[100:100], some[100:4096], some[4096:]])
    return {"even": some, "with an empty part": empty, "unknown": unknown(some.rechunk({0: 3001}))}


def values(model):
    return np.concatenate([array.ravel() for array in parameters(model.network_.layers)])


def same(first, second):
    return np.array_equal(values(first), values(second))


def test_a_fit_is_that_of_arrays_and_does_not_depend_on_the_division():
    alone = QuadraticLogisticRegression(tol=1e-10).fit(X, LABELS)
    options = {"tol": 1e-10}
    inputs, targets = divisions(X), divisions(LABELS)
    pairs = [("even", "even"), ("with an empty part", "unknown"), ("unknown", "even")]
    fits = [
        QuadraticLogisticRegression(**options).fit(inputs[one], targets[other])
        for one, other in pairs
    ]
    np.testing.assert_allclose(values(fits[0]), values(alone), rtol=1e-6, atol=1e-7)
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])
    assert list(fits[0].classes_) == ["low", "mid", "top"]
    found = fits[0].predict_proba(inputs["with an empty part"])
    assert (found.dtype, found.chunks[1]) == (np.float64, (3,))
    np.testing.assert_allclose(found.compute(), alone.predict_proba(X), atol=1e-6)
    lazy = fits[0].predict(inputs["unknown"])
    assert np.isnan(lazy.shape[0])
    assert np.array_equal(lazy.compute(), fits[0].predict(X))
    assert fits[0].decision_function(inputs["even"]).shape == (len(X), 3)
    assert fits[0].score(inputs["even"], targets["unknown"]) == fits[0].score(X, LABELS)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 1.0, "mid": 3.0, "top": 0.5}])
def test_weights_of_samples_and_classes_are_those_of_arrays(class_weight):
    options = {"tol": 1e-9, "class_weight": class_weight}
    alone = QuadraticLogisticRegression(**options).fit(X, LABELS, WEIGHT)
    found = QuadraticLogisticRegression(**options).fit(
        divisions(X)["even"], divisions(LABELS)["unknown"], da.from_array(WEIGHT, chunks=1234)
    )
    np.testing.assert_allclose(values(found), values(alone), rtol=1e-5, atol=1e-6)
    given = divisions(X)["even"], divisions(LABELS)["even"]
    score = found.score(*given, da.from_array(WEIGHT, chunks=777))
    assert score == pytest.approx(found.score(X, LABELS, WEIGHT), abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_regressor_with_two_targets_is_that_of_arrays(dtype):
    options = {"layer_kinds": "quadratic", "hidden_layer_sizes": (), "alpha": 1.0, "tol": 1e-9}
    options |= {"solver": "lbfgs", "random_state": 0}
    Z = X.astype(dtype)
    alone = QuadraticRegressor(**options).fit(Z, TARGETS, WEIGHT)
    found = QuadraticRegressor(**options).fit(
        divisions(Z)["even"], divisions(TARGETS)["even"], da.from_array(WEIGHT, chunks=1000)
    )
    assert found.network_.dtype == np.dtype(dtype)
    scale = np.abs(values(alone)).max()
    np.testing.assert_allclose(
        values(found), values(alone), atol=scale * (1e-3, 1e-6)[Z.itemsize > 4]
    )
    score = found.score(divisions(Z)["unknown"], divisions(TARGETS)["with an empty part"])
    assert score == pytest.approx(found.score(Z, TARGETS), abs=1e-9)


def test_sparse_chunks_give_the_same_model():
    Z = X * (X > 0.8)
    blocks = da.from_array(Z, chunks=(2500, 4)).map_blocks(sparse.csr_matrix, dtype=float)
    y = da.from_array(CODES, chunks=4000)
    dense = QuadraticLogisticRegression(tol=1e-9).fit(da.from_array(Z, chunks=3000), y)
    found = QuadraticLogisticRegression(tol=1e-9).fit(blocks, y)
    np.testing.assert_allclose(values(found), values(dense), rtol=1e-5, atol=1e-6)


def test_hidden_layers_and_penalty_are_chosen_on_some_rows():
    options = {"hidden_layer_sizes": "single", "random_state": 0, "max_iter": 16}
    found = QuadraticClassifier(**options).fit(divisions(X)["even"], divisions(CODES)["even"])
    assert len([one for one in found.selection_ if one.get("chosen")]) == 1
    alone = QuadraticClassifier(**options).fit(X, CODES)
    assert found.score(X, CODES) == pytest.approx(alone.score(X, CODES), abs=0.02)
    again = QuadraticClassifier(**options).fit(divisions(X)["unknown"], divisions(CODES)["unknown"])
    assert same(found, again)


def test_dataframes_keep_their_names():
    pytest.importorskip("pyarrow")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=LABELS)
    parts = dd.from_pandas(frame, npartitions=3)
    inputs = parts[list("abcd")]
    found = QuadraticLogisticRegression().fit(inputs, parts["label"])
    assert list(found.feature_names_in_) == list("abcd")
    predicted = found.predict(inputs)
    assert predicted.dtype == found.classes_.dtype
    assert np.array_equal(predicted.compute(), found.predict(frame[list("abcd")]))
    assert found.score(inputs, parts["label"]) == found.score(frame[list("abcd")], LABELS)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(inputs[list("dcba")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "adam"}, "solver='adam' is not supported for Dask.*L-BFGS.*stream"),
        ({"solver": "sgd"}, "solver='sgd' is not supported for Dask"),
        ({"early_stopping": True}, "early_stopping=True is not supported for Dask"),
        ({"warm_start": True}, "warm_start=True is not supported for Dask"),
    ],
)
def test_options_of_other_solvers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        QuadraticClassifier(**options).fit(divisions(X)["even"], divisions(CODES)["even"])


def test_odd_data_are_refused_by_name():
    model, good, y = QuadraticLogisticRegression(), divisions(X)["even"], divisions(CODES)["even"]
    holes = X.copy()
    holes[5000:5003, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity: 'column 2' has 3 such values"):
        model.fit(da.from_array(holes, chunks=1000), y)
    with pytest.raises(ValueError, match=r"same number of rows\. Got 9,000 and 8,999"):
        model.fit(good, y[1:])
    with pytest.raises(ValueError, match=r"not negative\. Got 1 other values"):
        model.fit(good, y, da.from_array(np.r_[-1.0, WEIGHT[1:]], chunks=1000))
    with pytest.raises(ValueError, match="not be zero for all samples"):
        model.fit(good, y, da.zeros(len(X), chunks=1000))
    with pytest.raises(ValueError, match="contains only one class"):
        model.fit(good, da.zeros(len(X), chunks=1000, dtype=int))
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(good[:0], y[:0])
    with pytest.raises(ValueError, match="must have two dimensions"):
        model.fit(good[:, 0], y)
    with pytest.raises(ValueError, match="y must have one column of classes"):
        model.fit(good, da.zeros((len(X), 2), chunks=1000, dtype=int))
    with pytest.raises(TypeError, match="does not accept Dask collections"):
        QuadraticClassifier().partial_fit(good, y, classes=[0, 1, 2])


def test_a_missing_extra_is_reported(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "quadric.utils._extras.find_spec",
        lambda name: None if name == "distributed" else find(name),
    )
    with pytest.raises(ImportError, match=r'needs distributed: pip install "quadric\[dask\]"'):
        QuadraticLogisticRegression().fit(divisions(X)["even"], divisions(CODES)["even"])


def test_a_worker_that_joins_late_with_another_version_is_refused():
    with pytest.raises(
        RuntimeError, match=r"must have quadric 0\.0\.1, like.*a worker that joined later"
    ):
        cluster._parts.range_of(0, [X], [CODES], [], None, {"quadric": "0.0.1"})


def test_a_checkpoint_of_another_fit_is_refused(tmp_path, monkeypatch):
    path, given = tmp_path / "state", (divisions(X)["even"], divisions(CODES)["even"])
    kept, stored = [], []

    class StopError(Exception):
        pass

    def stop(*arguments):
        kept.append(1)
        if len(kept) == 3:
            stored.append(path.read_bytes())
            raise StopError

    save = cluster._progress.Checkpoint.save
    monkeypatch.setattr(cluster._progress.Checkpoint, "save", lambda *args: (save(*args), stop()))
    with cluster.checkpoint(path), pytest.raises(StopError):
        QuadraticLogisticRegression().fit(*given)
    monkeypatch.undo()
    with cluster.checkpoint(path, resume=True):
        QuadraticLogisticRegression().fit(*given)
    assert not path.exists()
    path.write_bytes(stored[0])
    with (
        cluster.checkpoint(path, resume=True),
        pytest.raises(ValueError, match="belongs to another fit: options"),
    ):
        QuadraticLogisticRegression(C=2).fit(*given)
    path.write_bytes(b"damaged")
    with (
        cluster.checkpoint(path, resume=True),
        pytest.raises(ValueError, match="is not a checkpoint of a fit"),
    ):
        QuadraticLogisticRegression().fit(*given)
