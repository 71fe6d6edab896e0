"""Columns whose values suggest a mistake: leaks of the target, codes for missing values, codes.

The checks use the rows that have a target, or a sample of them. They depend on the values, while
the findings of `_schema_inference` follow from profiles and names.

A **leak** is a column that predicts the target alone, although the others do not come close. The
score of a column is computed without fitting to the rows that are scored: for numbers from ranks,
for categories with the frequencies of the classes, or the means of the target, among other rows.
Missing values count as smaller or larger than all numbers, or as a category.

- Two classes: the ROC AUC. Several classes: the smallest AUC that tells a class from its neighbor
  in the order of the column's mean ranks or, for categories, from the others. So a column that
  identifies one class of three is no leak.
- Numbers: the rank correlation; for categories, the square root of R².

There is no score if the classes have so few rows that one of the columns may have a score of 1 by
chance.

Columns with a score of at least `ALONE_NUMBER` or `ALONE_CATEGORY` are leaks, unless the problem is
easy: if several of them are half of the columns, or if the best of the others, s, is close. So
1 - s must be at least ten times 1 minus the smallest score of the leaks, and at least `GAP`. A
column that is filled, or missing, only in the rows of one class is always reported.
"""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb

import numpy as np
import polars as pl
from scipy.stats import f as f_distribution, rankdata

from quadric.apps.shell.tables._options import applying
from quadric.apps.shell.tables._schema import Finding, Schema
from quadric.checks import Array
from quadric.utils import listed

MOST_ROWS = 20_000  # of the sample
MOST_OF_A_CLASS = 500  # rows that are added to the sample, so that it contains rare classes
ALONE_NUMBER, ALONE_CATEGORY = 0.999, 0.995
GAP = 0.02
FEWEST = 5  # rows of a class, without which it is ignored
FEW_VALUES = 50  # numbers with at most this many different values are also checked as categories
PARTS = 5
ALWAYS = 0.99  # share of one class among the rows in which a column is filled, or missing
UNLIKELY = 1e-6  # probability of such a share by chance
SENTINELS = {-1.0, -9.0, *(sign * (10.0**k - 1) for k in range(2, 11) for sign in (1, -1))} | {
    sign * float(digit * k) for digit in "78" for k in range(2, 7) for sign in (1, -1)
}
UNORDERED = 0.7  # least ratio of the differences between neighbors and between any two codes
PAIRINGS = 20  # random orders of the codes
MOST_NAMED = 8


def with_suspicions(schema: Schema, X: pl.DataFrame, y: Array) -> Schema:
    """Return the schema with the findings of `suspicious_columns`."""
    return replace(schema, findings=schema.findings + suspicious_columns(schema, X, y))


def suspicious_columns(schema: Schema, X: pl.DataFrame, y: Array) -> tuple[Finding, ...]:
    """Return at most one finding of each kind.

    Parameters
    ----------
    schema : Schema
    X : DataFrame
        The inputs: Float64 for numbers, and String for categories.
    y : array of shape (n_rows,)
        The classes, or the numbers to predict.
    """
    rows = _sample(y, schema.task)
    X, y = X[rows], y[rows]
    target = _Classes.of(y) if schema.classes else _Numbers(y)
    checked = {finding.kind: finding.columns for finding in schema.findings}
    numbers = [c.name for c in schema.columns if c.kind == "number" and X[c.name].dtype.is_float()]
    values = {name: X[name].to_numpy() for name in numbers}
    sentinels = {name: found for name, v in values.items() if (found := sentinels_of(v))}
    plain = {name: v[~np.isin(v, [*sentinels.get(name, ()), np.nan])] for name, v in values.items()}
    findings = [
        _leaks(schema, X, target),
        _sentinel_finding(values, sentinels),
        _code_finding(
            {
                name: why
                for name, v in plain.items()
                if name not in checked.get("identifier", ())
                and (why := why_code(v) or why_unordered(values[name], target.columns))
            },
            {name for name, v in plain.items() if len(np.unique(v)) > len(v) / 2},
        ),
    ]
    return tuple(finding for finding in findings if finding.columns)


