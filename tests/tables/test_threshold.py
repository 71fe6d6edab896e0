"""Thresholds of two classes, and the cheapest one."""

import doctest

import numpy as np
import pytest

from quadric.apps.shell.tables import _threshold
from quadric.apps.shell.tables._threshold import Threshold, cheapest_threshold, parse_costs
from quadric.errors import TableError

CLASSES = ["fraud", "ok"]


def test_examples():
    assert doctest.testmod(_threshold).failed == 0


def cheapest(p, is_fraud, **costs):
    p, is_fraud = np.array(p), np.array(is_fraud, dtype=bool)
    costs = parse_costs([f"{name}={cost}" for name, cost in costs.items()], CLASSES)
    return cheapest_threshold(np.where(is_fraud, 0, 1), np.column_stack([p, 1 - p]), CLASSES, costs)


@pytest.mark.parametrize("cost", [0.05, 1.0, 3.0, 20.0, 1e6])
@pytest.mark.parametrize("ties", [False, True])
def test_no_other_threshold_is_cheaper(cost, ties):
    rng = np.random.default_rng(0)
    p = rng.random(200) ** 2
    p = np.round(p, 1) if ties else p
    is_fraud = rng.random(200) < p
    found = cheapest(p, is_fraud, fraud=cost)
    if cost >= 1:
        assert found.label == ("fraud" if cost > 1 else "ok")
    k = CLASSES.index(found.label)
    of_class, is_class = (p, is_fraud) if k == 0 else (1 - p, ~is_fraud)
    each = np.where(is_fraud, cost, 1.0)

    def total(threshold):
        return (each * ((of_class >= threshold) != is_class)).sum()

    others = [total(t) for t in [0.0, *np.sort(of_class), *(np.sort(of_class) + 1e-12), 1.0]]
    assert total(found.value) == pytest.approx(min(others))
    assert found.cost_of_half == pytest.approx(total(0.5) / 200)
    constants = cost * is_fraud.mean(), (~is_fraud).mean()
    assert found.cost_of_constant == pytest.approx(min(constants))
    assert found.cost >= total(found.value) / 200 - 1e-12


def test_the_threshold_of_true_probabilities_is_that_of_the_costs():
    rng = np.random.default_rng(1)
    p = rng.random(50_000) / 2
    found = cheapest(p, rng.random(50_000) < p, fraud=9)
    assert found.value == pytest.approx(0.1, abs=0.02)  # 1 / (1 + 9)
    assert found.cost < 0.6 * found.cost_of_half
    separated = cheapest([0.01, 0.02, 0.6, 0.7], [False, False, True, True], fraud=9)
    assert separated.value == 0.1  # among equally cheap thresholds


def test_the_cost_is_not_that_of_the_rows_that_chose_the_threshold():
    rng = np.random.default_rng(2)
    p, is_fraud = rng.random(60), rng.random(60) < 0.5  # unrelated
    found = cheapest(p, is_fraud, fraud=1)
    chosen = ((1 - p >= found.value) != ~is_fraud).mean()
    assert found.cost > chosen + 0.02


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2", r"must be a probability such as 0.2, or CLASS=0.2. Got '2'"),
        ("nan", "must be a probability"),
        ("fraud", "must be a probability"),
        ("frau=0.2", "names 'frau', but the classes are 'fraud', 'ok'"),
    ],
)
def test_wrong_thresholds_are_refused(text, message):
    with pytest.raises(TableError, match=message):
        Threshold.parse(text, CLASSES)
    with pytest.raises(TableError, match="needs a classifier of two classes"):
        Threshold.parse("0.2", [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fraud", r"--cost must be CLASS=COST, such as fraud=20, with a positive cost"),
        ("fraud=0", "with a positive cost"),
        ("fraud=inf", "with a positive cost"),
        ("=3", "--cost must be CLASS=COST"),
        ("frau=3", "--cost names 'frau', but the classes are 'fraud', 'ok'"),
    ],
)
def test_wrong_costs_are_refused(text, message):
    with pytest.raises(TableError, match=message):
        parse_costs([text], CLASSES)
    with pytest.raises(TableError, match="needs a classifier of two classes"):
        parse_costs(["a=2"], ["a", "b", "c"])
