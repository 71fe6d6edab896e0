"""Solutions are optimal over all terms, by other solvers and by a check that shares no code."""

import numpy as np
import pytest

from quadric import SparseQuadraticClassifier, SparseQuadraticRegressor
from quadric.lasso import HIERARCHIES
from tests.support.expanded import (
    LOSSES,
    dual_value,
    expand,
    optimum,
    optimum_by_cones,
    problem,
    residual_and_loss,
    violation,
)

CASES = [
    (loss, hierarchy, seed) for loss in LOSSES for hierarchy in HIERARCHIES for seed in range(30)
]
SHARES = (0.5, 0.2, 0.05)  # of the smallest penalty with no terms


def fitted(X, y, loss, hierarchy, share, weight=None, **options):
    of = SparseQuadraticRegressor if loss == "squared" else SparseQuadraticClassifier
    largest = of(1e9, hierarchy=hierarchy).fit(X, y, weight).network_
    assert not largest.layers[0].packed.any()
    path = of(hierarchy=hierarchy, n_alphas=2, eps=share).fit_path(X, y, weight)
    return of(float(path.alphas[-1]), hierarchy=hierarchy, **options).fit(X, y, weight)


def scores(model, X):
    return model.network_.logits(X)


def table(model):
    return dict(zip(model.terms_, model.coefficients_, strict=True))


def claimed_penalty(model, X, y, loss, weight):
    loss_value = residual_and_loss(scores(model, X), y, loss, weight)[1]
    return (model.certificate_.objective - loss_value) / model.alpha_


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize(("loss", "hierarchy", "seed"), CASES)
def test_the_objective_is_that_of_another_solver(loss, hierarchy, seed):
    X, y = problem(seed, loss)
    weight = None if seed % 2 else np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    model = fitted(X, y, loss, hierarchy, SHARES[seed % 3], weight)
    best = optimum(X, y, loss=loss, alpha=model.alpha_, hierarchy=hierarchy, weight=weight)
    assert model.certificate_.objective == pytest.approx(best, rel=1e-8)
    assert model.certificate_.n_terms == X.shape[1] * (X.shape[1] + 3) // 2


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
def test_the_objective_is_that_of_an_interior_point_method(seed):
    """Every loss and both hierarchies, with up to 40 inputs."""
    pytest.importorskip("cvxpy")
    loss, hierarchy = LOSSES[seed % 3], HIERARCHIES[seed // 3 % 2]
    X, y = problem(seed, loss, n=(8, 15, 25, 40, 12)[seed % 5], samples=120)
    model = fitted(X, y, loss, hierarchy, (0.5, 0.2, 0.1)[seed % 3])
    options = {"loss": loss, "alpha": model.alpha_, "hierarchy": hierarchy}
    assert model.certificate_.objective == pytest.approx(optimum_by_cones(X, y, **options), 1e-8)
    assert model.certificate_.kkt_violation <= 1e-6


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_term_violates_the_conditions(loss, hierarchy):
    X, y = problem(7, loss, n=30, samples=200)
    model = fitted(X, y, loss, hierarchy, 0.2)
    weight = np.full(len(y), 1 / len(y))
    options = {"loss": loss, "alpha": model.alpha_, "hierarchy": hierarchy}
    options["penalty"] = claimed_penalty(model, X, y, loss, weight)
    assert violation(X, y, scores(model, X), table(model), **options) <= 1e-6
    assert model.certificate_.kkt_violation <= 1e-6
    # the gap is one: the dual value is a lower bound
    r, _ = residual_and_loss(scores(model, X), y, loss, weight)
    gap = model.certificate_.objective - dual_value(r, y, loss, weight)
    assert abs(gap) <= 1e-6 * model.certificate_.objective
    assert -1e-12 <= model.certificate_.duality_gap <= 1e-6 * model.certificate_.objective


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_planted_violation_is_found(loss, hierarchy):
    """The optimum without one of the terms is not optimal over all terms."""
    X, y = problem(7, loss, n=6, samples=200)
    model = fitted(X, y, loss, hierarchy, 0.2)
    weight = np.full(len(y), 1 / len(y))
    options = {"loss": loss, "alpha": model.alpha_, "hierarchy": hierarchy}
    options["penalty"] = claimed_penalty(model, X, y, loss, weight)
    strongest = max(table(model), key=lambda term: np.abs(table(model)[term]).max())
    E, terms = expand(X)
    kept = {term: value for term, value in table(model).items() if term != strongest}
    z = scores(model, X) - E[:, [terms.index(strongest)]] * table(model)[strongest]
    assert violation(X, y, z, kept, **options) > 1e-3
    moved = {**table(model), strongest: table(model)[strongest] * 1.001}
    z = scores(model, X) + E[:, [terms.index(strongest)]] * table(model)[strongest] * 0.001
    assert violation(X, y, z, moved, **options) > 1e-6


def test_a_violation_on_the_way_is_found_by_the_path():
    """A term that the bounds would wrongly exclude changes the objective."""
    X, y = problem(3, "squared", n=12, samples=100)
    every = [fitted(X, y, "squared", "none", share) for share in (0.9, 0.5, 0.1, 0.02)]
    for model in every:
        best = optimum(X, y, loss="squared", alpha=model.alpha_, hierarchy="none")
        assert model.certificate_.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_strong_hierarchy_holds(loss):
    X, y = problem(11, loss, n=10, samples=150)
    model = fitted(X, y, loss, "strong", 0.2)
    products = [term for term in model.terms_ if len(term) == 2]
    assert products
    for k in range(model.coefficients_.shape[1]):
        used = {term for term, value in table(model).items() if value[k]}
        assert all((i,) in used for term in used for i in term)
    without = fitted(X, y, loss, "none", 0.2)
    assert not all((i,) in without.terms_ for term in without.terms_ for i in term)
