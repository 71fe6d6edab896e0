"""Attributions equal brute force over all coalitions, shap, and numerical integration."""

import itertools
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticRegressor
from quadric.core import Quadratic
from quadric.explain import attribute


def coalition_values(score, columns, row, background):
    """The mean score of every coalition: the row's values inside, the background's outside."""
    p, values = len(columns), {}
    for size in range(p + 1):
        for inside in itertools.combinations(range(p), size):
            mixed = background.copy()
            for k in inside:
                mixed[columns[k]] = row[columns[k]]
            values[frozenset(inside)] = score(mixed).mean()
    return values


def shapley(values, p):
    """The Shapley values, from their definition."""
    found = np.zeros(p)
    for k in range(p):
        for S in values:
            if k not in S:
                weight = factorial(len(S)) * factorial(p - len(S) - 1) / factorial(p)
                found[k] += weight * (values[S | {k}] - values[S])
    return found


def shapley_interactions(values, p):
    """The Shapley interaction index of each pair, from its definition; half in each entry."""
    found = np.zeros((p, p))
    for i, j in itertools.combinations(range(p), 2):
        for S in values:
            if not S & {i, j}:
                weight = factorial(len(S)) * factorial(p - len(S) - 2) / factorial(p - 1)
                gain = values[S | {i, j}] - values[S | {i}] - values[S | {j}] + values[S]
                found[i, j] += weight * gain / 2
    return found + found.T


def frames(n, rng, rows=40):
    """Correlated inputs, far from zero."""
    mixing = rng.normal(size=(n, n))
    X = rng.gamma(2.0, size=(rows, n)) @ mixing + 10 * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"input {k}" for k in range(n)])


def network_of(n, rng, m=1, last="identity"):
    return Network(
        [Quadratic(rng.normal(size=(m, n)), rng.normal(size=m), rng.normal(size=(m, n, n)))],
        [last],
    )


def random_case(seed, n):
    """A random network, its score, four rows and a background."""
    rng = np.random.default_rng(seed)
    network, X = network_of(n, rng), frames(n, rng)
    return network, X.iloc[:4], X.iloc[4:]


@pytest.mark.parametrize("n", [1, 2, 5, pytest.param(10, marks=pytest.mark.slow)])
def test_values_and_interactions_are_those_of_all_coalitions(n):
    network, X, background = random_case(n, n)
    found = attribute(network, X.to_numpy(), background.to_numpy())
    pairs = found.interactions()

    def score(frame):
        return network.logits(frame.to_numpy())[:, 0]

    for row in range(len(X) if n < 10 else 1):
        values = coalition_values(score, list(X.columns), X.iloc[row], background)
        scale = max(map(abs, values.values()))
        np.testing.assert_allclose(
            found.values[row], shapley(values, n), rtol=0, atol=1e-10 * scale
        )
        brute = shapley_interactions(values, n)
        off = ~np.eye(n, dtype=bool)
        np.testing.assert_allclose(pairs[row][off], brute[off], rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(pairs[row].sum(axis=1), found.values[row], atol=1e-10 * scale)
        assert found.base_values == pytest.approx(values[frozenset()], rel=1e-10)


def shop(rng, rows=60):
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, size=rows),
            "color": rng.choice(["red", "green", "blue"], rows),
            "price": rng.gamma(2.0, 100.0, size=rows),
            "size": rng.normal(size=rows),
        }
    )
    z = frame["size"] * (frame["color"] == "red") + (frame["age"] - 50) ** 2 / 80 - 1
    return frame, z + 0.3 * rng.normal(size=rows)


def encoded():
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "size"]),
            ("text", OneHotEncoder(), ["color"]),
            ("tails", make_pipeline(PowerTransformer(), StandardScaler()), ["price"]),
        ]
    )


