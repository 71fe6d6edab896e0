"""The estimators work with tools for scikit-learn: one test for each tool, if it is installed."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:::(?!quadric)")]


@pytest.fixture(scope="module")
def products():
    """Samples whose label is the sign of x0 x1; the other inputs have no effect."""
    X = np.random.default_rng(0).normal(size=(400, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_shap_attributes_products_to_their_inputs(products):
    shap = pytest.importorskip("shap")
    X, y = products
    for model in (QuadraticLogisticRegression(C=10.0), QuadraticClassifier(random_state=0)):
        model.fit(X, y)
        explainer = shap.Explainer(model.decision_function, X[:100], seed=0)
        values = explainer(X[:40], silent=True).values
        expected = model.decision_function(X[:40]) - model.decision_function(X[:100]).mean()
        np.testing.assert_allclose(values.sum(axis=1), expected, atol=1e-6)
        assert set(np.argsort(np.abs(values).mean(axis=0))[-2:]) == {0, 1}
        with pytest.raises(TypeError):  # no explainer for linear models is chosen
            shap.Explainer(model, X[:100])


def test_imblearn_resamples_in_a_pipeline():
    over_sampling = pytest.importorskip("imblearn.over_sampling")
    pipelines = pytest.importorskip("imblearn.pipeline")
    X, y = make_classification(600, 6, weights=[0.95], class_sep=0.8, random_state=0)
    plain = make_pipeline(StandardScaler(), QuadraticClassifier((), random_state=0))
    resampled = pipelines.make_pipeline(
        StandardScaler(),
        over_sampling.RandomOverSampler(random_state=0),
        QuadraticClassifier((), random_state=0),
    )
    scores = [
        balanced_accuracy_score(y[400:], model.fit(X[:400], y[:400]).predict(X[400:]))
        for model in (plain, resampled)
    ]
    assert scores[1] > scores[0]


def test_optuna_tunes_the_parameters():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = load_iris(return_X_y=True)

    def objective(trial):
        model = QuadraticClassifier(
            trial.suggest_categorical("hidden_layer_sizes", [(), (4,)]),
            layer_kinds=trial.suggest_categorical("layer_kinds", ["linear", "quadratic"]),
            alpha=trial.suggest_float("alpha", 1e-3, 1e3, log=True),
            random_state=0,
        )
        return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    study.optimize(objective, n_trials=6)
    assert study.best_value > 0.93
    best = QuadraticClassifier(random_state=0).set_params(**study.best_params)
    assert best.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        QuadraticClassifier((4,), random_state=0, max_iter=20),
        QuadraticRegressor((), alpha=0.1),
        QuadraticLogisticRegression(),
    ],
)
def test_skops_saves_and_loads(model, tmp_path):
    skops = pytest.importorskip("skops.io")
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    skops.dump(model, tmp_path / "model.skops")
    named = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith(("quadric.", "numpy.")) for name in named)
    loaded = skops.load(tmp_path / "model.skops", trusted=named)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_dask_ml_predicts_in_blocks_and_trains_incrementally(products):
    wrappers = pytest.importorskip("dask_ml.wrappers")
    arrays = pytest.importorskip("dask.array")
    X, y = products
    blocks, labels = arrays.from_array(X, chunks=(100, 6)), arrays.from_array(y, chunks=100)
    model = QuadraticClassifier((), random_state=0)
    whole = wrappers.ParallelPostFit(model).fit(X, y)
    expected = clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(whole.predict(blocks).compute(), expected)
    fast = QuadraticClassifier((), solver="adam", learning_rate_init=0.05, random_state=0)
    incremental = wrappers.Incremental(fast, shuffle_blocks=False, random_state=0)
    for _ in range(10):
        incremental.partial_fit(blocks, labels, classes=[0, 1])
    expected = clone(fast)
    for _ in range(10):
        for start in range(0, 400, 100):
            rows = slice(start, start + 100)
            expected.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(
        incremental.predict_proba(X), expected.predict_proba(X), rtol=1e-6, atol=1e-9
    )
