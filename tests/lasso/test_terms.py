"""The standardized terms, their gradients and the layer are those of expanded features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from quadric.lasso import Path, Problem, Terms, _terms
from tests.support.expanded import expand, problem


def data(n=6, samples=120):
    X, y = problem(1, "squared", n=n, samples=samples)
    return X, y[:, None]


def numbers_of(terms, n):
    """The numbers of the terms in the order of `expand`."""
    pairs = list(zip(*np.triu_indices(n), strict=True))
    return [t[0] if len(t) == 1 else n + pairs.index(t) for t in terms]


@pytest.mark.parametrize("rows", [4096, 7])
@pytest.mark.parametrize("form", ["dense", "csr", "float32", "fortran"])
def test_columns_and_gradients_are_those_of_expanded_features(form, rows, monkeypatch):
    monkeypatch.setattr(_terms, "ROWS", rows)
    X, Y = data()
    X[:, 4] = X[:, 4] > 0  # a linear function of its square
    weight = np.random.default_rng(0).random(len(X))
    weight /= weight.sum()
    if form == "float32":
        X = X.astype(np.float32)
    given = {"csr": sparse.csr_array, "fortran": np.asfortranarray}.get(form, np.asarray)(X)
    terms = Terms(given, weight)
    E, names = expand(X.astype(float), weight)
    E[:, names.index((4, 4))] = 0  # a copy of (4,)
    order = numbers_of(names, 6)
    everything = terms.columns(np.arange(terms.n_terms))
    np.testing.assert_allclose(everything[:, order], E, atol=1e-9)
    residual = np.hstack([Y, Y**2 - 1])
    gradient = terms.gradient(residual)
    np.testing.assert_allclose(gradient[order], E.T @ (weight[:, None] * residual), atol=1e-9)
    some = np.array([0, 7, 12, 26])
    np.testing.assert_allclose(terms.gradient_of(some, residual), gradient[some], atol=1e-12)
    np.testing.assert_allclose(terms.center, StandardScaler().fit(X, None, weight).mean_, 1e-6)


def test_constant_terms_are_zero():
    X, _ = data()
    X[:, 1] = 3.7
    X[:, 2] = np.sign(X[:, 2] - np.median(X[:, 2]))  # its square is constant
    terms = Terms(X, np.full(len(X), 1 / len(X)))
    i, j = terms.inputs_of(np.arange(terms.n_terms))
    constant = (i == 1) | (j == 1) | ((i == 2) & (j == 2))
    assert np.isinf(terms.deviation[constant]).all()
    assert np.isfinite(terms.deviation[~constant]).all()
    assert not terms.columns(np.flatnonzero(constant)).any()


def test_the_square_of_an_input_with_two_values_is_left_out():
    X, Y = data()
    X[:, 1] = 5 + 3 * (X[:, 1] > np.quantile(X[:, 1], 0.7))
    terms = Terms(X, np.full(len(X), 1 / len(X)))
    square = terms.n + 6  # after the pairs of input 0
    assert [int(one[0]) for one in terms.inputs_of(np.array([square]))] == [1, 1]
    assert np.isinf(terms.deviation[square])
    assert np.isfinite(np.delete(terms.deviation, square)).all()
    # an optimum without it is one over all terms
    point = Path(Problem(terms, (Y - Y.mean()) / Y.std(), "squared")).solve(0.01)
    E, names = expand(X)
    beta = np.zeros(E.shape[1])
    order = numbers_of(names, 6)
    for term, value in zip(point.terms, point.coefficients[:, 0], strict=True):
        beta[order.index(term)] = value
    residual = E @ beta - (Y[:, 0] - Y.mean()) / Y.std()
    assert np.abs(E.T @ residual).max() / len(X) <= 0.01 * (1 + 1e-9)


def test_small_variances_are_computed_without_cancellation():
    rng = np.random.default_rng(0)
    X = np.sign(rng.normal(size=(500, 2)))
    X[:, 0] *= 1 + 1e-4 * rng.normal(size=500)  # the square varies by 2e-4 only
    terms = Terms(X, np.full(500, 1 / 500))
    S = (X - X.mean(axis=0)) / X.std(axis=0)
    assert terms.deviation[2] == pytest.approx((S[:, 0] ** 2).std(), rel=1e-10)


def test_the_layer_computes_the_terms():
    X, _ = data()
    terms = Terms(X, np.full(len(X), 1 / len(X)))
    rng, chosen = np.random.default_rng(0), np.array([0, 3, 6, 9, 15, 26])
    coefficients, intercept = rng.normal(size=(6, 2)), rng.normal(size=2)
    layer = terms.layer(chosen, coefficients, intercept)
    z = intercept + terms.columns(chosen) @ coefficients
    np.testing.assert_allclose(layer.forward(X)[0], z, atol=1e-9)


def test_scores_never_exceed_the_size_of_the_residual():
    """The bound that excludes groups without a pass."""
    X, Y = data()
    terms = Terms(X, np.full(len(X), 1 / len(X)))
    for hierarchy in ("none", "strong"):
        scores = Problem(terms, Y, "squared", hierarchy).scores(terms.gradient(Y - Y.mean()))
        assert 0 < scores.max() <= np.sqrt(((Y - Y.mean()) ** 2).mean())


def test_most_penalties_need_no_pass_and_all_checks_agree(monkeypatch):
    X, Y = data(n=30, samples=400)
    terms = Terms(X, np.full(len(X), 1 / len(X)))

    def objectives():
        path = Path(Problem(terms, (Y - Y.mean()) / Y.std(), "squared"))
        alphas = path.alpha_max * np.geomspace(1, 0.1, 20)
        return [path.solve(a).objective for a in alphas], path.n_passes, path.n_skipped

    fast, passes, skipped = objectives()
    assert skipped > passes
    monkeypatch.setattr("quadric.lasso._path.SINGLE", np.inf)  # a pass for every check
    monkeypatch.setattr("quadric.lasso._path.References.estimate", always_undecided)
    slow, more, _ = objectives()
    assert more > passes
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


def always_undecided(self, residual, weight):
    return self.gradients[-1].copy(), np.full(residual.shape[1], np.inf)