def _sample(y: Array, task: str) -> Array:
    """Return the indices of a random sample of rows, in order, with enough rows of each class."""
    order = np.random.default_rng(0).permutation(len(y))
    chosen = [order[:MOST_ROWS]]
    if len(y) > MOST_ROWS and task == "classification":
        chosen += [order[y[order] == label][:MOST_OF_A_CLASS] for label in np.unique(y)]
    return np.unique(np.concatenate(chosen))


# ---------------------------------------------------------------------------------- leaks


@dataclass(frozen=True)
class _Classes:
    """Classes as a target.

    Attributes
    ----------
    labels : array
        The classes with enough rows.
    codes : array of int
        The index of the class of each row; -1 for rare classes.
    """

    labels: Array
    codes: Array

    @classmethod
    def of(cls, y: Array) -> "_Classes":
        labels, counts = np.unique(y, return_counts=True)
        labels = labels[counts >= FEWEST]
        codes = np.searchsorted(labels, y)
        known = labels[np.minimum(codes, len(labels) - 1)] == y if len(labels) else y != y
        return cls(labels, np.where(known, codes, -1))

    @property
    def columns(self) -> Array:
        """What is averaged over the rows: a column of zeros and ones for each class."""
        k = len(self.labels)
        return (self.codes[:, None] == np.arange(k)[None, : k - 1 if k == 2 else k]).astype(float)

    def may_be_chance(self, columns: int) -> bool:
        """Whether one of so many unrelated columns separates two classes with probability 0.01."""
        if len(self.labels) < 2:
            return True
        few, more = sorted(np.bincount(self.codes[self.codes >= 0]).tolist())[:2]
        return comb(few + more, few) < 200 * columns

    def score_of_numbers(self, values: Array) -> float:
        """Return the smallest AUC between neighboring classes; see the module."""
        known = self.codes >= 0
        v, codes = values[known], self.codes[known]
        missing = np.isnan(v)
        ends = (-np.inf, np.inf) if missing.any() else (0.0,)
        return max(self._of_ranks(rankdata(np.where(missing, end, v)), codes) for end in ends)

    def _of_ranks(self, ranks: Array, codes: Array) -> float:
        k = len(self.labels)
        counts = np.bincount(codes, minlength=k)
        order = np.argsort(np.bincount(codes, ranks, minlength=k) / counts)
        return min(_area(ranks[codes == a], ranks[codes == b]) for a, b in pairwise(order))

    def score_of_categories(self, codes: Array) -> float:
        """Return the smallest AUC of a class against the others, from frequencies in other rows."""
        known = self.codes >= 0
        truth = self.codes[known]
        shares = _cross_fitted(codes[known], np.eye(len(self.labels))[truth])
        return min(_area(share[truth != k], share[truth == k]) for k, share in enumerate(shares.T))

    def filled_for(self, missing: Array) -> str:
        """Return that a column is filled, or missing, in one class only; empty if it is not.

        The braces stand for the target.
        """
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))
        shares = counts / max(1, counts.sum())
        for word, rows in {"filled": ~missing, "missing": missing}.items():
            inside = np.bincount(self.codes[rows & (self.codes >= 0)], minlength=len(self.labels))
            for k in np.flatnonzero(inside >= ALWAYS * max(1, inside.sum())):
                if inside[k] >= 5 and shares[k] < 0.9 and shares[k] ** inside[k] < UNLIKELY:
                    return f"is {word} only where {{}} is {self.labels[k].item()!r}"
        return ""


@dataclass(frozen=True)
class _Numbers:
    """Numbers as a target."""

    y: Array

    @property
    def columns(self) -> Array:
        """What is averaged over the rows: the ranks, which outliers do not dominate."""
        return rankdata(self.y)[:, None]

    def may_be_chance(self, columns: int) -> bool:
        """Whether one of so many unrelated columns may have a high score."""
        return len(self.y) < 20

    def score_of_numbers(self, values: Array) -> float:
        """Return the rank correlation."""
        known = ~np.isnan(values)
        if known.sum() < max(20, len(values) / 2):
            return 0.0
        return abs(_correlation(rankdata(values[known]), rankdata(self.y[known])))

    def score_of_categories(self, codes: Array) -> float:
        """Return the root of R², from means in other rows."""
        y = self.y - self.y.mean()
        found = _cross_fitted(codes, y[:, None])[:, 0]
        total = float((y**2).sum())
        return max(0.0, 1 - float(((y - found) ** 2).sum()) / total) ** 0.5 if total else 0.0

    def filled_for(self, missing: Array) -> str:
        return ""


