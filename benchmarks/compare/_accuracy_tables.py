"""The tables of the accuracy section: ranks and costs, our kinds, losses, and all data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.choice import worse_by_chance
from benchmarks.compare._ranks import Ranking, ranking
from benchmarks.compare._result import OURS
from benchmarks.compare._tables import Table, number

TEST_SHARE = 0.2
NEAR = 0.005  # accuracies that differ less count as equal
COSTS = {
    "parameters": "numbers stored",
    "fit_seconds": "fit, {clock}s",
    "predict_microseconds": "predict, {clock}µs per row",
}
TREES = ("boosted trees", "explainable boosting")
POLYNOMIAL = ("QDA", "poly-2 logistic", "SVC, poly 2")
LOCAL = ("k-NN", "SVC, RBF")


class Scores:
    """The results of the accuracy section as matrices of data sets and models."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.rows = {(row["data"], row["model"]): row for row in found["rows"]}
        self.sets = list(dict.fromkeys(data for data, _ in self.rows))
        self.models = list(dict.fromkeys(model for _, model in self.rows))
        self.peers = [model for model in self.models if not model.startswith(OURS)]
        self.clock = found.get("clock", "")  # of the times: that of the CPU, or of the wall
        self.kinds = [model for model in self.models if model.startswith(f"{OURS}: ")]

    def matrix(self, key: str, models: list[str], sets: list[str]) -> np.ndarray:
        """The means of all splits, shape (data sets, models); NaN where there is none."""
        return np.array(
            [[self.rows[data, model].get(key, np.nan) for model in models] for data in sets]
        )

    def complete_sets(self) -> list[str]:
        """The data sets on which no model was left out."""
        return [
            data
            for data in self.sets
            if not any("left_out" in self.rows[data, model] for model in self.models)
        ]

    def differences(self, data: str, peer: str) -> np.ndarray:
        """The accuracy of a peer minus that of the default, on the folds that both have."""
        ours, theirs = (self.rows[data, m].get("accuracies", []) for m in (OURS, peer))
        folds = min(len(ours), len(theirs))
        return np.subtract(theirs[:folds], ours[:folds])

    def ranking(self, key: str, *, best: int, ours: str = OURS) -> Ranking:
        """Rank one model of ours and the peers that have this score on some data set."""
        sets, models = self.complete_sets(), [ours, *self.peers]
        known = np.isfinite(self.matrix(key, models, sets)).any(axis=0)
        models = [model for model, has in zip(models, known, strict=True) if has]
        return ranking(models, best * self.matrix(key, models, sets))

    def names_of_costs(self) -> list[str]:
        return [name.format(clock=self.clock) for name in COSTS.values()]

    def costs(self, model: str) -> list[str]:
        """The medians over the complete data sets of what a model costs."""
        sets = self.complete_sets()
        return [number(np.nanmedian(self.matrix(key, [model], sets))) for key in COSTS]


def summary(scores: Scores) -> Table:
    """One row per model: mean ranks, and what it costs."""
    by_accuracy = scores.ranking("accuracy", best=1)
    by_loss = scores.ranking("log_loss", best=-1)
    loss_ranks = dict(zip(by_loss.models, by_loss.mean_ranks, strict=True))
    differs = dict(zip(by_accuracy.models[1:], by_accuracy.differs, strict=True))
    rows = []
    for k in np.argsort(by_accuracy.mean_ranks):
        model = by_accuracy.models[k]
        rows.append(
            [
                model,
                f"{by_accuracy.mean_ranks[k]:.2f}",
                f"{loss_ranks[model]:.2f}" if model in loss_ranks else "no probabilities",
                *scores.costs(model),
                "–" if model == OURS else ("yes" if differs[model] else "no"),
            ]
        )
    title = (
        f"Mean ranks on {len(scores.complete_sets())} data sets; critical difference "
        f"{by_accuracy.critical_difference:.2f} (Nemenyi), Friedman p = {by_accuracy.friedman:.1g}"
    )
    columns = ["model", "rank by accuracy", "rank by log-loss", *scores.names_of_costs()]
    return Table(title, [*columns, "differs from quadric (Wilcoxon, Holm)"], rows)


