"""The sparse estimators: what they choose, their parameters, and the model that they return."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quadric
from quadric import SparseQuadraticClassifier, SparseQuadraticRegressor
from quadric.certify import counterfactual, radius
from quadric.errors import MemoryLimitError
from quadric.estimators import _subsamples
from quadric.explain import explain


def planted(samples=300, n=12, seed=0):
    """Inputs with different units, and targets that depend on a product, a square and an input."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(samples, n))
    y = S[:, 2] * S[:, 5] + S[:, 7] + 0.7 * S[:, 3] ** 2 + 0.1 * rng.normal(size=samples)
    return S * np.linspace(0.1, 5, n) + np.arange(n), y


TERMS = [(7,), (2, 5), (3, 3)]


@pytest.mark.parametrize("hierarchy", ["none", "strong"])
def test_planted_terms_are_found(hierarchy):
    X, y = planted()
    model = SparseQuadraticRegressor(random_state=0, hierarchy=hierarchy).fit(X, y)
    mains = [(2,), (3,), (5,), (7,)] if hierarchy == "strong" else [(7,)]
    strongest = np.argsort(-np.abs(model.coefficients_[:, 0]))[:3]
    assert {model.terms_[k] for k in strongest} == set(TERMS)
    assert set(model.terms_) >= set(mains)
    assert model.score(*planted(seed=1)) > 0.95
    classifier = SparseQuadraticClassifier(max_terms=3).fit(X, y > 0.7)
    assert classifier.terms_ == TERMS


def test_auto_is_the_largest_penalty_within_one_standard_error():
    X, y = planted(samples=80)
    y = y + np.random.default_rng(1).normal(size=80)
    model = SparseQuadraticRegressor(random_state=0, cv=4).fit(X, y)
    mean = model.cv_loss_.mean(axis=1)
    best = mean.argmin()
    error = model.cv_loss_[best].std(ddof=1) / 2
    chosen = len(model.alphas_) - 1
    assert chosen < best
    assert mean[chosen] <= mean[best] + error < mean[chosen - 1]
    assert model.alpha_ == model.alphas_[-1]


def test_the_loss_on_held_out_samples_is_that_of_a_fit_to_the_others():
    X, y = planted(samples=90)
    folds = KFold(3, shuffle=True, random_state=0)
    model = SparseQuadraticRegressor(cv=folds).fit(X, y)
    train, test = next(folds.split(X))
    alpha = model.alphas_[3]
    alone = SparseQuadraticRegressor(alpha=alpha).fit(X[train], y[train])
    loss = ((alone.predict(X[test]) - y[test]) ** 2).mean() / 2 / y.var()
    assert model.cv_loss_[3, 0] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("task", ["regression", "two classes", "three classes"])