def _area(low: Array, high: Array) -> float:
    """Return the AUC of the second sample against the first; whichever is larger, at least 0.5."""
    ranks = rankdata(np.concatenate([low, high]))[len(low) :]
    area = (ranks.sum() - len(high) * (len(high) + 1) / 2) / (len(low) * len(high))
    return float(max(area, 1 - area))


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / scale if scale else 0.0


def _cross_fitted(codes: Array, targets: Array) -> Array:
    """Return for each row the means of the targets of its category, among the other parts.

    A mean is that of the category's rows and of one row with the overall mean, so that a category
    of one row, or of an identifier, predicts nothing.
    """
    part = np.random.default_rng(0).permutation(len(codes)) % PARTS
    k, found = int(codes.max(initial=0)) + 1, np.empty_like(targets, dtype=np.float64)
    for one in range(PARTS):
        inside = part == one
        count = np.bincount(codes[~inside], minlength=k)[:, None]
        sums = np.column_stack(
            [np.bincount(codes[~inside], column[~inside], minlength=k) for column in targets.T]
        )
        means = (sums + targets[~inside].mean(axis=0)) / (count + 1)
        found[inside] = means[codes[inside]]
    return found


def _score(column: pl.Series, target: "_Classes | _Numbers") -> float:
    if not column.dtype.is_float():
        codes = np.unique(column.fill_null("").to_numpy(), return_inverse=True)[1]
        return target.score_of_categories(codes)
    values = column.to_numpy()
    score = target.score_of_numbers(values)
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= FEW_VALUES and isinstance(target, _Classes):
        score = max(score, target.score_of_categories(codes))
    return score


def _leaks(schema: Schema, X: pl.DataFrame, target: "_Classes | _Numbers") -> Finding:
    """Return the finding about columns that predict the target alone."""
    scorable = [] if target.may_be_chance(X.width) else X.columns
    scores = {name: _score(X[name], target) for name in scorable}
    alone = {
        name: s
        for name, s in scores.items()
        if s >= (ALONE_NUMBER if X[name].dtype.is_float() else ALONE_CATEGORY)
    }
    others = {name: s for name, s in scores.items() if name not in alone}
    least, best = min(alone.values(), default=0.0), max(others, key=scores.__getitem__, default="")
    many = not others or len(alone) >= max(2, len(others))
    if many or 1 - others[best] < max(GAP, 10 * (1 - least)):
        alone = {}
    filled = {
        name: f"{name!r} {where.format(repr(schema.target))}"
        for name in X.columns
        if name not in alone and (where := target.filled_for(X[name].is_null().to_numpy()))
    }
    what = "AUC" if schema.classes else "correlation"
    each = [f"{name!r} ({what} {score:.2f})" for name, score in alone.items()]
    columns = [*alone, *filled]
    predicts = "predict" if len(each) > 1 else "predicts"
    parts = applying(
        {
            f"{listed(each, MOST_NAMED)} alone {predicts} {schema.target!r}; the next best column, "
            f"{best!r}, has {others.get(best, 0.0):.2f}.": alone,
            f"{listed(filled.values(), MOST_NAMED)}.": filled,
            f"If such a value is known only with or after the target, use {_drop(columns)}.": True,
        }
    )
    return Finding("leak", tuple(columns), " ".join(parts))


def _drop(names: list[str]) -> str:
    return " ".join(f"--drop {shlex.quote(name)}" for name in names[:MOST_NAMED])


# ------------------------------------------------------------------- codes for missing values


def sentinels_of(values: Array) -> list[float]:
    """Return the values that probably stand for missing ones.

    These are numbers such as -1, -999 and 9999 that occur at least three times and

    - are negative, although all others are not;
    - or are further from the others than half of their range;
    - or occur five times, and five times as often as any other value.

    The others must have at least ten different values; three for the numbers from 99 on.
    """
    levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    candidates = np.isin(levels, list(SENTINELS)) & (counts >= 3)
    others, other_counts = levels[~candidates], counts[~candidates]
    if len(others) < 3 or not candidates.any():
        return []
    low, high = others[0], others[-1]
    return [
        level
        for level, count in zip(levels[candidates].tolist(), counts[candidates], strict=True)
        if (level < 0 <= low and len(others) >= 10)
        or (abs(level) >= 99 and max(low - level, level - high) > 0.5 * (high - low))
        or (abs(level) >= 99 and len(others) >= 10 and count >= 5 * max(1, other_counts.max()))
    ]


