"""The paper's MNIST table: run what the store lacks, compare all cells with the paper's."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from quadric.datasets import ImageData
from quadric.paper.experiments import _mnist_figures as figures
from quadric.paper.experiments._experiment import MODELS, Context, Outcome, Table
from quadric.paper.experiments._mnist_cells import (
    Cell,
    cells_of,
    claims_of,
    paper_table,
    smallest_widths,
)
from quadric.paper.sweep import SIZES, WIDTHS, Recipe, Run, Task, run_sweep, table_tasks
from quadric.reference._counts import PARAMETERS

QUICK_SIZES = SIZES[:3]
QUICK_SEEDS, FULL_SEEDS = 3, 25
PLACE = ("train_size", "epochs", "hidden", "model")
STATISTICS = ("mean", "std", "best", "worst")
COMPARISON = {  # attributes of a cell and their headings
    "mean": "mean",
    "paper_mean": "paper mean",
    "paper_std": "paper std",
    "difference": "difference",
    "sigmas": "in std",
    "within_2_sigmas": "within 2 std",
    "near": "within 3 std or 1 point",
}


def tasks_for(context: Context) -> list[Task]:
    """Return the tasks of the table, or of the part that a quick run or small data allow."""
    assert context.images is not None
    count = context.seeds or (FULL_SEEDS if context.full else QUICK_SEEDS)
    available = len(context.images.X_train)
    return table_tasks(
        range(context.first_seed, context.first_seed + count),
        sizes=[size for size in (SIZES if context.full else QUICK_SIZES) if size <= available],
    )


def estimate(context: Context) -> float:
    """Estimate the seconds that all runs take."""
    per_epoch = sum(task.cost for task in tasks_for(context))
    return per_epoch * 1e-9 * context.recipe.epochs[-1] / context.jobs


def parameters(hidden: int, model: str, inputs: int = 784, outputs: int = 10) -> int:
    """Return the number of parameters of the network of a cell."""
    return PARAMETERS["ann"](hidden, inputs) + PARAMETERS[model](outputs, hidden)


def run(context: Context, tasks: Sequence[Task] | None = None) -> Outcome:
    """Run the tasks that the store lacks, and compare the table with the paper's.

    Without MNIST, the same grid runs on the images of the context and is not compared.

    Parameters
    ----------
    context : Context
        Its images and its store are required.
    tasks : sequence of Task, optional
        By default, `tasks_for` the context.
    """
    data, store, recipe = context.images, context.store, context.recipe
    assert data is not None
    assert store is not None
    tasks = tasks_for(context) if tasks is None else tasks
    stored = {run.task for run in store.runs(recipe, data.checksum)} & set(tasks)
    total, done = (float(sum(task.cost for task in some)) for some in (tasks, stored))
    context.progress(done, total, f"{data.name}: {len(stored)} of {len(tasks)} runs stored")
    steps, start = 0, time.perf_counter()

    def on_result(run: Run, count: int, wanted: int) -> None:
        nonlocal steps, done
        steps += run.result.steps
        done += run.task.cost
        rate = steps / max(1e-9, time.perf_counter() - start) / 1e6
        speed = f"{rate:.2f} million {_unit(recipe)} per second"
        context.progress(done, total, f"{data.name}: run {count} of {wanted}, {speed}")

    jobs, dask = context.jobs, context.dask
    runs = run_sweep(tasks, recipe, data, store, jobs=jobs, dask=dask, on_result=on_result)
    seconds = time.perf_counter() - start
    facts = {
        "seconds of this run": seconds,
        f"{_unit(recipe)} per second, this run": steps / seconds if steps else None,
    }
    return outcome(runs, data, recipe, facts)


def outcome(runs: Sequence[Run], data: ImageData, recipe: Recipe, facts: dict[str, Any]) -> Outcome:
    """Build tables, claims and figures."""
    compared, inputs = data.name == "mnist", data.X_train.shape[1]
    cells = cells_of(runs, recipe, paper_table() if compared else {})
    drawn = {
        f"{data.name}_accuracy": figures.accuracy_against_width(cells, compared),
        f"{data.name}_gain": figures.gain_against_width(cells, compared),
        f"{data.name}_parameters": figures.accuracy_against_parameters(
            cells, lambda cell: parameters(cell.hidden, cell.model, inputs)
        ),
    }
    if compared:
        drawn["mnist_differences"] = figures.differences(cells)
    steps, unit = sum(run.result.steps for run in runs), _unit(recipe)
    first, last = (end(run.task.seed for run in runs) for end in (min, max))
    seeds = str(first) if first == last else f"{first} to {last}"
    images = "1 image" if recipe.batch_size == 1 else f"{recipe.batch_size} images"
    return Outcome(
        data.name,
        "MNIST: the paper's table" if compared else f"{data.name}: the paper's grid, other data",
        f"{inputs} - h - 10 networks, SGD with {images} per step, {len(runs)} runs, seeds {seeds}, "
        f"{steps / 1e6:.1f} million {unit}. Data: {data.name}, from {data.source}."
        + ("" if compared else " This is not MNIST: do not compare it with the paper's numbers."),
        _tables(cells, data, compared),
        claims_of(cells, compared),
        drawn,
        {
            "data": data.name,
            "source": data.source,
            "checksum": data.checksum,
            "recipe": recipe.key(),
            "seeds": seeds,
            "runs": len(runs),
            unit: steps,
            "seconds of training, all cores": sum(run.result.seconds for run in runs),
            **facts,
            "processors": sorted({run.environment.cpu for run in runs}),
        },
    )


def _tables(cells: Sequence[Cell], data: ImageData, compared: bool) -> list[Table]:
    def rows(columns: Iterable[str]) -> list[tuple[Any, ...]]:
        return [tuple(getattr(cell, name) for name in (*PLACE, *columns)) for cell in cells]

    comparison = Table(
        "mnist_comparison",
        "Every cell compared with the paper",
        (*PLACE, *COMPARISON.values()),
        rows(COMPARISON),
        "Differences of means in points and in the paper's printed standard deviations.",
        dict.fromkeys(COMPARISON.values(), ".2f") | {"difference": "+.2f", "in std": "+.1f"},
    )
    tables = [
        Table(
            f"{data.name}_table",
            "Our results in the form of the paper's table",
            (*PLACE, *STATISTICS),
            rows(STATISTICS),
            f"Percent of the {len(data.y_test)} test images, over the seeds.",
            dict.fromkeys(STATISTICS, ".2f"),
        ),
        Table(
            f"{data.name}_smallest_width",
            "The smallest width whose QNN reaches the ANN of width 30",
            ("train_size", "epochs", "paper", "ours"),
            smallest_widths(cells),
        ),
        Table(
            f"{data.name}_parameters",
            "Parameters of the networks",
            ("hidden", *MODELS),
            [
                (h, *(parameters(h, model, data.X_train.shape[1]) for model in MODELS))
                for h in WIDTHS
            ],
        ),
    ]
    return [comparison, *tables] if compared else tables


def _unit(recipe: Recipe) -> str:
    """Name what is counted: without mini-batches, a step visits one image."""
    return "steps" if recipe.batch_size == 1 else "images visited"
