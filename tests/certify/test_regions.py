"""Extrema, derivatives and influence in regions: other solvers, grids, and samples."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, minimize, minimize_scalar
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticRegressor
from quadric.certify import (
    Ball,
    Box,
    Ellipsoid,
    counterfactual,
    depends_on,
    extremum,
    monotone,
    score_range,
)
from quadric.core import Quadratic


def one_score(Q, w, b):
    return Network([Quadratic([w], [b], [Q])], ["logistic"])


def symmetric(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


# ---- balls and ellipsoids ------------------------------------------------------------------


def smallest_in_a_ball(Q, w, radius):
    """The minimum of x'Qx + w'x for |x| <= radius, from an eigenvalue problem of twice the size.

    S. Adachi and others, Solving the trust-region subproblem by a generalized eigenvalue problem,
    2017. The multiplier is the largest real eigenvalue, or zero.
    """
    n, H = len(w), 2 * Q
    M = np.block([[-H, np.outer(w, w) / radius**2], [np.eye(n), -H]])
    mu = max(0.0, float(np.linalg.eigvals(M).real.max()))
    lam, V = np.linalg.eigh(H)
    G, least = V.T @ w, max(0.0, -float(lam[0]))

    def dual(mu):
        kept = lam + mu > 1e-9 * np.abs(lam).max()
        return -0.5 * (G[kept] ** 2 / (lam + mu)[kept]).sum() - mu * radius**2 / 2

    # in the hard case, the eigenvalue is double and has half of the digits
    near = minimize_scalar(
        lambda mu: -dual(mu),
        bounds=(max(least, 0.999 * mu - 1e-6), 1.001 * mu + 1e-6),
        method="bounded",
        options={"xatol": 1e-14},
    )
    return max(dual(mu), -near.fun, dual(least) if abs(mu - least) < 1e-4 * (1 + mu) else -np.inf)


def ball_case(seed):
    """A random function and ball; every third one is a hard case, every tenth is convex."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    Q, w, r = symmetric(rng, n), rng.normal(size=n), float(10 ** rng.uniform(-1, 1))
    lam, V = np.linalg.eigh(Q)
    if seed % 3 == 0:
        if n > 2 and seed % 2:
            lam[1] = lam[0]  # a multiple lowest eigenvalue
        G = V.T @ w
        G[lam <= lam[0] + 1e-12] = 0.0
        Q, w = (V * lam) @ V.T, V @ G * 10 ** rng.uniform(-2, 0)
    elif seed % 10 == 1:
        Q = (V * np.abs(lam)) @ V.T
    return Q, w, r


def check_ball(seed):
    Q, w, r = ball_case(seed)
    rng, center = (
        np.random.default_rng(seed),
        np.random.default_rng(seed + 10**6).normal(size=len(w)),
    )
    model = one_score(Q, w - 2 * Q @ center, center @ Q @ center - w @ center)
    found = extremum(model, Ball(center, r), sense="minimum")
    expected = smallest_in_a_ball(Q, w, r)
    scale = max(1.0, abs(expected))
    assert abs(found.value - expected) <= 1e-7 * scale
    assert found.bound <= found.value
    assert found.gap <= 1e-9
    assert np.linalg.norm(found.point - center) <= r * (1 + 1e-12)
    # an ellipsoid is a ball in other coordinates
    L = rng.normal(size=Q.shape) + 2 * np.eye(len(w))
    inverse = np.linalg.inv(L)
    turned = one_score(inverse.T @ Q @ inverse, inverse.T @ w, 0.0)
    found = extremum(turned, Ellipsoid(np.zeros(len(w)), L @ L.T, r), sense="minimum")
    assert abs(found.value - expected) <= 1e-6 * scale
    # the rounding errors of the scores grow with the condition of the ellipsoid
    assert found.gap <= max(1e-6, 1e-13 * np.linalg.cond(L) ** 2)


@pytest.mark.parametrize("seed", range(12))
def test_balls_and_ellipsoids_agree_with_an_eigenvalue_solver(seed):
    check_ball(seed)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_500_balls_and_ellipsoids_agree_with_an_eigenvalue_solver(first):
    for seed in range(first, first + 50):
        check_ball(seed)


