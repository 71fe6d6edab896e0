"""The paper's MNIST table: 180 cells, each beside ours, and what it claims from them."""

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from quadric.datasets import ImageData
from quadric.errors import StoreError
from quadric.paper.experiments import _mnist_figures as mnist_figures
from quadric.paper.experiments._outcome import Claim, Outcome, Progress, Table, silent
from quadric.paper.sweep import Recipe, Row, Store, Task, run_sweep, table_tasks

MODELS = {"ann": "linear", "qnn": "quadratic", "rpqnn": "reduced"}
WIDTHS = (10, 15, 20, 25, 30)
SIZES = (600, 1200, 6000, 60000)
QUICK_SIZES = SIZES[:3]
QUICK_SEEDS, FULL_SEEDS = 3, 25

Key = tuple[int, int, int, str]  # train_size, epochs, hidden, model


@dataclass(frozen=True)
class Cell:
    """One cell: percentages over the seeds, and the paper's, where it has the cell."""

    train_size: int
    epochs: int
    hidden: int
    model: str
    mean: float
    std: float | None  # of one seed there is none
    best: float
    worst: float
    paper_mean: float | None = None
    paper_std: float | None = None

    @property
    def key(self) -> Key:
        return self.train_size, self.epochs, self.hidden, self.model

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
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
        """Within 3 printed standard deviations, or within one point."""
        if self.difference is None or self.sigmas is None:
            return None
        return abs(self.sigmas) <= 3 or abs(self.difference) <= 1.0


