"""The cells of the MNIST table beside the paper's, and the claims based on them."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from quadric.paper.experiments._experiment import MODELS, Claim
from quadric.paper.sweep import Recipe, Run
from quadric.paper.sweep._task import WIDTHS

Key = tuple[int, int, int, str]  # train_size, epochs, hidden, model


@dataclass(frozen=True)
class Cell:
    """One cell: percentages over the seeds, and the paper's if it has the cell."""

    train_size: int
    epochs: int
    hidden: int
    model: str
    mean: float
    std: float | None  # None for a single seed
    best: float
    worst: float
    paper_mean: float | None = None
    paper_std: float | None = None

    @property
    def key(self) -> Key:
        return self.train_size, self.epochs, self.hidden, self.model

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's, in points."""
        return None if self.paper_mean is None else self.mean - self.paper_mean

    @property
    def sigmas(self) -> float | None:
        """The difference in printed standard deviations."""
        if self.difference is None or not self.paper_std:
            return None
        return self.difference / self.paper_std

    @property
    def within_2_sigmas(self) -> bool | None:
        return None if self.sigmas is None else abs(self.sigmas) <= 2

    @property
    def near(self) -> bool | None:
        """Whether the difference is within 3 printed standard deviations or one point."""
        if self.difference is None or self.sigmas is None:
            return None
        return abs(self.sigmas) <= 3 or abs(self.difference) <= 1.0


def paper_table() -> dict[Key, dict[str, float]]:
    """Return the paper's table: mean, std, best and worst of 25 runs, in percent."""
    text = resources.files(__package__).joinpath("paper_mnist.csv").read_text()
    table = {}
    for row in csv.DictReader(text.splitlines()):
        key = (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"])
        table[key] = {name: float(row[name]) for name in ("mean", "std", "best", "worst")}
    return table


def cells_of(runs: Sequence[Run], recipe: Recipe, paper: dict[Key, dict[str, float]]) -> list[Cell]:
    """Compute mean, standard deviation (n - 1), best and worst over the seeds of each cell."""
    names = {kind: model for model, kind in MODELS.items()}
    groups: dict[Key, list[float]] = {}
    for run in runs:
        for epochs, accuracy in zip(recipe.epochs, run.result.accuracies, strict=True):
            key = (run.task.size, epochs, run.task.hidden, names[run.task.kind])
            groups.setdefault(key, []).append(100 * accuracy)
    cells = []
    for key in sorted(groups, key=lambda key: (*key[:3], list(MODELS).index(key[3]))):
        values = np.array(groups[key])
        std = float(values.std(ddof=1)) if len(values) > 1 else None
        ours = (float(values.mean()), std, float(values.max()), float(values.min()))
        theirs = paper.get(key, {})
        cells.append(Cell(*key, *ours, theirs.get("mean"), theirs.get("std")))
    return cells


def claims_of(cells: Sequence[Cell], compared: bool) -> list[Claim]:
    """Judge the paper's claims from this table, in its own numbers and in ours."""
    ours, theirs = _means(cells)
    claims = []
    if compared:
        judged = [cell for cell in cells if cell.sigmas is not None]
        within = sum(bool(cell.within_2_sigmas) for cell in judged)
        near = sum(bool(cell.near) for cell in judged)
        claims.append(
            Claim(
                "the table can be reproduced",
                f"{len(judged)} cells",
                f"{within} of {len(judged)} means within 2 printed standard deviations, {near} "
                "within 3 or one point",
                within >= 0.95 * len(judged),
            )
        )

    def add(text: str, paper: list[bool], mine: list[bool]) -> None:
        """Add a claim that holds if it holds every time; it is not judged without the paper."""
        theirs, ours = (f"{sum(one)} of {len(one)}" if one else "-" for one in (paper, mine))
        paper_holds, holds = (all(one) if compared and one else None for one in (paper, mine))
        claims.append(Claim(text, theirs, ours, holds, paper_holds))

    for better, worse in (("qnn", "ann"), ("qnn", "rpqnn"), ("rpqnn", "ann")):
        text = (
            f"{better.upper()} beats {worse.upper()} in every row of equal size, epochs and width"
        )
        add(text, _wins(theirs, better, worse), _wins(ours, better, worse))
    text = "the gain of QNN over ANN is always larger with 10 hidden neurons than with 30"
    add(text, _shrinks(theirs), _shrinks(ours))
    smallest = smallest_widths(cells)
    paper, mine = ([row[k] is not None and row[k] < 30 for row in smallest] for k in (2, 3))
    text = "fewer hidden neurons suffice: a QNN of less than 30 reaches the ANN of 30"
    add(text, paper if theirs else [], mine)
    return claims


def _means(cells: Sequence[Cell]) -> tuple[dict[Key, Any], dict[Key, Any]]:
    """Return our means and the paper's."""
    theirs = {cell.key: cell.paper_mean for cell in cells if cell.paper_mean is not None}
    return {cell.key: cell.mean for cell in cells}, theirs


def _wins(means: dict[Key, Any], better: str, worse: str) -> list[bool]:
    return [
        mean > means[(*key[:3], worse)]
        for key, mean in means.items()
        if key[3] == better and (*key[:3], worse) in means
    ]


def _shrinks(means: dict[Key, Any]) -> list[bool]:
    """Return, per size and number of epochs, whether the gain is smaller with 30 than with 10."""
    gains = []
    for row in [key[:2] for key in means if key[2:] == (10, "qnn")]:
        needed = [(*row, width, model) for width in (10, 30) for model in ("qnn", "ann")]
        if all(key in means for key in needed):
            few_qnn, few_ann, many_qnn, many_ann = (means[key] for key in needed)
            gains.append(few_qnn - few_ann > many_qnn - many_ann)
    return gains


def smallest_widths(cells: Sequence[Cell]) -> list[tuple[Any, ...]]:
    """Return (size, epochs, paper's, ours): the smallest width whose QNN reaches the ANN of 30."""
    ours, theirs = _means(cells)

    def smallest(means: dict[Key, Any], row: tuple[int, int]) -> int | None:
        goal = means.get((*row, 30, "ann"), np.inf)
        reached = (w for w in WIDTHS if means.get((*row, w, "qnn"), -1.0) >= goal)
        return next(reached, None)

    rows = sorted({key[:2] for key in ours})
    return [(*row, smallest(theirs, row), smallest(ours, row)) for row in rows]