# ---- boxes ---------------------------------------------------------------------------------


def check_box(seed, n, points):
    """The minimum over a grid, refined from its best points, is not below the bound."""
    rng = np.random.default_rng(seed)
    Q, w = symmetric(rng, n), rng.normal(size=n)
    low = rng.normal(size=n)
    high = low + rng.uniform(0.1, 2, size=n)
    found = extremum(one_score(Q, w, 0.3), Box(low, high), sense="minimum")
    axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
    grid = np.array(list(itertools.product(*axes)))
    values = ((grid @ Q + w) * grid).sum(axis=1) + 0.3
    best = values.min()
    for start in grid[np.argsort(values)[:5]]:
        solved = minimize(
            lambda x: x @ Q @ x + w @ x + 0.3,
            start,
            jac=lambda x: 2 * Q @ x + w,
            bounds=Bounds(low, high),
        )
        best = min(best, solved.fun)
    scale = max(1.0, abs(best))
    assert found.bound <= best + 1e-12 * scale
    assert found.value <= best + 1e-6 * scale
    assert found.gap <= 1e-6
    assert ((low <= found.point) & (found.point <= high)).all()


@pytest.mark.parametrize("seed", range(8))
def test_boxes_agree_with_a_refined_grid(seed):
    check_box(seed, seed % 4 + 1, 12)


@pytest.mark.full
@pytest.mark.slow
def test_200_boxes_agree_with_a_refined_grid():
    for seed in range(200):
        check_box(seed, seed % 5 + 1, 11)


@pytest.mark.full
@pytest.mark.slow
def test_50_indefinite_problems_with_20_inputs_reach_the_gap():
    seconds = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        model = one_score(symmetric(rng, 20), rng.normal(size=20), 0.0)
        start = time.perf_counter()
        found = extremum(model, Box(-np.ones(20), np.ones(20)))
        seconds.append(time.perf_counter() - start)
        assert found.gap <= 1e-6
    assert max(seconds) <= 10


def test_a_search_that_stops_early_has_a_valid_bound():
    # three negative eigenvalues, and minima inside: a hard problem for the search
    rng = np.random.default_rng(3)
    lam, V = np.linalg.eigh(symmetric(rng, 8))
    Q = (V * np.concatenate([-np.abs(lam[:3]), np.abs(lam[3:])])) @ V.T
    model = one_score(Q, rng.normal(size=8), 0.0)
    found = extremum(model, Box(-np.ones(8), np.ones(8)), sense="minimum", gap=0.5)
    close = extremum(model, Box(-np.ones(8), np.ones(8)), sense="minimum")
    assert found.bound <= close.bound + 1e-9 <= close.value + 1e-9
    assert close.gap <= 1e-6


# ---- what the model computes ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_no_score_leaves_the_range(dtype, offset):
    rng = np.random.default_rng(7)
    X = (rng.normal(size=(200, 3)) * [1, 2, 3] + offset).astype(dtype)
    y = (X[:, 0] - offset) ** 2 - X[:, 1] + offset > 1
    model = make_pipeline(StandardScaler(), QuadraticClassifier(hidden_layer_sizes=())).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    found = score_range(model, Box(low, high))
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))), dtype=dtype)
    inside = np.concatenate([corners, rng.uniform(low, high, size=(20_000, 3)).astype(dtype)])
    z = model.decision_function(np.clip(inside, low, high))
    assert found.low <= z.min()
    assert z.max() <= found.high
    if dtype == "float64":
        assert found.minimum.value == pytest.approx(found.low, rel=1e-5)


def test_pipelines_classes_and_numbers_have_scores_by_name():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), PCA(3), QuadraticClassifier(hidden_layer_sizes=()))
    model.fit(X, y)
    box = Box(X.min(), X.max())
    margin = extremum(model, box, of=(0, 2))
    z = model.decision_function(X)
    assert margin.bound >= (z[:, 0] - z[:, 2]).max()
    centered = extremum(model, Ball(X.iloc[[70]], 0.5), of=1)
    assert centered.score == "score of 1"
    assert centered.value >= (z[70] - z[70].mean())[1]
    with pytest.raises(ValueError, match="of must name one of the scores"):
        extremum(model, box)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = make_pipeline(StandardScaler(), QuadraticRegressor(hidden_layer_sizes=())).fit(X, y)
    best = extremum(model, Box(X.min(), X.max()))
    assert best.bound >= model.predict(X).max()
    assert model.predict(pd.DataFrame([best.point], columns=X.columns))[0] == pytest.approx(
        best.value
    )


