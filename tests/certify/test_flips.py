"""Probabilities that noise changes a class: closed forms, many digits, and samples."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import Network, QuadraticClassifier
from quadric.certify import flip_probability, largest_noise
from quadric.core import Quadratic
from tests.support.chi_square import below

TIGHT = 1e-9


def two_classes(Q, w, b):
    return Network([Quadratic([w], [b], [Q])], ["logistic"])


def random_network(rng, n, m=1):
    rank = int(rng.integers(1, n + 1))
    U, signs = rng.normal(size=(m, n, rank)), rng.choice([-1.0, 1.0], size=(m, 1, rank))
    Q = (U * signs) @ U.transpose(0, 2, 1)
    layer = Quadratic(rng.normal(size=(m, n)), rng.normal(size=m), Q * 10 ** rng.uniform(-2, 1))
    return Network([layer], ["logistic" if m == 1 else "softmax"])


def sampled(model, x, noise, count, rng):
    """The share of samples with another class."""
    own, changed, step = model.predict(x[None])[0], 0, 250_000
    for start in range(0, count, step):
        size = min(step, count - start)
        e = rng.normal(size=(size, len(x))) * noise
        changed += int((model.predict(x + e) != own).sum())
    return changed / count


def agrees(found, share, count):
    """Whether a share is within four standard errors of the bounds."""
    low, high = found.lower[0], found.upper[0]
    error = 4 * np.sqrt(max(high * (1 - high), low * (1 - low), 1 / count) / count)
    return low - error <= share <= high + error


# ---- closed forms --------------------------------------------------------------------------


@pytest.mark.parametrize("center", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("level", [0.01, 0.3, 2.0])
def test_a_ball_has_the_noncentral_chi_square_distribution(center, level):
    n, r = 3, 2.0
    ball = two_classes(-np.eye(n), np.zeros(n), r * r)
    x = np.array([center, 0.0, 0.0])
    inside = stats.ncx2.cdf(r * r / level**2, n, center**2 / level**2)
    expected = 1 - inside if center < r else inside
    found = flip_probability(ball, x[None], level)
    assert abs(found.probability[0] - expected) <= found.error[0] + 1e-13
    assert found.error[0] < TIGHT


def test_a_plane_has_the_normal_distribution_also_in_the_far_tail():
    plane = two_classes(np.zeros((2, 2)), [3.0, 4.0], 0.0)
    for level in (0.1, 1.0, 10.0):
        found = flip_probability(plane, [[3.0, 4.0]], level)
        expected = stats.norm.sf(5.0 / level)
        assert found.probability[0] == pytest.approx(expected, rel=1e-9, abs=1e-300)
        assert abs(found.probability[0] - expected) <= found.error[0] < TIGHT


def test_a_cone_at_its_tip_has_the_distribution_of_a_ratio():
    lam = np.array([2.0, 2.0, -3.0, -3.0, -3.0])
    cone = two_classes(np.diag(lam), np.zeros(5), 0.0)
    found = flip_probability(cone, np.full((1, 5), 1e-12), 1.0)
    positive = stats.f.sf((3 * 3.0) / (2 * 2.0), 2, 3)  # 2 chi2_2 > 3 chi2_3
    expected = positive if found.predicted[0] == 0 else 1 - positive
    assert found.probability[0] == pytest.approx(expected, abs=1e-9)
    assert found.error[0] < 1e-6


@pytest.mark.parametrize(("rank", "most"), [(1, 1e-4), (2, 1e-9)])
def test_a_touching_surface_of_low_rank_keeps_a_useful_bound(rank, most):
    # F = 0 at a minimum: for rank one, an error of size e changes the probability by its root
    Q = np.diag([1.0] * rank + [0.0] * (4 - rank))
    found = flip_probability(two_classes(Q, np.zeros(4), 0.0), np.full((1, 4), 0.7), 1.0)
    assert found.lower[0] == 0
    assert found.upper[0] <= most


# ---- many digits ---------------------------------------------------------------------------


def compare_with_many_digits(seed, rank):
    """A random model of the given rank: the bound holds, and is at most 1e-6."""
    rng = np.random.default_rng(seed)
    n = rank if rng.random() < 0.5 else rank + int(rng.integers(0, 4))
    lam = rng.normal(size=rank) * 10 ** rng.uniform(-2, 1, size=rank)
    g = rng.normal(size=rank) * 10 ** rng.uniform(-1, 1)
    y = rng.normal(size=(2000, rank))
    F = -float(np.quantile(y @ g + y**2 @ lam, rng.uniform(0.002, 0.998)))
    Q, w = np.zeros((n, n)), np.zeros(n)
    Q[:rank, :rank], w[:rank] = np.diag(lam), g
    found = flip_probability(two_classes(Q, w, F), np.zeros((1, n)), 1.0)
    exact = below(F, g, lam)
    other = below(F, g, lam, slope=0.3)
    assert abs(exact - other) < 1e-14, "the reference does not agree with itself"
    exact = float(exact if F > 0 else 1 - exact)
    assert abs(found.probability[0] - exact) <= found.error[0] <= 1e-6
    return found.error[0]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2, 3, 8, 20])
def test_the_bound_holds_against_many_digits(rank):
    compare_with_many_digits(rank, rank)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_the_bound_holds_against_many_digits_for_all_ranks(seed):
    compare_with_many_digits(1000 + seed, seed % 20 + 1)


# ---- samples -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_samples_agree(seed):
    rng = np.random.default_rng(seed)
    model, x = random_network(rng, 4, 1 + 2 * (seed % 2)), rng.normal(size=4)
    noise = rng.uniform(0.05, 1.0, size=4)
    found = flip_probability(model, x[None], noise)
    assert agrees(found, sampled(model, x, noise, 100_000, rng), 100_000)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_ten_million_samples_agree(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 11)), int(rng.choice([1, 1, 3]))
    model, x = random_network(rng, n, m), rng.normal(size=n)
    noise = np.full(n, 10 ** rng.uniform(-1.5, 0.5))
    found = flip_probability(model, x[None], noise)
    assert agrees(found, sampled(model, x, noise, 10**7, rng), 10**7)
    assert m > 1 or found.error[0] <= 1e-6


def test_a_covariance_of_low_rank():
    rng = np.random.default_rng(5)
    model, x, L = random_network(rng, 5), rng.normal(size=5), rng.normal(size=(5, 2))
    found = flip_probability(model, x[None], L @ L.T)
    e = rng.normal(size=(100_000, 2)) @ L.T
    share = (model.predict(x + e) != model.predict(x[None])[0]).mean()
    assert agrees(found, share, 100_000)
    assert found.error[0] < TIGHT


def test_pipelines_in_the_units_of_the_inputs_and_of_the_scaler():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), PCA(3), QuadraticClassifier(hidden_layer_sizes=()))
    model.fit(X.iloc[:100], y[:100])
    scaled = flip_probability(model, X, 0.3, units="scaled")
    inputs = flip_probability(model, X, 0.3 * X[:100].std(ddof=0).to_numpy())
    np.testing.assert_allclose(scaled.probability, inputs.probability, atol=1e-9)
    by_name = flip_probability(model, X, {"petal width (cm)": 0.5})
    others = [name for name in X.columns if name != "petal width (cm)"]
    fixed = flip_probability(model, X, 0.5, fixed=others)
    np.testing.assert_allclose(by_name.probability, fixed.probability, atol=1e-12)


def test_encoded_categories_have_no_noise():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "kind": rng.choice(["x", "y"], 80)})
    y = (frame["a"] > 0) ^ (frame["kind"] == "x")
    steps = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(steps, QuadraticClassifier(hidden_layer_sizes=())).fit(frame, y)
    found = flip_probability(model, frame.iloc[:1], 0.4)
    moved = pd.concat([frame.iloc[:1]] * 40_000, ignore_index=True)
    moved["a"] += 0.4 * rng.normal(size=len(moved))
    share = (model.predict(moved) != found.predicted[0]).mean()
    assert agrees(found, share, len(moved))


# ---- rounding ------------------------------------------------------------------------------


def test_a_row_on_a_tie_and_single_precision_have_honest_bounds():
    model = two_classes(np.diag([1.0, -1.0]), [0.0, 0.0], 0.0)
    tie = flip_probability(model, [[1.0, 1.0]], 1e-20)
    assert tie.upper[0] - tie.lower[0] == 1  # rounding decides
    single = flip_probability(model.astype("float32"), np.array([[2.0, 1.0]], dtype="float32"), 0.5)
    double = flip_probability(model, [[2.0, 1.0]], 0.5)
    assert single.error[0] > 1e3 * double.error[0]
    assert single.lower[0] <= double.probability[0] <= single.upper[0]


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e120])
def test_any_scale_of_the_model_gives_the_same_probability(scale):
    rng = np.random.default_rng(1)
    Q, w, x = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(1, 3))
    usual = flip_probability(two_classes(Q, w, 0.5), x, 0.4)
    scaled = flip_probability(two_classes(scale * Q, scale * w, scale * 0.5), x, 0.4)
    assert scaled.probability[0] == pytest.approx(usual.probability[0], abs=2e-9)


# ---- levels --------------------------------------------------------------------------------


def test_the_largest_noise_level_is_the_last_with_the_probability():
    rng = np.random.default_rng(2)
    model, X = random_network(rng, 4), rng.normal(size=(12, 4))
    levels = largest_noise(model, X, 0.05)
    for x, level in zip(X, levels, strict=True):
        if np.isfinite(level):
            assert flip_probability(model, x[None], level).upper[0] <= 0.05
            assert flip_probability(model, x[None], 1.00001 * level).upper[0] > 0.05
    assert np.isfinite(levels).any()


def test_no_level_reaches_the_probability_if_there_is_one_class():
    always = two_classes(np.eye(2), [0.0, 0.0], 1.0)
    assert np.isinf(largest_noise(always, [[0.3, 0.2]], 0.01)).all()


def test_wrong_arguments_are_explained():
    model = two_classes(np.eye(2), [0.0, 0.0], -1.0)
    with pytest.raises(ValueError, match="noise must be a standard deviation, 2 of them"):
        flip_probability(model, [[0.0, 0.0]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="symmetric matrix without negative eigenvalues"):
        flip_probability(model, [[0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="noise must be positive"):
        flip_probability(model, [[0.0, 0.0]], 0.0)
    with pytest.raises(ValueError, match="p must be at least"):
        largest_noise(model, [[0.0, 0.0]], 0.0)
