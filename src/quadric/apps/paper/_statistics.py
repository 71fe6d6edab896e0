"""Statistics of repeated runs: comparisons of means, Holm's correction, and extremes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np
from scipy import integrate, stats

Key = TypeVar("Key")

ALPHA = 0.05  # the probability that any of the comparisons of a family is significant by chance
ROUNDING = 0.01  # how far the differences of two numbers printed with two decimals can be off


@dataclass(frozen=True)
class Sample:
    """Mean, standard deviation (None for a single run), best and worst of a number of runs."""

    mean: float
    std: float | None
    best: float
    worst: float
    runs: int

    @property
    def extremes(self) -> tuple[float, float] | tuple[None, None]:
        """The best and the worst run minus the mean, in standard deviations."""
        if not self.std:
            return None, None
        return (self.best - self.mean) / self.std, (self.worst - self.mean) / self.std

    def times(self, factor: float) -> "Sample":
        """Return the sample in another unit."""
        mean, best, worst = (number * factor for number in (self.mean, self.best, self.worst))
        return Sample(mean, self.std and self.std * factor, best, worst, self.runs)

    @property
    def is_possible(self) -> bool:
        """Whether any numbers have this mean, standard deviation, maximum and minimum.

        The mean must lie between worst and best. By the inequality of Bhatia and Davis, the
        variance (with divisor n) is at most (best - mean)(mean - worst). By Samuelson's, no run is
        more than (n - 1)/sqrt(n) standard deviations from the mean. Rounding is allowed for.
        """
        above, below = self.best - self.mean + ROUNDING, self.mean - self.worst + ROUNDING
        if above < 0 or below < 0:
            return False
        if self.std is None:
            return True
        n, least = self.runs, max(0.0, self.std - ROUNDING)
        farthest = (self.std + ROUNDING) * (n - 1) / math.sqrt(n) + ROUNDING
        return above * below >= least**2 * (n - 1) / n and max(above, below) <= farthest


def sample_of(values: Sequence[float]) -> Sample:
    """Summarize the results of several runs; the standard deviation has the divisor n - 1."""
    numbers = np.array(values)
    return Sample(
        mean=float(numbers.mean()),
        std=float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        best=float(numbers.max()),
        worst=float(numbers.min()),
        runs=len(numbers),
    )


@dataclass(frozen=True)
class Comparison:
    """A comparison of means.

    Attributes
    ----------
    difference : float
    error : float or None
        The standard error of the difference; None if a sample has a single run.
    t : float or None
        The difference in standard errors; None if the standard error is None or 0.
    p : float
        Two-sided. In a family, it is adjusted by Holm's method.
    """

    difference: float
    error: float | None
    t: float | None
    p: float

    @property
    def sign(self) -> int:
        """1 or -1 if the difference is significantly positive or negative, otherwise 0."""
        return int(np.sign(self.difference)) if self.p < ALPHA else 0


def contrast(*terms: tuple[float, Sample]) -> Comparison:
    """Test whether a sum of means, each with a coefficient, differs from zero (Welch's t test).

    The samples are assumed to be independent. Runs that share a seed are positively correlated,
    which makes the test of a difference between them conservative.

    >>> a, b = Sample(90.0, 1.0, 92.0, 88.0, 25), Sample(89.0, 2.0, 93.0, 85.0, 25)
    >>> test = contrast((1, a), (-1, b))
    >>> round(test.t, 2), round(test.p, 3)
    (2.24, 0.032)
    """
    difference = sum(factor * sample.mean for factor, sample in terms)
    if any(sample.std is None for _, sample in terms):
        return Comparison(difference, None, None, 1.0)
    variances = [(factor * (sample.std or 0.0)) ** 2 / sample.runs for factor, sample in terms]
    error = math.sqrt(sum(variances))
    if error == 0:
        return Comparison(difference, 0.0, None, float(difference == 0))
    freedom = error**4 / sum(
        variance**2 / (sample.runs - 1)
        for variance, (_, sample) in zip(variances, terms, strict=True)
    )
    t = difference / error
    return Comparison(difference, error, t, float(2 * stats.t.sf(abs(t), freedom)))


def contrast_by_second(few: Sample, many: Sample) -> Comparison:
    """Compare two means by the standard deviation of the second sample alone.

    A few runs do not determine a standard deviation.
    """
    assert many.std
    error = many.std * math.sqrt(1 / few.runs + 1 / many.runs)
    t = (few.mean - many.mean) / error
    return Comparison(t * error, error, t, float(2 * stats.t.sf(abs(t), many.runs - 1)))


def paired(changes: Sequence[float]) -> Comparison:
    """Test whether the mean of the differences of paired runs differs from zero (t test).

    >>> test = paired([1.0, 2.0, 3.0])
    >>> test.difference, round(test.error, 3), round(test.p, 3)
    (2.0, 0.577, 0.074)
    """
    return contrast((1, sample_of(changes)))


def compare_spread(one: Sample, other: Sample) -> tuple[float, float] | None:
    """Return the ratio of two standard deviations and its two-sided p (F test).

    None if a sample has a single run, or runs that do not differ.

    >>> ratio, p = compare_spread(Sample(90, 1.5, 92, 88, 25), Sample(90, 1.0, 92, 88, 25))
    >>> ratio, round(p, 3)
    (1.5, 0.052)
    """
    if not one.std or not other.std:
        return None
    ratio, freedom = one.std / other.std, (one.runs - 1, other.runs - 1)
    return ratio, float(2 * min(tail(ratio**2, *freedom) for tail in (stats.f.sf, stats.f.cdf)))


def adjust(p: Mapping[Key, float]) -> dict[Key, float]:
    """Return p values adjusted by Holm's method, in the same order.

    The smallest of m p values is multiplied by m, the next one by m - 1, and so on. No adjusted
    value is smaller than the one before it, or larger than 1.
    """
    adjusted, largest = {}, 0.0
    for rank, key in enumerate(sorted(p, key=lambda key: p[key])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[key]))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p}


def holm(tests: Mapping[Key, Comparison]) -> dict[Key, Comparison]:
    """Return the tests with p values adjusted by Holm's method, in the same order."""
    adjusted = adjust({key: test.p for key, test in tests.items()})
    return {key: replace(test, p=adjusted[key]) for key, test in tests.items()}


@cache
def expected_maximum(n: int) -> float:
    """Return the expected maximum of n standard normal numbers.

    >>> round(expected_maximum(25), 3)
    1.965
    """
    value, _ = integrate.quad(
        lambda x: n * x * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1), -12, 12
    )
    return float(value)


@cache
def maximum_range(n: int) -> tuple[float, float]:
    """Return the bounds between which the maximum of n standard normal numbers is in 95 % of cases.

    >>> low, high = maximum_range(25)
    >>> round(low, 2), round(high, 2)
    (1.09, 3.09)
    """
    low, high = (float(stats.norm.ppf(share ** (1 / n))) for share in (0.025, 0.975))
    return low, high