@pytest.mark.parametrize("kind", ["two classes", "three classes", "number"])
def test_columns_of_a_pipeline_are_the_players(kind):
    frame, z = shop(np.random.default_rng(0))
    columns = list(frame.columns)
    if kind == "number":
        model = make_pipeline(encoded(), QuadraticRegressor(hidden_layer_sizes=())).fit(frame, z)
        score = model.predict
    else:
        y = np.digitize(z, [0.0] if kind == "two classes" else [-0.5, 0.8])
        model = make_pipeline(encoded(), QuadraticClassifier(hidden_layer_sizes=())).fit(frame, y)
        score = model.decision_function
    found = attribute(model, frame.iloc[:3], frame)
    assert sorted(found.names) == sorted(columns)
    assert found.data[0].tolist() == frame.iloc[0][found.names].tolist()
    values = found.values[:, :, None] if found.values.ndim == 2 else found.values
    for row in range(3):
        for k in range(values.shape[2]):

            def of_score(mixed, k=k):
                z = score(mixed)
                return z if z.ndim == 1 else z[:, k] - z.mean(axis=1)

            brute = shapley(coalition_values(of_score, found.names, frame.iloc[row], frame), 4)
            np.testing.assert_allclose(values[row, :, k], brute, atol=1e-9)


def test_efficiency_holds_to_rounding_for_the_decision_function():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for some, rows in (((0, 1, 2), slice(None)), ((0, 1), slice(100))):
        model = make_pipeline(StandardScaler(), PCA(3), QuadraticClassifier(hidden_layer_sizes=()))
        model.fit(X.iloc[rows], y.iloc[rows])
        found, z = attribute(model, X), model.decision_function(X)
        assert found.names == list(X.columns)
        z = z - z.mean(axis=1, keepdims=True) if len(some) == 3 else z
        total = found.values.sum(axis=1) + found.base_values
        np.testing.assert_allclose(total, z, atol=1e-12 * np.abs(z).max())


def test_the_margin_of_two_classes_is_the_difference_of_their_scores():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), QuadraticClassifier(hidden_layer_sizes=())).fit(X, y)
    every, margin = attribute(model, X), attribute(model, X, between=(2, 1))
    np.testing.assert_allclose(
        margin.values, every.values[:, :, 2] - every.values[:, :, 1], atol=1e-10
    )
    assert margin.scores == ["score of 2 - score of 1"]
    with pytest.raises(ValueError, match="between must hold two different classes"):
        attribute(model, X, between=(1, 1))


@pytest.mark.slow
def test_shap_agrees_and_draws():
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(3)
    network, X = network_of(6, rng), frames(6, rng).to_numpy()
    found = attribute(network, X[:5], X)
    explainer = shap.explainers.Exact(
        lambda rows: network.logits(rows)[:, 0], shap.maskers.Independent(X, max_samples=100)
    )
    expected = explainer(X[:5])
    converted = found.to_shap()
    scale = np.abs(expected.values).max()
    np.testing.assert_allclose(converted.values, expected.values, atol=1e-10 * scale)
    np.testing.assert_allclose(converted.base_values, expected.base_values, rtol=1e-10)
    from matplotlib import pyplot

    for draw, part in (
        (shap.plots.waterfall, converted[0]),
        (shap.plots.beeswarm, converted),
        (shap.plots.bar, converted),
    ):
        pyplot.figure()
        assert draw(part, show=False).texts is not None
        pyplot.close("all")


