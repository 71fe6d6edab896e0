"""Mean ranks over data sets, and which differences between them are significant (Demšar, 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.choice import holm
from benchmarks.defaults import ranks
from quadric.apps.paper._statistics import ALPHA


class Ranking(NamedTuple):
    """Mean ranks of models, 1 is best, and the tests of their differences.

    Models whose mean ranks differ by at least `critical_difference` differ significantly by
    Nemenyi's test. `differs` says which models differ from the first one by Wilcoxon's signed-rank
    test with Holm's correction.
    """

    models: list[str]
    mean_ranks: np.ndarray
    friedman: float
    critical_difference: float
    differs: np.ndarray

    def groups(self) -> list[tuple[int, int]]:
        """Runs of models, in the order of their ranks, that do not differ by Nemenyi's test.

        A run is a pair of positions, the last one included; runs inside others are omitted.
        """
        ordered = np.sort(self.mean_ranks)
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(ordered):
            last = int(np.searchsorted(ordered, rank + self.critical_difference)) - 1
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def ranking(models: list[str], scores: np.ndarray) -> Ranking:
    """Rank models by scores of shape (data sets, models); a larger score is better, NaN is last."""
    places = np.array([ranks(row) for row in scores])
    sets, count = places.shape
    q = stats.studentized_range.ppf(1 - ALPHA, count, np.inf) / np.sqrt(2)
    p_values = np.array([_wilcoxon(scores[:, 0], scores[:, k]) for k in range(1, count)])
    return Ranking(
        models,
        places.mean(axis=0),
        float(stats.friedmanchisquare(*places.T).pvalue),
        float(q * np.sqrt(count * (count + 1) / (6 * sets))),
        holm(p_values),
    )


def _wilcoxon(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Compare the scores on the data sets on which both models have one."""
    differences = ours - theirs
    differences = differences[np.isfinite(differences)]
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0