def our_kinds(scores: Scores) -> Table:
    """The mean rank that each of our kinds has in the place of the default."""
    rows = []
    for model in (OURS, *scores.kinds):
        ranks = [
            scores.ranking(key, best=best, ours=model).mean_ranks[0]
            for key, best in (("accuracy", 1), ("log_loss", -1))
        ]
        name = "the default, which chooses" if model == OURS else model.removeprefix(f"{OURS}: ")
        rows.append([name, *(f"{rank:.2f}" for rank in ranks), *scores.costs(model)])
    columns = ["kind", "rank by accuracy", "rank by log-loss", *scores.names_of_costs()]
    return Table("Our kinds, each in the place of the default", columns, rows)


def losses(scores: Scores) -> Table:
    """The data sets on which a peer is more accurate than the default, and a likely reason."""
    found = []
    for data in scores.sets:
        differences = {peer: scores.differences(data, peer) for peer in scores.peers}
        ahead = {peer: values.mean() for peer, values in differences.items() if len(values)}
        best = max(ahead, key=ahead.__getitem__)
        if ahead[best] <= 0:
            continue
        line = {model: scores.rows[data, model].get("accuracy", -1.0) for model in scores.models}
        kind = max(scores.kinds, key=line.__getitem__)
        folds = len(differences[best])
        cells = [
            data,
            f"{100 * line[OURS]:.1f}",
            f"{100 * line[best]:.1f}, {best}",
            f"{100 * line[kind]:.1f}, {kind.removeprefix(f'{OURS}: ')}",
            f"{100 * ahead[best]:.1f}",
            f"{worse_by_chance(-differences[best], TEST_SHARE):.2f}" if folds > 1 else "one fold",
            reason(line, best, kind),
        ]
        found.append((ahead[best], cells))
    rows = [cells for _, cells in sorted(found, key=lambda pair: -pair[0])]
    columns = ["data set", "quadric", "best other", "our best kind", "points", "p", "likely reason"]
    return Table("Where another model is more accurate than the default", columns, rows)


def reason(line: dict[str, float], best: str, kind: str) -> str:
    """A likely reason, from which other models do well: an interpretation, not a proof."""
    if line[OURS] >= line[best] - NEAR:
        return "less than half a point"
    if line[kind] >= line[best] - NEAR:
        return f"the choice of a shape: {kind.removeprefix(f'{OURS}: ')} is as good"
    if line["logistic"] >= line[best] - NEAR:
        return "a hyperplane is enough: logistic regression is as good"
    if best in TREES:
        return "steps parallel to the axes, which trees represent"
    if best in LOCAL:
        return "local structure, which no polynomial of low degree represents"
    if best in POLYNOMIAL:
        return "the same functions with another penalty or another estimate"
    return "no clear reason"


def all_sets(scores: Scores) -> Table:
    """Accuracy in percent: one row per data set, the best in bold."""
    values = 100 * scores.matrix("accuracy", scores.models, scores.sets)
    rows = []
    for data, line in zip(scores.sets, values, strict=True):
        cells = []
        for model, value in zip(scores.models, line, strict=True):
            if np.isnan(value):
                cells.append("failed" if "failed" in scores.rows[data, model] else "left out")
            else:
                is_best = value >= np.nanmax(line) - 1e-9
                cells.append(f"**{value:.1f}**" if is_best else f"{value:.1f}")
        shape = scores.rows[data, scores.models[0]]
        rows.append([f"{data} ({shape['rows']} × {shape['inputs']}, {shape['classes']})", *cells])
    columns = ["data set", *scores.models]
    return Table("Accuracy in percent (rows × inputs, classes)", columns, rows, wide=True)


def tables(found: dict[str, Any]) -> list[Table]:
    scores = Scores(found)
    return [summary(scores), our_kinds(scores), losses(scores), all_sets(scores)]


def rival(found: dict[str, Any]) -> str:
    """Name the peer with the best mean rank by accuracy."""
    ranks = Scores(found).ranking("accuracy", best=1)
    ours, *theirs = ranks.mean_ranks
    best = int(np.argmin(theirs))
    return (
        f"Strongest rival: {ranks.models[1 + best]}, with a mean rank of {theirs[best]:.2f} by "
        f"accuracy. quadric has {ours:.2f}."
    )
