"""Statistics of repeated runs, compared with SciPy, simulations and worked examples."""

import math

import numpy as np
import pytest
from scipy import stats

from quadric.apps.paper._statistics import (
    Comparison,
    Sample,
    contrast,
    expected_maximum,
    holm,
    maximum_range,
    sample_of,
)


def test_a_contrast_of_two_samples_is_welchs_test():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, 25), rng.normal(0, 3, 7)
    found = contrast((1, sample_of(x)), (-1, sample_of(y)))
    expected = stats.ttest_ind(x, y, equal_var=False)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.difference == pytest.approx(x.mean() - y.mean())
    assert found.error == pytest.approx(found.difference / found.t)


def test_a_difference_of_differences_is_significant_as_often_as_stated():
    rng = np.random.default_rng(1)
    scales = (1, 2, 0.5, 1)
    found = [
        contrast(
            *zip((1, -1, -1, 1), (sample_of(rng.normal(5, s, 25)) for s in scales), strict=True)
        ).sign
        for _ in range(2000)
    ]
    assert 0.03 < np.mean(np.abs(found)) < 0.07


def test_samples_without_spread_or_with_one_run_are_compared():
    one, two = Sample(1.0, 0.0, 1.0, 1.0, 5), Sample(2.0, 0.0, 2.0, 2.0, 5)
    assert contrast((1, two), (-1, one)) == Comparison(1.0, 0.0, None, 0.0)
    assert contrast((1, one), (-1, one)) == Comparison(0.0, 0.0, None, 1.0)
    assert contrast((1, sample_of([3])), (-1, one)) == Comparison(2.0, None, None, 1.0)


def test_holms_correction_matches_a_worked_example():
    """0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02."""
    tests = {i: Comparison(-1.0, 1.0, -1.0, p) for i, p in enumerate((0.01, 0.04, 0.03, 0.005))}
    adjusted = holm(tests)
    assert [test.p for test in adjusted.values()] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [test.sign for test in adjusted.values()] == [-1, 0, 0, -1]
    assert holm({0: Comparison(1, 1, 1, 0.9), 1: Comparison(1, 1, 1, 0.8)})[0].p == 1


def test_extremes_of_normal_samples_match_a_simulation():
    assert expected_maximum(1) == pytest.approx(0, abs=1e-9)
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi))
    most = np.random.default_rng(2).standard_normal((40_000, 25)).max(axis=1)
    assert expected_maximum(25) == pytest.approx(most.mean(), abs=0.01)
    low, high = maximum_range(25)
    assert np.mean((low <= most) & (most <= high)) == pytest.approx(0.95, abs=0.005)


def test_impossible_samples_are_detected():
    rng = np.random.default_rng(3)
    for _ in range(200):
        sample = sample_of(rng.choice([0.0, 1.0, 5.0, 5.01], 25))
        assert sample.is_possible
        rounded = Sample(*(round(x, 2) for x in (sample.mean, sample.std)), 5.01, sample.worst, 25)
        assert rounded.is_possible
    good = Sample(90.0, 1.0, 92.0, 88.0, 25)
    assert good.is_possible
    assert good.extremes == (2.0, -2.0)
    for wrong in (
        Sample(90.0, 1.0, 95.0, 91.0, 25),  # the mean is outside the range
        Sample(90.0, 3.0, 92.0, 88.0, 25),  # Bhatia and Davis: the variance is at most 4
        Sample(90.0, 1.0, 95.0, 89.0, 25),  # Samuelson: no run is more than 4.8 std away
    ):
        assert not wrong.is_possible, wrong
