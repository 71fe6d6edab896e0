"""The cells of the MNIST table compared with the paper's, and the claims based on them."""

import csv
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from quadric.paper.experiments._experiment import MODELS, NAMES, Claim
from quadric.paper.sweep import WIDTHS, Recipe, Run

Key = tuple[int, int, int, str]  # train_size, epochs, hidden, model
Means = dict[Key, float]


@dataclass(frozen=True)
class Cell:
    """One cell of the table: statistics over the seeds, in percent, and the paper's values.

    The paper's values are None if it does not report this cell.
    """

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
        """Our mean minus the paper's, in percentage points."""
        return None if self.paper_mean is None else self.mean - self.paper_mean

    @property
    def sigmas(self) -> float | None:
        """The difference in units of the paper's standard deviation."""
        if self.difference is None or self.paper_std is None:
            return None
        return self.difference / self.paper_std

    @property
    def within_2_sigmas(self) -> bool | None:
        return None if self.sigmas is None else abs(self.sigmas) <= 2

    @property
    def near(self) -> bool | None:
        """Whether our mean is within 3 standard deviations or 1 percentage point of the paper's."""
        if self.difference is None or self.sigmas is None:
            return None
        return abs(self.sigmas) <= 3 or abs(self.difference) <= 1.0


def paper_table() -> dict[Key, dict[str, float]]:
    """Return the paper's table: mean, std, best and worst of 25 runs, in percent."""
    text = resources.files(__package__).joinpath("paper_mnist.csv").read_text()
    return {
        (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"]): {
            name: float(row[name]) for name in ("mean", "std", "best", "worst")
        }
        for row in csv.DictReader(text.splitlines())
    }


def cells_of(runs: Sequence[Run], recipe: Recipe, paper: dict[Key, dict[str, float]]) -> list[Cell]:
    """Compute mean, standard deviation (divisor n - 1), best and worst of each cell's seeds."""
    groups = defaultdict(list)
    for run in runs:
        for epochs, accuracy in zip(recipe.epochs, run.result.accuracies, strict=True):
            key = (run.task.size, epochs, run.task.hidden, NAMES[run.task.kind])
            groups[key].append(100 * accuracy)
    cells = []
    for key in sorted(groups, key=lambda key: (*key[:3], list(MODELS).index(key[3]))):
        values, theirs = np.array(groups[key]), paper.get(key, {})
        cells.append(
            Cell(
                *key,
                mean=float(values.mean()),
                std=float(values.std(ddof=1)) if len(values) > 1 else None,
                best=float(values.max()),
                worst=float(values.min()),
                paper_mean=theirs.get("mean"),
                paper_std=theirs.get("std"),
            )
        )
    return cells


def gains(means: Means, better: str, worse: str) -> dict[tuple[int, ...], float]:
    """Return how much better one model is than another for each (size, epochs, width)."""
    return {
        key[:3]: mean - means[(*key[:3], worse)]
        for key, mean in means.items()
        if key[3] == better and (*key[:3], worse) in means
    }


def smallest_width(means: Means, size: int, epochs: int) -> int | None:
    """Return the smallest width at which the QNN is at least as accurate as the ANN of width 30."""
    goal = means.get((size, epochs, 30, "ann"), np.inf)
    reached = (w for w in WIDTHS if means.get((size, epochs, w, "qnn"), -1.0) >= goal)
    return next(reached, None)


def _wins(better: str, worse: str) -> Callable[[Means], list[bool]]:
    return lambda means: [gain > 0 for gain in gains(means, better, worse).values()]


def _gain_shrinks(means: Means) -> list[bool]:
    """Return whether the gain is smaller with 30 hidden neurons than with 10.

    There is one value for each size and number of epochs.
    """
    gain = gains(means, "qnn", "ann")
    rows = [key[:2] for key in gain if key[2] == 10 and (*key[:2], 30) in gain]
    return [gain[(*row, 10)] > gain[(*row, 30)] for row in rows]


def _fewer_suffice(means: Means) -> list[bool]:
    return [(smallest_width(means, *row) or 30) < 30 for row in {key[:2] for key in means}]


# The paper's statements, each with a function that returns whether it holds in each case.
STATEMENTS: dict[str, Callable[[Means], list[bool]]] = {
    **{
        f"{better} beats {worse} in every row of equal size, epochs and width": _wins(
            better.lower(), worse.lower()
        )
        for better, worse in (("QNN", "ANN"), ("QNN", "RPQNN"), ("RPQNN", "ANN"))
    },
    "the gain of QNN over ANN is always larger with 10 hidden neurons than with 30": _gain_shrinks,
    "a QNN with fewer than 30 hidden neurons is as accurate as the ANN with 30": _fewer_suffice,
}


def claims_of(cells: Sequence[Cell], compared: bool) -> list[Claim]:
    """Judge the paper's claims about this table by its own numbers and by ours.

    A claim is confirmed only if it holds in every case. There is no verdict if the results cannot
    be compared with the paper's.
    """
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
                f"{within} of {len(judged)} means within 2 standard deviations of the paper's, "
                f"{near} within 3 standard deviations or one percentage point",
                within >= 0.95 * len(judged),
            )
        )
    for text, judge in STATEMENTS.items():
        verdicts = (judge(theirs), judge(ours))
        paper, mine = (f"{sum(cases)} of {len(cases)}" if cases else "-" for cases in verdicts)
        paper_holds, holds = (all(cases) if compared and cases else None for cases in verdicts)
        claims.append(Claim(text, paper, mine, holds, paper_holds))
    return claims


def _means(cells: Sequence[Cell]) -> tuple[Means, Means]:
    """Return our means and the paper's."""
    theirs = {cell.key: cell.paper_mean for cell in cells if cell.paper_mean is not None}
    return {cell.key: cell.mean for cell in cells}, theirs


def smallest_widths(cells: Sequence[Cell]) -> list[tuple[Any, ...]]:
    """Return a row (size, epochs, paper's width, our width) for each case of `smallest_width`."""
    ours, theirs = _means(cells)
    rows = sorted({key[:2] for key in ours})
    return [(*row, smallest_width(theirs, *row), smallest_width(ours, *row)) for row in rows]