def paper_table() -> dict[Key, dict[str, float]]:
    """The paper's table: mean, std, best and worst of 25 runs, in percent."""
    text = resources.files(__package__).joinpath("paper_mnist.csv").read_text()
    table = {}
    for row in csv.DictReader(text.splitlines()):
        key = (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"])
        table[key] = {name: float(row[name]) for name in ("mean", "std", "best", "worst")}
    return table


def tasks_for(
    data: ImageData, *, full: bool, seeds: int | None = None, first_seed: int = 0
) -> list[Task]:
    """The runs of the table, or of the part of it that a quick run or small data allow."""
    count = seeds or (FULL_SEEDS if full else QUICK_SEEDS)
    sizes = [size for size in (SIZES if full else QUICK_SIZES) if size <= len(data.X_train)]
    return table_tasks(range(first_seed, first_seed + count), sizes=sizes, widths=WIDTHS)


def estimate(tasks: Sequence[Task], recipe: Recipe, jobs: int) -> float:
    """About how many seconds the runs take on this many cores."""
    return sum(task.cost for task in tasks) * 1e-9 * recipe.epochs[-1] / jobs


def cells_of(rows: Sequence[Row], recipe: Recipe, paper: dict[Key, dict[str, float]]) -> list[Cell]:
    """Mean, standard deviation (n - 1), best and worst over the seeds of each cell."""
    names = {kind: model for model, kind in MODELS.items()}
    groups: dict[Key, list[float]] = {}
    for row in rows:
        if len(row.result.accuracies) != len(recipe.epochs):
            raise StoreError(f"the store is damaged: the run with {row.task} is not whole.")
        for epochs, accuracy in zip(recipe.epochs, row.result.accuracies, strict=True):
            key = (row.task.size, epochs, row.task.hidden, names[row.task.kind])
            groups.setdefault(key, []).append(100 * accuracy)
    cells = []
    for key in sorted(groups, key=lambda key: (*key[:3], list(MODELS).index(key[3]))):
        values = np.array(groups[key])
        theirs = paper.get(key, {})
        cells.append(
            Cell(
                *key, float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None,
                float(values.max()), float(values.min()), theirs.get("mean"), theirs.get("std"),
            )
        )  # fmt: skip
    return cells


def claims_of(cells: Sequence[Cell], compared: bool) -> list[Claim]:
    """The paper's claims from this table, judged on its own numbers and on ours."""
    ours = {cell.key: cell.mean for cell in cells}
    theirs = {cell.key: cell.paper_mean for cell in cells if cell.paper_mean is not None}
    claims = []
    if compared:
        judged = [cell for cell in cells if cell.sigmas is not None]
        within = sum(bool(cell.within_2_sigmas) for cell in judged)
        near = sum(bool(cell.near) for cell in judged)
        claims.append(
            Claim(
                "the table can be reproduced", f"{len(judged)} cells",
                f"{within} of {len(judged)} means within 2 printed standard deviations, {near} "
                "within 3 or one point",
                within >= 0.95 * len(judged),
            )
        )  # fmt: skip
    for text, better, worse in (
        ("QNN beats ANN", "qnn", "ann"),
        ("QNN beats RPQNN", "qnn", "rpqnn"),
        ("RPQNN beats ANN", "rpqnn", "ann"),
    ):
        mine, total = _wins(ours, better, worse)
        paper, paper_total = _wins(theirs, better, worse)
        claims.append(
            Claim(
                f"{text} in every row of equal size, epochs and width",
                f"{paper} of {paper_total}" if paper_total else "-", f"{mine} of {total}",
                _judged(mine, total, compared), _judged(paper, paper_total, compared),
            )
        )  # fmt: skip
    mine, total = _shrinks(ours)
    paper, paper_total = _shrinks(theirs)
    claims.append(
        Claim(
            "the gain of QNN over ANN is always larger with 10 hidden neurons than with 30",
            f"{paper} of {paper_total}" if paper_total else "-", f"{mine} of {total}",
            _judged(mine, total, compared), _judged(paper, paper_total, compared),
        )
    )  # fmt: skip
    smallest = smallest_widths(cells)
    fewer = sum(row[3] is not None and row[3] < 30 for row in smallest)
    paper_fewer = sum(row[2] is not None and row[2] < 30 for row in smallest)
    claims.append(
        Claim(
            "fewer hidden neurons suffice: a QNN of less than 30 reaches the ANN of 30",
            f"{paper_fewer} of {len(smallest)}" if theirs else "-", f"{fewer} of {len(smallest)}",
            _judged(fewer, len(smallest), compared), _judged(paper_fewer, len(smallest), compared),
        )
    )  # fmt: skip
    return claims


def _judged(count: int, total: int, compared: bool) -> bool | None:
    """Whether it holds every time; None where there is no paper, or nothing, to judge."""
    return count == total if compared and total else None


def _wins(means: dict[Key, Any], better: str, worse: str) -> tuple[int, int]:
    pairs = [
        (mean, means[(*key[:3], worse)])
        for key, mean in means.items()
        if key[3] == better and (*key[:3], worse) in means
    ]
    return sum(a > b for a, b in pairs), len(pairs)


def _shrinks(means: dict[Key, Any]) -> tuple[int, int]:
    rows = [key[:2] for key in means if key[2] == 10 and key[3] == "qnn"]
    gains = [
        [means[(*row, width, "qnn")] - means[(*row, width, "ann")] for width in (10, 30)]
        for row in rows
        if all((*row, width, model) in means for width in (10, 30) for model in ("qnn", "ann"))
    ]
    return sum(small > large for small, large in gains), len(gains)


def smallest_widths(cells: Sequence[Cell]) -> list[tuple[Any, ...]]:
    """(size, epochs, paper's, ours): the smallest width whose QNN reaches the ANN of 30."""
    ours = {cell.key: cell.mean for cell in cells}
    theirs = {cell.key: cell.paper_mean for cell in cells if cell.paper_mean is not None}
    rows = []
    for size, epochs in sorted({key[:2] for key in ours}):
        found = []
        for means in (theirs, ours):
            goal = means.get((size, epochs, 30, "ann"))
            widths = [
                width for width in WIDTHS
                if goal is not None and means.get((size, epochs, width, "qnn"), -1.0) >= goal
            ]  # fmt: skip
            found.append(widths[0] if widths else None)
        rows.append((size, epochs, *found))
    return rows


def parameters(hidden: int, model: str, inputs: int = 784, outputs: int = 10) -> int:
    """How many parameters the network of a cell has."""
    extra = {"ann": 0, "qnn": hidden * (hidden + 1) // 2, "rpqnn": hidden + 1}[model]
    return hidden * (inputs + 1) + outputs * (hidden + 1 + extra)


def run(
    data: ImageData,
    store: Store,
    *,
    recipe: Recipe | None = None,
    tasks: Sequence[Task] | None = None,
    full: bool = False,
    jobs: int = 2,
    dask: str | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Run what the store lacks, and compare.

    Parameters
    ----------
    data : ImageData
        MNIST; with other data nothing is compared with the paper.
    store : Store
    recipe : Recipe, optional
    tasks : sequence of Task, optional
        The default is `tasks_for` the data.
    full, jobs, dask, progress
    """
    recipe = recipe or Recipe()
    unit = unit_of(recipe)
    tasks = tasks_for(data, full=full) if tasks is None else list(tasks)
    inputs = data.X_train.shape[1]
    total = sum(task.cost for task in tasks)
    state = {"steps": 0.0, "cost": 0.0, "start": time.perf_counter()}
    found = {row.task for row in store.rows(recipe, data.checksum)}
    stored = sum(task.cost for task in tasks if task in found)
    progress(stored, total, f"{data.name}: {len(set(tasks) & found)} of {len(tasks)} runs stored")

    def on_result(row: Row, done: int, count: int) -> None:
        state["steps"] += row.result.steps
        state["cost"] += row.task.cost
        rate = state["steps"] / max(1e-9, time.perf_counter() - state["start"])
        progress(
            stored + state["cost"], total,
            f"{data.name}: run {done} of {count}, {rate / 1e6:.2f} million {unit} a second",
        )  # fmt: skip

    rows = run_sweep(tasks, recipe, data, store, jobs=jobs, dask=dask, on_result=on_result)
    seconds = time.perf_counter() - state["start"]
    compared = data.name == "mnist"
    cells = cells_of(rows, recipe, paper_table() if compared else {})
    return outcome(cells, rows, data, recipe, inputs, compared, state["steps"], seconds)


def outcome(
    cells: Sequence[Cell], rows: Sequence[Row], data: ImageData, recipe: Recipe, inputs: int,
    compared: bool, new_steps: float, seconds: float,
) -> Outcome:  # fmt: skip
    """Tables, claims and figures."""
    seeds, unit = sorted({row.task.seed for row in rows}), unit_of(recipe)
    columns = ("train_size", "epochs", "hidden", "model", "mean", "std", "best", "worst")
    values = [tuple(getattr(cell, name) for name in columns) for cell in cells]
    formats = dict.fromkeys(columns[4:], ".2f") | {
        "paper mean": ".2f", "paper std": ".2f", "difference": "+.2f", "in std": "+.1f"
    }  # fmt: skip
    note = f"Percent of the {len(data.y_test)} test images, over the seeds."
    table = Table(
        f"{data.name}_table",
        "Ours, in the form of the paper's table",
        columns,
        values,
        note,
        formats,
    )
    tables = [table]
    if compared:
        tables.insert(0, Table(
            "mnist_comparison", "Every cell beside the paper's",
            ("train_size", "epochs", "hidden", "model", "mean", "paper mean", "paper std",
             "difference", "in std", "within 2 std", "within 3 std or 1 point"),
            [(*cell.key, cell.mean, cell.paper_mean, cell.paper_std, cell.difference, cell.sigmas,
              cell.within_2_sigmas, cell.near) for cell in cells],
            "Differences of means in points and in the paper's printed standard deviations.",
            formats,
        ))  # fmt: skip
    tables.append(Table(
        f"{data.name}_smallest_width", "The smallest width whose QNN reaches the ANN of width 30",
        ("train_size", "epochs", "paper", "ours"), smallest_widths(cells),
    ))  # fmt: skip
    counts = {model: [parameters(h, model, inputs) for h in WIDTHS] for model in MODELS}
    tables.append(Table(
        f"{data.name}_parameters", "Parameters of the networks", ("hidden", *MODELS),
        [(h, *(counts[model][i] for model in MODELS)) for i, h in enumerate(WIDTHS)],
    ))  # fmt: skip
    figures = {
        f"{data.name}_accuracy": mnist_figures.accuracy_against_width(cells, compared),
        f"{data.name}_gain": mnist_figures.gain_against_width(cells, compared),
        f"{data.name}_parameters": mnist_figures.accuracy_against_parameters(cells, counts, WIDTHS),
    }
    if compared:
        figures["mnist_differences"] = mnist_figures.differences(cells)
    steps = sum(row.result.steps for row in rows)
    trained = sum(row.result.seconds for row in rows)
    title = "MNIST: the paper's table" if compared else f"{data.name}: the paper's grid, other data"
    summary = (
        f"{inputs} - h - 10 networks, SGD with {recipe.batch_size} "
        f"{'image' if recipe.batch_size == 1 else 'images'} a step, {len(rows)} runs, seeds "
        f"{_range(seeds)}, {steps / 1e6:.1f} million {unit}. Data: {data.name}, from "
        f"{data.source}."
    )
    if not compared:
        summary += " This is not MNIST: nothing here can be compared with the paper's numbers."
    return Outcome(
        data.name, title, summary, tables, claims_of(cells, compared), figures,
        {
            "data": data.name, "source": data.source, "checksum": data.checksum,
            "recipe": recipe.key(), "seeds": _range(seeds), "runs": len(rows),
            unit: steps, "seconds of training, all cores": trained,
            "seconds of this run": seconds,
            f"{unit} a second, this run": new_steps / seconds if new_steps else None,
            "processors": sorted({row.environment.cpu for row in rows}),
        },
    )  # fmt: skip


def unit_of(recipe: Recipe) -> str:
    """What is counted: a step visits one image, unless there are batches."""
    return "steps" if recipe.batch_size == 1 else "images visited"


def _range(seeds: Sequence[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
