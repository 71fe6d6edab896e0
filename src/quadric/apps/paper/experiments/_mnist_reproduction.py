"""Whether the MNIST table is reproduced: means, signs of the differences, spread and extremes."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from quadric.apps.paper.claims import NEEDS_FULL, Claim, Verdict
from quadric.apps.paper.experiments._mnist_cells import Cell, Row, row_name
from quadric.apps.paper.experiments._statistics import (
    ALPHA,
    Sample,
    adjust,
    compare_spread,
    expected_maximum,
    maximum_range,
)


def reproduction_claims(cells: Sequence[Cell], enough: bool) -> list[Claim]:
    """Compare our table with the printed one; `enough` is whether our runs allow a verdict."""
    printed = [cell for cell in cells if cell.paper is not None]
    claims = [_means(printed, enough), _spread(printed), _below(printed)]
    if not enough:
        claims = [
            replace(claim, ours=f"{claim.ours}; {NEEDS_FULL}", verdict=Verdict.UNKNOWN)
            for claim in claims
        ]
    return [*claims, _possible(printed)]


def _means(printed: Sequence[Cell], enough: bool) -> Claim:
    within = sum(bool(cell.is_within) for cell in printed)
    lenient = sum(bool(cell.is_within_leniently) for cell in printed)
    expected, least = expected_within(len(printed))
    needed = ""
    if enough:
        needed = f" ({expected:.0f} expected with the same recipe, at least {least} required)"
    return Claim(
        "table-means",
        f"{len(printed)} cells, with nothing in the paper to judge them by",
        f"{within} of {len(printed)} within 2 standard errors of the difference{needed}; by "
        f"the lenient criterion (2 printed standard deviations of one run) {lenient}",
        Verdict.HOLDS if within >= least else Verdict.FAILS,
        method="standard errors of the difference between two means of 25 runs",
    )


def _spread(printed: Sequence[Cell]) -> Claim:
    pairs = [(cell.ours, cell.paper) for cell in printed if cell.paper is not None]
    tests = {k: compare_spread(ours, paper) for k, (ours, paper) in enumerate(pairs)}
    found = {k: test for k, test in tests.items() if test is not None}
    differ = sum(p < ALPHA for p in adjust({k: test[1] for k, test in found.items()}).values())
    ratio = float(np.median([test[0] for test in found.values()])) if found else math.nan
    verdict = Verdict.FAILS
    if differ == 0:
        verdict = Verdict.HOLDS
    elif differ <= ALPHA * len(found) and abs(ratio - 1) < 0.1:
        verdict = Verdict.CONDITIONALLY
    text = ""
    if found:
        text = f"median {ratio:.2f} of the printed one; significantly different in {differ} of "
        text += f"{len(found)} cells. Extremes: "
    possible = [paper for _, paper in pairs if paper.is_possible]
    return Claim(
        "table-spread",
        "no other numbers to judge them by; extremes: " + _extremes(possible),
        text + _extremes([ours for ours, _ in pairs]),
        verdict,
        method="F test, Holm over all cells. It assumes normal runs; the worst runs are farther "
        "from the mean than that. With a condition: in all but 5 % of the cells",
    )


def _below(printed: Sequence[Cell]) -> Claim:
    negative, agree, differ = signs(printed)
    found = set(negative) & set(agree)
    return Claim(
        "table-rpqnn-below-ann",
        f"{len(negative)} rows (images/epochs/hidden): " + _list(negative),
        f"less accurate in {len(found)} of {len(negative)}; of all rows, {len(agree)} of "
        f"{len(agree) + len(differ)} signs agree, all but {_list(differ)}",
        Verdict.HOLDS if negative and 4 * len(found) >= 3 * len(negative) else Verdict.FAILS,
        Verdict.HOLDS,
        "signs of the differences; holds if they agree in at least three quarters of these rows",
    )


def _possible(printed: Sequence[Cell]) -> Claim:
    samples = {cell.name: cell.paper for cell in printed if cell.paper is not None}
    impossible = ", ".join(
        f"{name} (mean {sample.mean:.2f}, best {sample.best:.2f}, worst {sample.worst:.2f})"
        for name, sample in samples.items()
        if not sample.is_possible
    )
    verdict = Verdict.FAILS if impossible else Verdict.HOLDS
    return Claim(
        "table-possible",
        f"impossible: {impossible or 'none'}",
        "follows from the printed numbers",
        verdict,
        verdict,
        "the mean is between worst and best; inequalities of Bhatia and Davis, and of Samuelson",
    )


def expected_within(cells: int, runs: int = 25) -> tuple[float, int]:
    """Return how many cells of the same recipe are within 2 standard errors, and how few may be.

    The second number is 2 standard deviations of the binomial distribution below the first.
    Cells that share runs are correlated, so this bound is approximate.

    >>> expected, least = expected_within(180)
    >>> round(expected), least
    (171, 165)
    """
    share = 1 - 2 * float(stats.t.sf(2, 2 * runs - 2))
    return share * cells, math.ceil(cells * share - 2 * math.sqrt(cells * share * (1 - share)))


def signs(cells: Sequence[Cell]) -> tuple[list[Row], list[Row], list[Row]]:
    """Compare the signs of RPQNN - ANN with the printed ones.

    Returns the rows in which the printed difference is negative, those in which ours has the same
    sign, and those in which it does not.
    """
    by_key = {cell.key: cell for cell in cells if cell.paper is not None}
    negative: list[Row] = []
    agree: list[Row] = []
    differ: list[Row] = []
    for row in dict.fromkeys(key[:3] for key in by_key):
        rpqnn, ann = (by_key.get((*row, model)) for model in ("rpqnn", "ann"))
        if rpqnn is None or ann is None or rpqnn.paper is None or ann.paper is None:
            continue
        printed, ours = rpqnn.paper.mean - ann.paper.mean, rpqnn.ours.mean - ann.ours.mean
        if printed < 0:
            negative.append(row)
        (agree if printed * ours > 0 else differ).append(row)
    return negative, agree, differ


def _list(rows: Sequence[Row]) -> str:
    return ", ".join(map(row_name, rows)) or "none"


def _extremes(samples: Sequence[Sample]) -> str:
    """Describe how far best and worst are from the mean, compared with normal samples."""
    found = [
        (sample.best_in_std, -sample.worst_in_std, *maximum_range(sample.runs))
        for sample in samples
        if sample.best_in_std is not None and sample.worst_in_std is not None
    ]
    if not found:
        return "-"
    best, worst, low, high = np.array(found).T
    inside = [int(((low <= ends) & (ends <= high)).sum()) for ends in (best, worst)]
    return (
        f"median best {np.median(best):+.2f} and worst {-np.median(worst):+.2f} std from the mean "
        f"(±{expected_maximum(samples[0].runs):.2f} expected), {inside[0]} and {inside[1]} of "
        f"{len(found)} in the 95 % range"
    )