def test_categories_stay_as_they_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "kind": rng.choice(["x", "y"], 90)})
    y = frame["a"] ** 2 * (frame["kind"] == "x")
    steps = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(steps, QuadraticRegressor(hidden_layer_sizes=())).fit(frame, y)
    low, high = frame.iloc[[0]].assign(a=-1.0), frame.iloc[[0]].assign(a=1.0)
    found = extremum(model, Box(low, high))
    rows = pd.concat([low] * 201, ignore_index=True).assign(a=np.linspace(-1, 1, 201))
    assert found.value >= model.predict(rows).max() - 1e-9
    other = "y" if frame["kind"][0] == "x" else "x"
    with pytest.raises(ValueError, match="equal categories"):
        extremum(model, Box(low, high.assign(kind=other)))


def test_wrong_regions_are_explained():
    model = one_score(np.eye(2), [0.0, 0.0], 0.0)
    with pytest.raises(TypeError, match="region must be a Box, Ball or Ellipsoid"):
        extremum(model, [0, 1])
    with pytest.raises(ValueError, match="low <= high"):
        extremum(model, Box([1.0, 0.0], [0.0, 1.0]))
    with pytest.raises(ValueError, match="at least one input move"):
        extremum(model, Box([1.0, 0.0], [1.0, 0.0]))
    with pytest.raises(ValueError, match="covariance must have shape"):
        extremum(model, Ellipsoid([0.0, 0.0], np.eye(3)))


# ---- monotonicity and influence ------------------------------------------------------------


def random_region(rng, n):
    center = rng.normal(size=n)
    kind = rng.integers(3)
    if kind == 0:
        half = rng.uniform(0.05, 1, size=n)
        return Box(center - half, center + half)
    if kind == 1:
        return Ball(center, float(rng.uniform(0.05, 1)))
    L = rng.normal(size=(n, n))
    return Ellipsoid(center, L @ L.T, float(rng.uniform(0.05, 0.5)))


def inside(region, rng, count, n):
    """Random points of a region, and how far coordinate 0 can move from each."""
    if isinstance(region, Box):
        X = rng.uniform(region.low, region.high, size=(count, n))
        return X, np.column_stack([rng.uniform(region.low[0], region.high[0], size=count)])
    Y = rng.normal(size=(count, n))
    Y *= rng.random((count, 1)) ** (1 / n) / np.linalg.norm(Y, axis=1)[:, None]
    L = np.eye(n) if isinstance(region, Ball) else np.linalg.cholesky(region.covariance)
    d = np.linalg.solve(L, np.eye(n)[0]) / region.radius
    a, b, c = d @ d, Y @ d, 1 - (Y * Y).sum(axis=1)
    root = np.sqrt(b * b + a * c) * (1 - 1e-9)
    X = region.center + region.radius * Y @ L.T
    t = (-b + root * rng.uniform(-1, 1, size=count)) / a
    return X, np.column_stack([X[:, 0] + t])


