"""Whether the MNIST table is reproduced: means, signs of the differences, spread and extremes."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from quadric.paper.experiments._experiment import Claim
from quadric.paper.experiments._mnist_cells import Cell, Row, row_name
from quadric.paper.experiments._statistics import Sample, expected_maximum, maximum_range


def reproduction_claims(cells: Sequence[Cell], enough: bool) -> list[Claim]:
    """Compare our table with the printed one; `enough` tells whether our runs allow a verdict."""
    printed = [cell for cell in cells if cell.paper is not None]
    within = sum(bool(cell.is_within) for cell in printed)
    lenient = sum(bool(cell.is_within_leniently) for cell in printed)
    expected, least = expected_within(len(printed))
    needed = "too few runs for a verdict"
    if enough:
        needed = f"{expected:.0f} expected with the same recipe, at least {least} required"
    negative, agree, differ = signs(printed)
    found = set(negative) & set(agree)
    samples = {cell.name: cell.paper for cell in printed if cell.paper is not None}
    impossible = {name: sample for name, sample in samples.items() if not sample.is_possible}
    possible = [sample for sample in samples.values() if sample.is_possible]
    ratios = [
        cell.ours.std / cell.paper.std
        for cell in printed
        if cell.ours.std and cell.paper and cell.paper.std
    ]
    ratio = f"median std {np.median(ratios):.2f} of the printed one; " if ratios else ""
    return [
        Claim(
            "the means of the table are reproduced",
            f"{len(printed)} cells",
            f"{within} of {len(printed)} within 2 standard errors of the difference ({needed}); by "
            f"the lenient criterion (2 printed standard deviations of one run) {lenient}",
            within >= least if enough else None,
        ),
        Claim(
            "the RPQNN is less accurate than the ANN where the table says so",
            f"{len(negative)} rows (images/epochs/hidden): " + _list(negative),
            f"less accurate in {len(found)} of {len(negative)}; of all rows, {len(agree)} of "
            f"{len(agree) + len(differ)} signs agree, all but {_list(differ)}",
            4 * len(found) >= 3 * len(negative) if enough and negative else None,
        ),
        Claim(
            "the best and worst runs are as far from the mean as in a normal sample",
            _extremes(possible),
            ratio + _extremes([cell.ours for cell in cells]),
            None,
        ),
        Claim(
            "every printed best and worst run is possible with the printed mean and std",
            f"{len(printed)} cells",
            "impossible: "
            + (
                ", ".join(
                    f"{name} (mean {sample.mean:.2f}, best {sample.best:.2f}, worst "
                    f"{sample.worst:.2f})"
                    for name, sample in impossible.items()
                )
                or "none"
            ),
            not impossible,
            not impossible,
            erratum=True,
        ),
    ]


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
    sign, and those in which it has not.
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
