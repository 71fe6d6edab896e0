"""The tables of the accuracy section: a summary, all data sets, and where quadric loses."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.choice import worse_by_chance
from benchmarks.compare._ranks import Ranking, ranking
from benchmarks.compare._result import OURS
from benchmarks.compare._tables import Table, number

TEST_SHARE = 0.2
NEAR = 0.005  # accuracies that differ less count as equal
TREES = ("boosted trees", "explainable boosting")
SMOOTH = ("MLP", "SVC, RBF", "SVC, poly 2")
POLYNOMIAL = ("QDA", "poly-2 logistic", "SVC, poly 2")

LOCAL = ("k-NN", "SVC, RBF")


class Scores:
    """The results of the accuracy section as matrices of data sets and models."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.rows = {(row["data"], row["model"]): row for row in found["rows"]}
        self.sets = list(dict.fromkeys(data for data, _ in self.rows))
        self.models = list(dict.fromkeys(model for _, model in self.rows))

    def matrix(self, key: str, models: list[str], sets: list[str] | None = None) -> np.ndarray:
        """The means of all splits, shape (data sets, models); NaN where there is none."""
        return np.array(
            [
                [self.rows[data, model].get(key, np.nan) for model in models]
                for data in sets or self.sets
            ]
        )

    def complete_sets(self) -> list[str]:
        """The data sets on which no model was left out."""
        return [
            data
            for data in self.sets
            if not any("left_out" in self.rows[data, model] for model in self.models)
        ]

    def ranking(self, key: str, *, best: int) -> Ranking:
        """Rank the models that have this score on some data set."""
        sets = self.complete_sets()
        whole = self.matrix(key, self.models, sets)
        models = [
            m for m, has in zip(self.models, np.isfinite(whole).any(axis=0), strict=True) if has
        ]
        return ranking(models, best * self.matrix(key, models, sets))


def summary(scores: Scores) -> Table:
    """One row per model: mean ranks, and medians of what it costs."""
    by_accuracy, by_loss = scores.ranking("accuracy", best=1), scores.ranking("log_loss", best=-1)
    loss_ranks = dict(zip(by_loss.models, by_loss.mean_ranks, strict=True))
    against = dict(zip(by_accuracy.models[1:], by_accuracy.differs, strict=True))
    rows = []
    for model, rank in sorted(
        zip(by_accuracy.models, by_accuracy.mean_ranks, strict=True), key=lambda pair: pair[1]
    ):
        costs = [
            np.nanmedian(scores.matrix(key, [model]))
            for key in ("parameters", "fit_seconds", "predict_microseconds")
        ]
        rows.append(
            [
                model,
                f"{rank:.2f}",
                f"{loss_ranks[model]:.2f}" if model in loss_ranks else "no probabilities",
                number(costs[0]),
                number(costs[1]),
                number(costs[2]),
                "–" if model == OURS else ("yes" if against[model] else "no"),
            ]
        )
    count = len(scores.complete_sets())
    title = (
        f"Mean ranks on {count} data sets; critical difference "
        f"{by_accuracy.critical_difference:.2f} (Nemenyi), Friedman p = {by_accuracy.friedman:.1g}"
    )
    columns = [
        "model",
        "rank by accuracy",
        "rank by log-loss",
        "numbers stored",
        "fit, s",
        "predict, µs per row",
        "differs from quadric (Wilcoxon, Holm)",
    ]
    return Table(title, columns, rows)


def all_sets(scores: Scores) -> Table:
    """Accuracy in percent: one row per data set, the best in bold."""
    values = 100 * scores.matrix("accuracy", scores.models)
    rows = []
    for data, line in zip(scores.sets, values, strict=True):
        cells = []
        for model, value in zip(scores.models, line, strict=True):
            if np.isnan(value):
                cells.append("failed" if "failed" in scores.rows[data, model] else "left out")
            else:
                cells.append(
                    f"**{value:.1f}**" if value >= np.nanmax(line) - 1e-9 else f"{value:.1f}"
                )
        shape = scores.rows[data, scores.models[0]]
        rows.append([f"{data} ({shape['rows']} × {shape['inputs']}, {shape['classes']})", *cells])
    return Table(
        "Accuracy in percent (rows × inputs, classes)", ["data set", *scores.models], rows, True
    )


def losses(scores: Scores) -> Table:
    """The data sets on which a peer is more accurate than the default, and a likely reason."""
    peers = [model for model in scores.models if not model.startswith(OURS)]
    kinds = [model for model in scores.models if model.startswith(OURS)]
    rows = []
    for data in scores.sets:
        line = {model: scores.rows[data, model].get("accuracy", np.nan) for model in scores.models}
        best = max(peers, key=lambda model: np.nan_to_num(line[model], nan=-1))
        if not line[best] > line[OURS]:
            continue
        ours, theirs = (scores.rows[data, model]["accuracies"] for model in (OURS, best))
        difference = np.subtract(ours[: len(theirs)], theirs)
        p = worse_by_chance(difference, TEST_SHARE) if len(difference) > 1 else np.nan
        kind = max(kinds, key=lambda model: np.nan_to_num(line[model], nan=-1))
        rows.append(
            [
                data,
                f"{100 * line[OURS]:.1f}",
                f"{100 * line[best]:.1f}, {best}",
                f"{100 * line[kind]:.1f}, {kind.removeprefix('quadric: ')}",
                f"{100 * (line[best] - line[OURS]):.1f}",
                "one fold" if np.isnan(p) else f"{p:.2f}",
                reason(line, best, kind),
            ]
        )
    rows.sort(key=lambda row: -float(row[4]))  # the largest loss first
    columns = ["data set", "quadric", "best other", "our best kind", "points", "p", "likely reason"]
    return Table("Where another model is more accurate than the default", columns, rows)


def reason(line: dict[str, float], best: str, kind: str) -> str:
    """A likely reason, from which other models do well: an interpretation, not a proof."""
    smooth = np.nanmax([line[model] for model in SMOOTH])
    if line[kind] >= line[best] - NEAR:
        return f"the choice of a shape, not the neuron: {kind.removeprefix('quadric: ')} is as good"
    if line["logistic"] >= line[best] - NEAR:
        return "a hyperplane is enough: logistic regression is as good"
    if best in TREES and line[best] > smooth:
        return "steps parallel to the axes: trees are ahead of every smooth model"
    if best in LOCAL:
        return "local structure: a model of neighborhoods is ahead of every polynomial"
    if best in POLYNOMIAL:
        return "the same functions with another penalty or another estimate"
    return "no clear reason"


def tables(found: dict[str, Any]) -> list[Table]:
    scores = Scores(found)
    return [summary(scores), losses(scores), all_sets(scores)]
