"""Scaling in front of an estimator, and the power transform of columns with long tails."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kurtosis
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import quadric
from quadric import QuadraticClassifier, QuadraticRegressor, with_scaling
from quadric.certify import radius
from quadric.estimators import fit_tails, long_tails, power_steps
from quadric.explain import explain

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(300, 3))
LOGNORMAL = np.column_stack([np.exp(2 * Z[:, 0]), np.exp(2 * Z[:, 1]), Z[:, 2]])
PRODUCT = Z[:, 0] * Z[:, 1] + Z[:, 2]
CLASSES = np.where(PRODUCT > 0, "yes", "no")


def regressor():
    return QuadraticRegressor(random_state=0)


@pytest.fixture(scope="module")
def transformed():
    return with_scaling(QuadraticClassifier(random_state=0)).fit(LOGNORMAL, CLASSES)


def test_columns_with_long_tails():
    z = RNG.normal(size=1000)
    laplace_like = np.sign(z) * z**2
    counts = np.where(RNG.random(1000) < 0.8, 0, RNG.poisson(np.exp(1 + z)))
    rare = (np.arange(1000) < 5).astype(float)  # two values: a transform would change nothing
    gaps = np.where(np.arange(1000) % 7, np.exp(z), np.nan)
    uniform, constant, empty = RNG.random(1000), np.ones(1000), np.full(1000, np.nan)
    columns = [z, laplace_like, counts, rare, gaps, uniform, constant, empty, 1e200 * np.exp(z)]
    assert long_tails(np.column_stack(columns)) == [1, 2, 4, 8]
    assert long_tails(pd.DataFrame({"z": z, "counts": counts})) == [1]
    assert long_tails(np.empty((0, 2))) == []


def test_a_few_of_many_columns_look_as_if_they_had_long_tails():
    rng = np.random.default_rng(0)
    normal, skewed = rng.normal(size=(45, 2000)), np.exp(rng.normal(size=45))
    assert (kurtosis(normal) > 3).any()
    assert long_tails(normal) == []
    assert long_tails(np.column_stack([normal, skewed])) == [2000]


def test_a_transform_that_helps_is_used(transformed):
    facts = transformed.tails_
    assert facts["columns"] == [0, 1]
    assert facts["transformed"]
    assert facts["transformed_loss"] < 0.95 * facts["kept_loss"]
    plain = make_pipeline(StandardScaler(), QuadraticClassifier(random_state=0))
    new = RNG.normal(size=(500, 3))
    X = np.column_stack([np.exp(2 * new[:, 0]), np.exp(2 * new[:, 1]), new[:, 2]])
    y = np.where(new[:, 0] * new[:, 1] + new[:, 2] > 0, "yes", "no")
    assert transformed.score(X, y) > plain.fit(LOGNORMAL, CLASSES).score(X, y) + 0.03


def test_a_transform_that_does_not_help_is_not_used():
    y = LOGNORMAL[:, 0] - LOGNORMAL[:, 1]
    model = with_scaling(regressor()).fit(LOGNORMAL, y)
    assert not model.tails_["transformed"]
    plain = make_pipeline(StandardScaler(), regressor()).fit(LOGNORMAL, y)
    np.testing.assert_array_equal(model.predict(LOGNORMAL), plain.predict(LOGNORMAL))


def test_without_long_tails_the_estimator_is_fitted_once(monkeypatch):
    fits = []
    fit = QuadraticRegressor.fit
    monkeypatch.setattr(
        QuadraticRegressor, "fit", lambda self, *a, **k: (fits.append(1), fit(self, *a, **k))[1]
    )
    model = with_scaling(regressor()).fit(Z, PRODUCT)
    assert (model.tails_, len(fits)) == (None, 1)
    with_scaling(regressor()).fit(LOGNORMAL, PRODUCT)
    assert len(fits) == 3
    # without a choice, there is no loss on held-out samples to compare
    fixed = QuadraticRegressor((), alpha=1.0, random_state=0)
    model = with_scaling(fixed).fit(LOGNORMAL, PRODUCT)
    assert len(fits) == 4
    assert model.tails_ == {
        "columns": [0, 1],
        "transformed": False,
        "kept_loss": None,
        "transformed_loss": None,
    }


def test_the_choice_does_not_depend_on_units(transformed):
    units = np.array([2.0**-20, 2.0**17, 1.0])  # powers of two cause no rounding errors
    model = with_scaling(QuadraticClassifier(random_state=0)).fit(LOGNORMAL * units, CLASSES)
    assert model.tails_ == transformed.tails_
    np.testing.assert_array_equal(model.predict(LOGNORMAL * units), transformed.predict(LOGNORMAL))


def test_values_far_outside_the_range_of_fit_do_not_explode(transformed):
    far = np.array([[-1e6, 1.0, 0.0], [1e9, 1.0, 0.0]])
    nearest = np.clip(far, LOGNORMAL.min(axis=0), LOGNORMAL.max(axis=0))
    np.testing.assert_allclose(
        transformed.predict_proba(far), transformed.predict_proba(nearest), rtol=1e-6
    )


def test_a_pipeline_can_be_cloned_cross_validated_and_refitted(transformed):
    assert cross_val_score(clone(transformed), LOGNORMAL, CLASSES, cv=3).mean() > 0.75
    again = clone(transformed).fit(Z, CLASSES)
    assert again.tails_ is None
    assert isinstance(again[0], StandardScaler)


def test_keep_and_power_fit_once_without_a_comparison():
    kept, power = (with_scaling(regressor(), tails=tails) for tails in ("keep", "power"))
    assert isinstance(kept.fit(LOGNORMAL, PRODUCT)[0], StandardScaler)
    assert power.fit(LOGNORMAL, PRODUCT).score(LOGNORMAL, PRODUCT) > 0.9
    assert power.fit(Z, PRODUCT).score(Z, PRODUCT) > 0.9  # no column has long tails
    with pytest.raises(ValueError, match=r"tails must be one of 'auto', 'keep', 'power'. Got 'x'"):
        with_scaling(regressor(), tails="x")


def test_a_saved_model_predicts_the_same(transformed, tmp_path):
    quadric.save(transformed, tmp_path / "a.quadric")
    loaded = quadric.load(tmp_path / "a.quadric")
    assert type(loaded) is Pipeline
    np.testing.assert_array_equal(
        loaded.predict_proba(LOGNORMAL), transformed.predict_proba(LOGNORMAL)
    )


def test_an_exported_model_predicts_the_same(transformed, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from quadric.onnx import export

    export(transformed, tmp_path / "a.onnx")
    session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    label = session.run(None, {session.get_inputs()[0].name: LOGNORMAL.astype(np.float32)})[0]
    assert (np.ravel(label) == transformed.predict(LOGNORMAL)).mean() > 0.99


def test_certificates_refuse_the_power_transform_by_name(transformed):
    with pytest.raises(ValueError, match=r"ColumnTransformer does neither .*Power.* tails='keep'"):
        radius(transformed, LOGNORMAL[0])


def test_explanations_are_in_the_output_columns():
    single = QuadraticClassifier((), random_state=0)
    model = with_scaling(single, tails="power").fit(LOGNORMAL, CLASSES)
    assert "3 features that the preprocessing computes from the inputs" in str(explain(model))


class Telling(QuadraticRegressor):
    def fit(self, X, y):
        warnings.warn(f"fitted with max_iter={self.max_iter}", stacklevel=2)
        return super().fit(X, y)


@pytest.mark.parametrize(("y", "chosen"), [(LOGNORMAL[:, 0], 1000), (PRODUCT, 999)])
def test_only_the_warnings_of_the_chosen_fit_are_shown(y, chosen):
    kept, other = (Telling(max_iter=count, random_state=0) for count in (1000, 999))
    pipelines = make_pipeline(StandardScaler(), kept), make_pipeline(*power_steps(), other)
    with warnings.catch_warnings(record=True, action="always") as caught:
        fit_tails(*pipelines, LOGNORMAL, y, [0, 1])
    told = [str(w.message) for w in caught if "fitted" in str(w.message)]
    assert told == [f"fitted with max_iter={chosen}"]