@pytest.mark.parametrize("alpha", ["auto", 0.05])
def test_refit_fits_the_chosen_terms_again(task, alpha):
    """With scikit-learn's ridge and logistic regression as references."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 5)) * [1.0, 2.0, 0.5, 3.0, 1.0] + 1
    z = X[:, 0] * X[:, 1] - X[:, 3] + rng.normal(size=len(X))
    of = SparseQuadraticRegressor if task == "regression" else SparseQuadraticClassifier
    y = z if task == "regression" else np.digitize(z, [0.0] if task[:3] == "two" else [-2, 1])
    lasso = of(alpha=alpha, max_terms=6, random_state=0)
    model = of(alpha=alpha, max_terms=6, refit=True, random_state=0).fit(X, y)
    S = (X - model.center_) / model.scale_
    E = np.column_stack([S[:, list(term)].prod(axis=1) for term in model.terms_])
    E = (E - E.mean(axis=0)) / E.std(axis=0)
    if task == "regression":
        reference = Ridge(alpha=1).fit(E, y)
        np.testing.assert_allclose(model.predict(X), reference.predict(E), rtol=1e-4, atol=1e-4)
    elif task == "two classes":
        reference = LogisticRegression(C=1, tol=1e-10).fit(E, y)
        np.testing.assert_allclose(model.coefficients_.T, reference.coef_, rtol=1e-3, atol=1e-4)
    else:
        P, kept = model.predict_proba(X), model.coefficients_ != 0
        slope = E.T @ (P - np.eye(3)[y]) / len(X) + model.coefficients_ / len(X)
        assert np.abs(slope[kept]).max() <= 1e-5
        assert not kept.all()  # terms that a class does not use stay out
    if alpha != "auto":  # the same terms, with larger coefficients
        lasso.fit(X, y)
        assert lasso.terms_ == model.terms_
        assert np.abs(model.coefficients_).sum() > 1.05 * np.abs(lasso.coefficients_).sum()
        assert lasso.certificate_ == model.certificate_
    else:
        chosen = len(model.alphas_) - 1
        assert chosen == model.cv_loss_.mean(axis=1).argmin()


def test_max_terms_limits_each_output():
    X, y = planted()
    classes = np.digitize(y, [0, 1.5])
    for most in (1, 3, 6):
        model = SparseQuadraticClassifier(max_terms=most, random_state=0).fit(X, classes)
        assert 0 < np.count_nonzero(model.coefficients_, axis=0).max() <= most
    limited = SparseQuadraticRegressor(alpha=1e-3, max_terms=3).fit(X, y)
    assert len(limited.terms_) <= 3
    assert limited.alpha_ > 1e-3
    assert SparseQuadraticRegressor(alpha=1e-3).fit(X, y).alpha_ == pytest.approx(1e-3)


def test_fit_path_has_the_models_of_fit():
    X, y = planted()
    estimator = SparseQuadraticRegressor(n_alphas=8, eps=0.1)
    path = estimator.fit_path(X, y)
    assert not path.coefficients[0].any()
    assert path.coefficients.shape == (8, len(path.terms), 1)
    assert (np.diff(path.losses) < 0).all()
    model = SparseQuadraticRegressor(alpha=path.alphas[5]).fit(X, y)
    found = dict(zip(path.terms, path.coefficients[5, :, 0], strict=True))
    np.testing.assert_allclose(
        model.coefficients_[:, 0], [found[term] for term in model.terms_], rtol=1e-6
    )
    assert not hasattr(estimator, "network_")


def test_weights_count_as_repetitions():
    X, y = planted(samples=60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    for estimator, target in (
        (SparseQuadraticRegressor(alpha=0.1), y),
        (SparseQuadraticClassifier(alpha=0.05), np.digitize(y, [0, 1.5])),
    ):
        weighted = estimator.fit(X, target, weight).network_.logits(X)
        repeated = estimator.fit(np.repeat(X, weight, axis=0), np.repeat(target, weight))
        np.testing.assert_allclose(weighted, repeated.network_.logits(X), rtol=1e-6, atol=1e-9)


def test_class_weights_multiply_sample_weights():
    X, y = planted()
    rare = y > 2
    balanced = SparseQuadraticClassifier(0.05, class_weight="balanced").fit(X, rare)
    weight = np.where(rare, 1 / rare.sum(), 1 / (~rare).sum())
    same = SparseQuadraticClassifier(0.05).fit(X, rare, weight)
    np.testing.assert_allclose(balanced.decision_function(X), same.decision_function(X), rtol=1e-6)
    plain = SparseQuadraticClassifier(0.05).fit(X, rare)
    assert balanced.predict(X).sum() > plain.predict(X).sum()


def test_threads_sparse_inputs_and_float32_do_not_change_the_model():
    X, y = planted()
    X[np.abs(X) < 1] = 0
    expected = SparseQuadraticRegressor(random_state=0).fit(X, y)
    for other, given in ((2, X), (None, sparse.csr_array(X))):
        model = SparseQuadraticRegressor(random_state=0, n_jobs=other).fit(given, y)
        assert model.terms_ == expected.terms_
        np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)
    rounded = SparseQuadraticRegressor(random_state=0).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(rounded.predict(X), expected.predict(X), rtol=1e-3, atol=1e-3)


def test_units_of_inputs_and_targets_do_not_matter():
    X, y = planted()
    one = SparseQuadraticRegressor(random_state=0).fit(X, y)
    other = SparseQuadraticRegressor(random_state=0).fit(X * 1000 - 7, 1e6 * y + 3e6)
    assert one.terms_ == other.terms_
    assert other.alpha_ == pytest.approx(1e6 * one.alpha_)
    np.testing.assert_allclose(other.predict(X * 1000 - 7), 1e6 * one.predict(X) + 3e6, rtol=1e-6)


def test_a_target_that_nothing_explains_has_no_terms():
    X, _ = planted()
    model = SparseQuadraticRegressor().fit(X, np.full(len(X), 2.5))
    assert model.terms_ == []
    np.testing.assert_allclose(model.predict(X), 2.5)
    assert model.coefficients_.shape == (0, 1)


def test_a_class_with_one_member_is_never_held_out():
    X, y = planted(samples=60)
    classes = np.digitize(y, [0, 1.5])
    classes[0] = 3
    model = SparseQuadraticClassifier(random_state=0).fit(X, classes)
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_memory_is_limited():
    quadric.set_config(max_memory=10**6)
    try:
        with pytest.raises(MemoryLimitError, match="terms would need"):
            SparseQuadraticRegressor(1.0).fit(np.eye(300), np.arange(300))
    finally:
        quadric.set_config(max_memory=None)


# ---- the result is an ordinary quadratic layer -------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    pipeline = make_pipeline(StandardScaler(), SparseQuadraticClassifier(max_terms=3))
    return pipeline.fit(data.data, data.target), data.data, data.target


def test_the_equation_has_exactly_the_terms(iris):
    X, y = planted()
    for model in (
        SparseQuadraticRegressor(random_state=0).fit(X, y),
        make_pipeline(StandardScaler(), SparseQuadraticRegressor(random_state=0)).fit(X, y),
    ):
        last = model[-1] if hasattr(model, "steps") else model
        for explanation in (explain(model, top=None), explain(model, X, top=None)):
            found = explanation.classes[0].terms
            kinds = {
                (term.features * 2 if term.kind == "squared" else term.features) for term in found
            }
            assert kinds == set(last.terms_)
            assert explanation.classes[0].n_terms == len(last.terms_)
    term = next(one for one in explain(model, X).classes[0].terms if one.kind == "linear")
    assert term.names == ("x8",)
    assert term.centers[0] == pytest.approx(X[:, 7].mean(), abs=1e-3 * X[:, 7].std())


def test_without_a_scaler_the_learned_means_and_scales_rank_the_terms():
    X, y = planted()
    model = SparseQuadraticRegressor(random_state=0).fit(X, y)
    scaled = make_pipeline(StandardScaler(), SparseQuadraticRegressor(random_state=0)).fit(X, y)
    assert "learned in training" in explain(model).ranked_by
    shares = [[term.share for term in explain(one).classes[0].terms] for one in (model, scaled)]
    np.testing.assert_allclose(*shares, rtol=1e-6)


def test_certificates_and_counterfactuals_hold(iris):
    model, X, _ = iris
    rows = X.iloc[::15]
    found = radius(model, rows)
    assert (found.radius > 0).all()
    predicted = model.predict(rows)
    step = np.random.default_rng(0).normal(size=rows.shape)
    step *= 0.99 * found.radius[:, None] / np.linalg.norm(step, axis=1, keepdims=True)
    np.testing.assert_array_equal(model.predict(rows + step), predicted)
    change = counterfactual(model, rows.iloc[[0]])
    point = pd.DataFrame([change.point], columns=X.columns)
    assert model.predict(point)[0] == change.becomes != predicted[0]


def test_files_and_onnx_predict_the_same(iris, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from quadric import onnx

    model, X, _ = iris
    quadric.save(model, tmp_path / "iris.quadric")
    loaded = quadric.load(tmp_path / "iris.quadric")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded[-1].terms_ == model[-1].terms_
    assert loaded[-1].certificate_ == model[-1].certificate_
    np.testing.assert_array_equal(loaded[-1].coefficients_, model[-1].coefficients_)
    assert str(explain(loaded)) == str(explain(model))
    onnx.export(model, tmp_path / "iris.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "iris.onnx")
    found = session.run(None, {session.get_inputs()[0].name: X.to_numpy(np.float32)})
    np.testing.assert_allclose(
        next(one for one in found if np.ndim(one) == 2), model.predict_proba(X), atol=1e-5
    )


def test_models_are_drawn(iris):
    plt = pytest.importorskip("matplotlib.pyplot")
    from quadric import plotting

    model, X, _ = iris
    bars = plotting.plot_importances(explain(model, X))
    assert [label.get_text() for label in bars.get_yticklabels()]
    plt.close("all")


# ---- stability ---------------------------------------------------------------------------------


def test_stable_terms_are_the_planted_ones():
    X, y = planted(samples=400)
    y = y + np.random.default_rng(3).normal(size=400)
    found = SparseQuadraticRegressor(random_state=0).stability(X, y, n_pairs=5)
    assert sorted(found.stable) == sorted(TERMS)
    assert found.expected_false <= 1
    assert found.n_candidates == 90
    assert found.by_term[(2, 5)] == 1
    assert (np.diff(found.frequencies) <= 0).all()


def test_noise_is_not_stable():
    """On average over the data sets, fewer false terms than the bound of 1."""
    counts = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 8)), rng.normal(size=100)
        counts.append(len(SparseQuadraticRegressor().stability(X, y, n_pairs=5).stable))
    assert np.mean(counts) <= 1


def test_the_bound_counts_the_terms_that_were_selected():
    X, y = planted(samples=100)
    few = SparseQuadraticRegressor(random_state=0, max_terms=2).stability(X, y, n_pairs=3)
    assert few.expected_false <= 2**2 / (0.5 * 90)
    assert round(few.frequencies.sum(), 6) <= 2
    with pytest.raises(ValueError, match=r"threshold must be above 0\.5"):
        SparseQuadraticRegressor().stability(X, y, threshold=0.5)


def test_halves_are_complementary_and_have_each_class():
    strata = np.repeat([0, 1, 2], [7, 20, 4])
    first, second = _subsamples.halves_of(strata, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(31))
    counts = np.array([np.bincount(strata[rows]) for rows in (first, second)])
    assert (np.abs(counts[0] - counts[1]) <= 1).all()


def test_a_fit_that_stops_too_early_warns(monkeypatch):
    """The certificate is computed from exact gradients, whatever the solver believes."""
    X, y = planted()
    monkeypatch.setattr("quadric.lasso._newton.MOST_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="optimality conditions are violated by"):
        model = SparseQuadraticClassifier(alpha=0.01).fit(X, y > 0.7)
    assert model.certificate_.kkt_violation > 1e-6
    monkeypatch.undo()
    assert SparseQuadraticClassifier(0.01).fit(X, y > 0.7).certificate_.kkt_violation <= 1e-6