def check_statements(seed, count):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.choice([1, 3]))
    layer = Quadratic(
        2 * rng.normal(size=(m, n)), 3 * rng.normal(size=m), rng.normal(size=(m, n, n))
    )
    model = Network([layer], ["logistic" if m == 1 else "softmax"])
    region = random_region(rng, n)
    X, moved = inside(region, rng, count, n)
    other = X.copy()
    other[:, 0] = moved[:, 0]
    of = None if m == 1 else (0, 1)
    falls_or_rises = monotone(model, 0, region, of=of)
    z, after = model.logits(X), model.logits(other)
    z, after = (z[:, 0], after[:, 0]) if m == 1 else (z[:, 0] - z[:, 1], after[:, 0] - after[:, 1])
    change = (after - z) * np.sign(other[:, 0] - X[:, 0])
    slack = 1e-10 * np.abs(z).max()
    if falls_or_rises.direction == "increasing":
        assert change.min() >= -slack
    elif falls_or_rises.direction == "decreasing":
        assert change.max() <= slack
    else:
        assert falls_or_rises.direction == "neither"
        slopes = []
        for point in falls_or_rises.points:
            step = np.eye(n)[0] * 1e-6
            high, low = model.logits([point + step]), model.logits([point - step])
            slopes.append(float((high - low)[0, 0] if m == 1 else ((high - low) @ [1, -1, 0])[0]))
        assert slopes[0] < 0 < slopes[1]
    influence = depends_on(model, 0, region)
    if influence.answer == "no":
        assert (model.predict(X) == model.predict(other)).all()
    elif influence.answer == "yes":
        a, b = influence.points
        assert model.predict(a[None])[0] == influence.classes[0]
        assert model.predict(b[None])[0] == influence.classes[1] != influence.classes[0]
        assert (a[1:] == b[1:]).all()
    return falls_or_rises.direction, influence.answer


def test_monotonicity_and_influence_hold_for_samples():
    found = [check_statements(seed, 2000) for seed in range(30)]
    directions, answers = ({one[k] for one in found} for k in (0, 1))
    assert {"increasing", "decreasing", "neither"} <= directions
    assert {"yes", "no"} <= answers
    assert sum(one[1] == "undecided" for one in found) <= 1


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_monotonicity_and_influence_hold_for_a_million_samples(first):
    for seed in range(first, first + 20):
        check_statements(1000 + seed, 10**6)


def test_an_input_without_weight_has_no_influence():
    rng = np.random.default_rng(0)
    Q, w = symmetric(rng, 3), rng.normal(size=3)
    Q[1], Q[:, 1], w[1] = 0.0, 0.0, 0.0
    model = one_score(Q, w, 0.0)
    box = Box(-3 * np.ones(3), 3 * np.ones(3))
    assert depends_on(model, 1, box).reason == "no score depends on x2."
    assert depends_on(model, 0, box).answer == "yes"
    assert monotone(model, 1, box).direction == "constant"
    with pytest.raises(ValueError, match="input must move in the region"):
        depends_on(model, 1, Box([-3.0, 1.0, -3.0], [3.0, 1.0, 3.0]))


def test_a_boundary_parallel_to_an_axis_is_undecided():
    # the sign of x1 (1 + x2^2 / 4 + ...) = x1 + x1 x2 with |x2| < 1 is that of x1 alone
    model = one_score(np.array([[0.0, 0.25], [0.25, 0.0]]), [1.0, 0.0], 0.0)
    assert depends_on(model, 1, Box([-1.0, -1.0], [1.0, 1.0])).answer == "undecided"


# ---- few changes ---------------------------------------------------------------------------


def test_the_nearest_point_with_few_changes_is_the_best_of_all_sets():
    rng = np.random.default_rng(11)
    layer = Quadratic(rng.normal(size=(3, 5)), rng.normal(size=3), rng.normal(size=(3, 5, 5)))
    model, x = Network([layer], ["softmax"]), rng.normal(size=5)
    every = counterfactual(model, x)
    distances = []
    for count in (1, 2, 4):
        found = counterfactual(model, x, max_changes=count)
        assert len(found.changes) <= count
        assert (found.point != x).sum() <= count
        assert model.predict(found.point[None])[0] == found.becomes != found.predicted
        alone = min(
            counterfactual(model, x, fixed=[i for i in range(5) if i not in some]).distance
            for some in itertools.combinations(range(5), count)
        )
        assert found.distance == pytest.approx(alone, rel=1e-9)
        assert found.exact
        distances.append(found.distance)
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] >= every.distance


def test_many_sets_are_not_all_tried_and_the_result_is_labeled():
    rng = np.random.default_rng(12)
    layer = Quadratic(rng.normal(size=(1, 30)), [1.0], rng.normal(size=(1, 30, 30)))
    model, x = Network([layer], ["logistic"]), 0.1 * rng.normal(size=30)
    found = counterfactual(model, x, max_changes=3)
    assert (found.point != x).sum() <= 3
    assert not found.exact
    assert found.lower_bound <= found.distance
    assert "the smallest change found" in found.text()