def _sentinel_finding(values: Mapping[str, Array], found: Mapping[str, list[float]]) -> Finding:
    each = [
        f"{value:.0f} in {name!r} ({(values[name] == value).mean():.1%} of the rows)"
        for name, some in found.items()
        for value in some
    ]
    given = ",".join(f"{name}={value:.0f}" for name, some in found.items() for value in some)
    return Finding(
        "sentinel",
        tuple(found),
        f"Values that repeat and may stand for missing ones: {listed(each, MOST_NAMED)}. If so, "
        f"use --missing-values {shlex.quote(given)}.",
    )


# ---------------------------------------------------------------------------------- codes


def why_code(values: Array) -> str:
    """Return why numbers look like codes or identifiers; empty if they do not.

    - They have the same number of digits, at least ten, and nearly all are different.
    - They have the same number of digits, at least three, each occurs several times, and they are
      a small part of their range without being multiples of a number.
    """
    if len(values) < 20 or values.min() < 1 or (values != np.floor(values)).any():
        return ""
    levels = np.unique(values)
    digits = len(f"{levels[-1]:.0f}")
    if len(f"{levels[0]:.0f}") != digits:
        return ""
    if digits >= 10 and len(levels) >= ALWAYS * len(values):
        return f"{digits} digits"
    repeated = digits >= 3 and 20 <= len(levels) <= len(values) / 3
    sparse = 5 * len(levels) <= levels[-1] - levels[0] < 2**53
    if repeated and sparse and np.gcd.reduce(np.diff(levels).astype(np.int64)) == 1:
        return f"{len(levels)} different values of {digits} digits"
    return ""


def why_unordered(values: Array, targets: Array) -> str:
    """Return why whole numbers look like codes: their order says nothing about the target.

    The mean target of the numbers varies significantly, but that of neighboring numbers differs
    as much as that of any two. For a quantity, neighbors are similar. Without a relation to the
    target, nothing is found. Numbers that occur fewer than five times are ignored.
    """
    known = ~np.isnan(values)
    levels, codes, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    if (levels != np.floor(levels)).any():
        return ""
    often = counts[codes] >= 5
    T = targets[known][often]
    _, codes, counts = np.unique(codes[often], return_inverse=True, return_counts=True)
    d, n = len(counts), len(T)
    if not 20 <= d < len(levels) + 1 <= 2 * d:
        return ""
    means = np.array([np.bincount(codes, column) / counts for column in T.T]).T
    noise = ((T - means[codes]) ** 2).sum(axis=0) / (n - d)
    between = (counts[:, None] * (means - T.mean(axis=0)) ** 2).sum(axis=0) / (d - 1)
    varying = (noise > 0) & (between > noise * f_distribution.isf(UNLIKELY, d - 1, n - d))
    if not varying.any():
        return ""
    means, noise = means[:, varying], noise[varying]

    def excess(a: Array, b: Array) -> float:
        """Return the mean squared difference of pairs of numbers, in units of chance, minus 1."""
        errors = noise * (1 / counts[a] + 1 / counts[b])[:, None]
        return float(((means[a] - means[b]) ** 2 / errors).mean()) - 1

    neighbors = excess(np.arange(d - 1), np.arange(1, d))
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(d) for _ in range(PAIRINGS)])
    others = excess(order[:-1], order[1:])
    if neighbors > 4 * (3 / d) ** 0.5 and neighbors >= UNORDERED * others:
        return f"{d} different values in no order"
    return ""


def _code_finding(found: Mapping[str, str], unique: Collection[str]) -> Finding:
    """Return the finding about numbers that are codes, most of which are different if `unique`."""
    repeated = [name for name in found if name not in unique]
    categorical = " ".join(f"--categorical {shlex.quote(name)}" for name in repeated[:MOST_NAMED])
    each = [f"{name!r} ({why})" for name, why in found.items()]
    advice = " ".join(filter(None, [_drop([n for n in found if n in unique]), categorical]))
    return Finding(
        "code",
        tuple(found),
        f"Used as numbers, but probably codes: {listed(each, MOST_NAMED)}. If so, use {advice}.",
    )
