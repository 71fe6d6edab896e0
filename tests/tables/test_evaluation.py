"""Scores, their bootstrap intervals, and the table of an evaluation."""

import json

import numpy as np
import pytest
from sklearn import metrics

from quadric.apps.shell.tables._evaluation import ClassMetrics, NumberMetrics, evaluate
from quadric.apps.shell.tables._held_out import ScoredRows, remarks_on_scores
from quadric.apps.shell.tables._schema import Column, Schema


def predictions(n, k, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    P = rng.dirichlet(np.ones(k), n) + np.eye(k)[truth] * rng.random((n, 1))
    P = np.round(P / P.sum(axis=1, keepdims=True), 2)  # with ties
    return truth, P / P.sum(axis=1, keepdims=True)


def expected_calibration_error(truth, P):
    confidence, right = P.max(axis=1), P.argmax(axis=1) == truth
    total = 0.0
    for b in range(10):
        inside = (confidence >= b / 10) & ((confidence < (b + 1) / 10) | (b == 9))
        if inside.any():
            total += abs(right[inside].mean() - confidence[inside].mean()) * inside.mean()
    return total


@pytest.mark.parametrize("k", [2, 3, 7])
def test_scores_of_classes_are_those_of_scikit_learn(k):
    truth, P = predictions(211, k)
    Y, predicted = np.eye(k)[truth], P.argmax(axis=1)
    found = ClassMetrics(truth, P).scores(np.ones((1, 211)))
    expected = {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(truth, predicted),
        "macro F1": metrics.f1_score(truth, predicted, average="macro"),
        "ROC AUC": metrics.roc_auc_score(Y, P),
        "average precision": metrics.average_precision_score(Y, P),
        "log-loss": metrics.log_loss(truth, P),
        "Brier score": ((P - Y) ** 2).sum(axis=1).mean() / (2 if k == 2 else 1),
        "calibration error": expected_calibration_error(truth, P),
    }
    if k == 2:
        rare = np.bincount(truth).argmin()
        expected["average precision"] = metrics.average_precision_score(truth == rare, P[:, rare])
        assert expected["Brier score"] == pytest.approx(metrics.brier_score_loss(truth, P[:, 1]))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx([value], rel=1e-10), name


def test_scores_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.normal(1e4, 3, 120)
    predicted = truth + rng.normal(size=120)
    found = NumberMetrics(truth, predicted).scores(np.ones((1, 120)))
    expected = {
        "R²": metrics.r2_score(truth, predicted),
        "RMSE": metrics.mean_squared_error(truth, predicted) ** 0.5,
        "MAE": metrics.mean_absolute_error(truth, predicted),
        "median absolute error": metrics.median_absolute_error(truth, predicted),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx([value], rel=1e-9)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_counts_repeat_rows(kind):
    """The scores with counts are those of the table in which rows occur several times."""
    rng = np.random.default_rng(1)
    truth, P = predictions(60, 3, seed=1)
    make, predicted = ClassMetrics, P
    if kind == "numbers":
        make, truth, predicted = NumberMetrics, P[:, 0], P[:, 1]
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=4).astype(float)
    found = make(truth, predicted).scores(counts)
    for b, line in enumerate(counts):
        rows = np.repeat(np.arange(60), line.astype(int))
        repeated = make(truth[rows], predicted[rows]).scores(np.ones((1, 60)))
        for name, values in found.items():
            assert values[b] == pytest.approx(repeated[name][0])


def test_scores_that_are_not_defined_are_none():
    found = evaluate(["a", "b"], np.zeros(20, dtype=int), np.tile([0.7, 0.3], (20, 1)), {})
    assert found.scores["ROC AUC"].value is None
    assert found.scores["accuracy"].value == 1
    assert found.classes[1]["recall"] is None
    constant = evaluate((), np.ones(20), np.arange(20.0), {})
    assert constant.scores["R²"].value is None
    assert json.loads(json.dumps(found.to_dict()))["scores"]["ROC AUC"]["value"] is None
    assert ["ROC AUC", "-", "-"] in found.score_table()


def test_the_interval_contains_the_score_and_depends_on_the_seed_only():
    truth, P = predictions(150, 3)
    shares = np.full((150, 3), 1 / 3)
    first, again, other = (
        evaluate("abc", truth, P, {"most frequent class": shares}, seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    for name, score in first.scores.items():
        if name != "calibration error":  # biased upwards in resamples
            assert score.low <= score.value <= score.high
        assert score.high > score.low
    error = first.scores["accuracy"]
    width = np.sqrt(error.value * (1 - error.value) / 150)
    assert error.high - error.low == pytest.approx(2 * 1.96 * width, rel=0.15)


def test_the_interval_of_many_rows_has_the_right_width():
    rng = np.random.default_rng(0)
    n = 40_000
    truth = rng.normal(size=n)
    found = evaluate((), truth, truth + rng.normal(size=n), {}).scores["MAE"]
    width = np.sqrt((1 - 2 / np.pi) / n)
    assert found.high - found.low == pytest.approx(2 * 1.96 * width, rel=0.15)
    assert found.low < found.value < found.high


def test_the_tables_have_a_line_for_each_score_and_class():
    truth, P = predictions(90, 3)
    found = evaluate(["a", "b\n", "c"], truth, P, {"coin": P * 0 + 1 / 3})
    header, *lines = found.score_table()
    assert header == ["", "this model", "95% interval", "coin"]
    assert len(lines) == 8
    assert [line[0] for line in found.class_table()] == ["class", "a", r"b\n", "c"]
    assert np.sum(found.confusion) == 90
    assert sum(one["rows"] for one in found.calibration) == 90


def test_a_sample_keeps_rows_together(monkeypatch):
    monkeypatch.setattr("quadric.apps.shell.tables._held_out.MOST_NUMBERS", 50)
    schema = Schema((Column("x", "number"),), "y", "regression")
    collected, small = ScoredRows(schema, seed=3), ScoredRows(schema, seed=0)
    for start in range(0, 1000, 100):
        rows = np.arange(start, start + 100)
        collected.add(rows, -rows, [2.0 * rows])
    found = collected.evaluate(["a note"])
    assert collected.seen == 1000
    assert len(found.numbers) == found.evaluation.rows == 50
    assert (found.numbers == -found.truth).all()
    assert (2 * found.numbers == found.predicted).all()
    assert (np.diff(found.numbers) > 0).all()
    assert 300 < found.numbers.mean() < 700
    assert found.notes == ["a note", "The scores are those of a random sample of 50 rows."]
    small.add(np.arange(7), np.arange(7), [np.arange(7.0)])
    assert small.evaluate().numbers.tolist() == list(range(7))
    assert small.evaluate().notes == []


# ------------------------------------------------------- remarks on chance and on calibration

TRIED = [
    {"shape": "quadratic output", "loss": 0.70},
    {"shape": "32 hidden, linear output", "loss": 0.72},
]


def scored(truth, P, rows=None):
    """The evaluation of probabilities of two classes, next to the shares of the classes."""
    shares = np.bincount(truth, minlength=2) / len(truth)
    trivial = {"most frequent class": np.tile(shares, (len(truth), 1))}
    return evaluate(["a", "b"], truth, P, trivial, rows=rows)


def two_classes(n, seed, overconfident=1.0):
    """Classes that are drawn with their probabilities, which are then moved away from 1/2."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-overconfident * z))
    return truth, np.column_stack([1 - p, p])


def remarked(found, word, **options):
    return any(word in text for _, text in remarks_on_scores(found, **options))


def test_only_bad_probabilities_are_remarked():
    good = [scored(*two_classes(n, seed)) for seed in range(25) for n in (40, 300)]
    assert sum(remarked(found, "probabilities are off") for found in good) <= 2
    assert any(found.scores["calibration error"].value > 0.1 for found in good)  # by chance
    bad = [scored(*two_classes(150, seed, overconfident=8.0)) for seed in range(10)]
    assert all(remarked(found, "probabilities are off") for found in bad)
    error = bad[0].scores["calibration error"].value
    assert remarked(bad[0], f"off by {error:.2f} on average (too high): use more rows")
    assert remarked(bad[0], "omit --class-weight", balanced=True)
    truth, P = two_classes(400, 0)
    assert remarked(scored(truth, 0.5 + (P - 0.5) * 0.1), "(too low)")


def test_inputs_are_unrelated_only_if_hidden_shapes_and_a_permutation_test_agree():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 200)
    P, chance = np.column_stack([1 - p, p]), np.arange(200) % 2
    found = scored(chance, P)
    assert found.p_values["unrelated"] > 0.05
    assert remarked(found, "unrelated to the target", selection=TRIED)
    for selection in ([], TRIED[:1], [*TRIED, {"shape": "8 hidden, linear output", "loss": 0.5}]):
        assert remarked(found, "not clearly better", selection=selection)
        assert not remarked(found, "unrelated", selection=selection)
    # a little better than chance: not by two standard errors, but permuted targets rarely are
    truth = (rng.random(200) < 0.5 + 2 * (p - 0.5)).astype(int)
    P = np.column_stack([0.58 - p + 0.5, p - 0.08])  # almost always the first class
    found = scored(truth, P)
    assert found.p_values["unrelated"] < 0.05
    assert not remarked(found, "unrelated", selection=TRIED)


def test_a_p_value_is_not_smaller_because_rows_are_predicted_several_times():
    truth, P = two_classes(60, 3, overconfident=0.0)
    P = P + np.random.default_rng(1).normal(scale=0.05, size=(60, 1)) * [-1, 1]
    once = scored(truth, P).p_values
    often = scored(np.tile(truth, 5), np.tile(P, (5, 1)), np.tile(np.arange(60), 5)).p_values
    assert often == once


def test_numbers_are_unrelated_if_permuted_targets_have_as_good_a_score():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    noise = evaluate([], y, x, {"the mean": np.zeros(100)})
    assert noise.p_values["unrelated"] > 0.05
    assert remarked(noise, "unrelated", selection=TRIED)
    related = evaluate([], y, 0.1 * y + x, {"the mean": np.zeros(100)})
    assert evaluate([], y, y, {"the mean": np.zeros(100)}).p_values["unrelated"] < 0.01
    assert related.p_values.keys() == {"unrelated"}
    assert evaluate([], np.ones(9), x[:9], {"the mean": np.ones(9)}).p_values == {}