@pytest.mark.slow
def test_sobol_indices_equal_integration_within_its_error():
    network, X, background = random_case(5, 5)
    # independent inputs: the empirical distribution of each column
    columns = np.sort(background.to_numpy(), axis=0)
    found = attribute(network, X.to_numpy(), background.to_numpy()).sobol()

    class Column:
        def __init__(self, values):
            self.values = values

        def ppf(self, q):
            return self.values[np.minimum((q * len(self.values)).astype(int), len(self.values) - 1)]

    sampled = stats.sobol_indices(
        func=lambda x: network.logits(x.T).T,
        n=2**11,
        dists=[Column(values) for values in columns.T],
        rng=np.random.default_rng(0),
    )
    interval = sampled.bootstrap(confidence_level=0.9999, n_resamples=100)
    for part, ours in (("first_order", found.first), ("total_order", found.total)):
        low = np.ravel(getattr(interval, part).confidence_interval.low)
        high = np.ravel(getattr(interval, part).confidence_interval.high)
        assert ((low - 1e-3 <= ours) & (ours <= high + 1e-3)).all()
    assert found.first.sum() + found.pairs.sum() / 2 == pytest.approx(1)


def test_sobol_indices_are_exact_over_the_grid_of_all_combinations():
    rng = np.random.default_rng(1)
    network, X = network_of(3, rng), rng.gamma(1.0, size=(12, 3))
    found = attribute(network, X).sobol()
    grid = np.array(list(itertools.product(*X.T))).reshape(12, 12, 12, 3)
    z = network.logits(grid.reshape(-1, 3)).reshape(12, 12, 12)
    for k in range(3):
        rest = tuple(j for j in range(3) if j != k)
        assert found.first[k] == pytest.approx(z.mean(axis=rest).var() / z.var(), rel=1e-9)
        assert found.total[k] == pytest.approx(1 - z.mean(axis=k).var() / z.var(), rel=1e-9)
    assert found.variance == pytest.approx(z.var())


def test_friedman_h_equals_its_definition_by_partial_dependence():
    rng = np.random.default_rng(2)
    network, X = network_of(4, rng), frames(4, rng).to_numpy()
    found = attribute(network, X[:1], X).friedman_h()

    def dependence(inside):
        means = []
        for row in X:
            mixed = X.copy()
            mixed[:, inside] = row[inside]
            means.append(network.logits(mixed)[:, 0].mean())
        return np.array(means) - np.mean(means)

    for i, j in itertools.combinations(range(4), 2):
        both = dependence([i, j])
        rest = both - dependence([i]) - dependence([j])
        expected = np.sqrt((rest**2).sum() / (both**2).sum())
        assert found.pairs[i, j] == pytest.approx(expected, rel=1e-8)
        assert found.pairs[j, i] == pytest.approx(expected, rel=1e-8)
    whole = network.logits(X)[:, 0] - network.logits(X)[:, 0].mean()
    for i in range(4):
        others = [k for k in range(4) if k != i]
        rest = whole - dependence([i]) - dependence(others)
        assert found.total[i] == pytest.approx(np.sqrt((rest**2).sum() / (whole**2).sum()))


def test_pairs_of_encoded_columns_follow_the_same_definitions():
    frame, z = shop(np.random.default_rng(4))
    model = make_pipeline(encoded(), QuadraticRegressor(hidden_layer_sizes=())).fit(frame, z)
    found = attribute(model, frame.iloc[:2], frame)
    values = coalition_values(model.predict, found.names, frame.iloc[1], frame)
    off = ~np.eye(4, dtype=bool)
    brute = shapley_interactions(values, 4)
    np.testing.assert_allclose(found.interactions()[1][off], brute[off], atol=1e-9)


def test_networks_that_do_not_fold_are_refused_with_an_alternative():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((3,), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"estimate them with shap\.Explainer"):
        attribute(model, X)


def test_the_text_lists_inputs_and_the_table_adds_up():
    network, X, background = random_case(8, 3)
    found = attribute(network, X.to_numpy(), background.to_numpy())
    assert "Exact Shapley values of 4 rows" in str(found)
    table = found.table(0)
    assert table[0][0] == "mean of the background"
    assert table[-1][0] == "z"
    assert len(table) == 5
    with pytest.raises(ValueError, match="score must be below 1"):
        found.of(1)
    with pytest.raises(ValueError, match="background must be finite"):
        attribute(network, X.to_numpy(), np.full((2, 3), np.nan))
