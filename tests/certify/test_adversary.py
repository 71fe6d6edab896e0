"""Certificates hold against an adversary: random models, pipelines, dtypes, scales and ranks."""

import functools
import operator
from collections import Counter

import numpy as np
import pytest

from quadric.certify import counterfactual, radius
from tests.support.adversary import BLOCKS, KINDS, SAMPLE, attacked, draw, near_ties, of_kinds
from tests.support.exact import distance_between, scores_of

EXACT = (
    "one layer",
    "low rank",
    "extreme scales",
    "bilinear",
    "pipeline",
    "converted",
    "truncated",
)
COUNTERFACTUAL = tuple(kind for kind in KINDS if kind != "hidden layers")


def attack(seed, counts):
    """Attack the radii of a case, at ordinary rows and close to ties; return the violations."""
    case, rng = draw(seed), np.random.default_rng(seed)
    found = radius(case.model, case.X)
    ties = near_ties(case.X, found, case.moving)[::4].astype(case.X.dtype)
    violations = 0
    for X in (case.X, ties):
        if not len(X):
            continue
        certified = found if X is case.X else radius(case.model, X)
        points, rows = attacked(X, certified, rng, moving=case.moving, scale=case.scale)
        violations += int((case.model.predict(X) != certified.predicted).sum())
        if len(points):
            violations += int((case.model.predict(points) != certified.predicted[rows]).sum())
        for k in rng.choice(len(points), size=min(3, len(points)), replace=False):  # alone
            violations += int(case.model.predict(points[[k]])[0] != certified.predicted[rows[k]])
        counts["rows"] += len(X)
        counts["points"] += len(points)
    counts["ordinary"] += len(case.X)
    counts["proven"] += int((found.radius > 0).sum())
    counts["near ties"] += len(ties)
    counts["models"] += 1
    counts["other dtype"] += case.fit_dtype != case.query_dtype
    return [f"{case.kind}, seed {seed}"] * violations


@pytest.mark.parametrize("kind", KINDS)
def test_no_attack_within_the_radius_succeeds(kind):
    counts = Counter()
    found = [attack(seed, counts) for seed in of_kinds(SAMPLE, kind)]
    assert functools.reduce(operator.iadd, found, []) == []
    assert counts["proven"] > counts["ordinary"] / 2  # a radius of 0 would prove nothing
    assert counts["points"] > 4 * counts["ordinary"]


@pytest.mark.full
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_no_attack_on_5000_models_succeeds(seeds):
    counts, violations = Counter(), []
    for seed in seeds:
        violations += attack(seed, counts)
    assert violations == []
    assert counts["other dtype"] >= len(seeds) / 3
    assert counts["rows"] >= 20 * len(seeds)
    assert counts["near ties"] >= 4 * len(seeds)
    print(f"adversary {dict(counts)}")


def check_distances(seed):
    """Compare the distances and radii of two rows with those in 60 digits."""
    case = draw(seed)
    found = radius(case.model, case.X[:2])
    scores, change = scores_of(case.model, case.X.shape[1])
    labels = list(getattr(case.model, "classes_", range(len(scores))))
    for x, distance, certified, predicted in zip(
        case.X, found.distance, found.radius, found.predicted, strict=False
    ):
        c = labels.index(predicted)
        ties = [distance_between(scores, change, x, c, k) for k in range(len(scores)) if k != c]
        wanted = float(min(ties))
        assert certified <= wanted * (1 + 1e-12)
        if case.fit_dtype == "float64":
            np.testing.assert_allclose(distance, wanted, rtol=1e-7, atol=1e-12 * case.scale)


@pytest.mark.parametrize("kind", EXACT)
def test_distances_are_those_of_the_dual_in_60_digits(kind):
    for seed in of_kinds(SAMPLE, kind):
        check_distances(seed)


@pytest.mark.full
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_distances_of_5000_models_are_those_of_the_dual(seeds):
    for seed in of_kinds(seeds, *EXACT):
        check_distances(seed)


def check_counterfactuals(seed):
    """Counterfactuals of a row, and of the same row with a column that may only grow."""
    case = draw(seed)
    x, k = case.X[:1], case.moving
    found = radius(case.model, x)
    size = float(np.abs(x[0, :k].astype(float)).max()) + case.scale
    # the point is rounded to the dtype of the row
    ulp = float(np.finfo(x.dtype).eps) * size * np.sqrt(k) + float(np.finfo(x.dtype).tiny)
    change = counterfactual(case.model, x)
    if np.isinf(found.distance[0]):
        assert change.distance == np.inf
    assert found.radius[0] <= change.distance
    assert change.lower_bound <= change.distance
    if np.isfinite(change.distance):
        expect_class(case, x, change)
        if case.query_dtype == "float64" and case.fit_dtype == "float64":
            assert change.distance <= found.distance[0] * (1 + 1e-6) + 4 * ulp
    grown = counterfactual(case.model, x, bounds={0: (float(x[0, 0]), None)})
    assert grown.distance >= found.radius[0]
    if np.isfinite(grown.distance):
        expect_class(case, x, grown)
        assert grown.point[0] >= float(x[0, 0])
        # in low precision, the model changes its mind only several roundings past the boundary
        assert grown.distance >= change.distance * (1 - 1e-6) - 16 * ulp
    elif np.isfinite(change.distance):
        assert change.point[0] < float(x[0, 0])  # otherwise it would be a solution
    held = counterfactual(case.model, x, fixed=[0])
    if np.isfinite(held.distance):
        expect_class(case, x, held)
        assert held.point[0] == float(x[0, 0])


def expect_class(case, x, change):
    """The model predicts the stated class for the point, in the precision of the row."""
    k = case.moving
    row = x.copy()
    row[0, :k] = change.point[:k]
    assert (row[0, :k].astype(float) == change.point[:k]).all()
    assert case.model.predict(row)[0] == change.becomes != change.predicted


@pytest.mark.parametrize("kind", COUNTERFACTUAL)
def test_counterfactuals_of_every_kind_have_the_class_that_they_state(kind):
    for seed in of_kinds(SAMPLE, kind):
        check_counterfactuals(seed)


@pytest.mark.full
@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_counterfactuals_of_5000_models(seeds):
    for seed in of_kinds(seeds, *COUNTERFACTUAL):
        check_counterfactuals(seed)
