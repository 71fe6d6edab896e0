"""The paper's MNIST table: run the tasks that are not in the store, and compare all cells."""

import time
from collections.abc import Sequence
from typing import Any

from quadric.apps.paper.claims import Claim, Verdict
from quadric.apps.paper.experiments._experiment import Context, Outcome
from quadric.apps.paper.experiments._mnist_cells import cells_of, paper_table
from quadric.apps.paper.experiments._mnist_claims import RULE, claims_of
from quadric.apps.paper.experiments._mnist_figures import CAPTIONS, figures
from quadric.apps.paper.experiments._mnist_tables import tables
from quadric.apps.paper.sweep import SIZES, Recipe, Run, Task, run_sweep, table_tasks
from quadric.datasets import ImageData

QUICK_SIZES = SIZES[:3]


def tasks_for(context: Context) -> list[Task]:
    """Return the tasks of the table; fewer for a quick run or a small data set."""
    assert context.images is not None
    count = context.seeds or (25 if context.full else 3)
    return table_tasks(
        range(context.first_seed, context.first_seed + count),
        sizes=[
            size
            for size in (SIZES if context.full else QUICK_SIZES)
            if size <= len(context.images.X_train)
        ],
    )


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    per_epoch = sum(task.cost for task in tasks_for(context))
    return per_epoch * 1e-9 * context.recipe.epochs[-1] / context.jobs


def run(context: Context, tasks: Sequence[Task] | None = None) -> Outcome:
    """Run the tasks that are not in the store, and compare the table with the paper's.

    If the images are not MNIST, the same grid is run on them, but not compared with the paper.

    Parameters
    ----------
    context : Context
        Its images and its store are required.
    tasks : sequence of Task, optional
        By default, the tasks that `tasks_for` returns.
    """
    data, store, recipe = context.images, context.store, context.recipe
    assert data is not None
    assert store is not None
    tasks = tasks_for(context) if tasks is None else tasks
    stored = {run.task for run in store.runs(recipe, data.checksum)} & set(tasks)
    total, done = sum(task.cost for task in tasks), sum(task.cost for task in stored)
    context.progress(done, total, f"{data.name}: {len(stored)} of {len(tasks)} runs stored")
    steps, start = 0, time.perf_counter()

    def on_result(run: Run, count: int, wanted: int) -> None:
        nonlocal steps, done
        steps += run.result.steps
        done += run.task.cost
        rate = steps / max(1e-9, time.perf_counter() - start) / 1e6
        context.progress(
            done,
            total,
            f"{data.name}: run {count} of {wanted}, {rate:.2f} million {_unit(recipe)} per second",
        )

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
    steps, unit = sum(run.result.steps for run in runs), _unit(recipe)
    first, last = min(run.task.seed for run in runs), max(run.task.seed for run in runs)
    seeds = str(first) if first == last else f"{first} to {last}"
    images = "1 image" if recipe.batch_size == 1 else f"{recipe.batch_size} images"
    return Outcome(
        data.name,
        "MNIST: the paper's table" if compared else f"{data.name}: the paper's grid, other data",
        f"{inputs} - h - 10 networks, SGD with {images} per step, {len(runs)} runs, seeds {seeds}, "
        f"{steps / 1e6:.1f} million {unit}. Data: {data.name}, from {data.source}."
        + (
            f" {RULE}"
            if compared
            else " This is not MNIST: do not compare it with the paper's numbers."
        ),
        tables(cells, data, compared),
        [data_claim(data), *claims_of(cells, compared)],
        figures(cells, data, compared),
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
        {f"{data.name}_{name}": caption for name, caption in CAPTIONS.items()},
    )


def data_claim(data: ImageData) -> Claim:
    """Judge what the paper states about MNIST, from the files themselves."""
    train, test = len(data.y_train), len(data.y_test)
    pixels, classes = data.X_train.shape[1], len(set(data.y_train))
    found = f"{train} training and {test} test images of {pixels} pixels, {classes} classes"
    holds = (train, test, pixels, classes) == (60_000, 10_000, 28 * 28, 10)
    is_mnist = data.name == "mnist"
    return Claim(
        "mnist-data",
        "60 000 and 10 000 images of 28 × 28 pixels",
        found if is_mnist else f"{found}; not judged: the images are not MNIST",
        Verdict.of(holds if is_mnist else None),
        Verdict.HOLDS,
        "count",
    )


def _unit(recipe: Recipe) -> str:
    """Return the unit of the counts: without mini-batches, a step visits one image."""
    return "steps" if recipe.batch_size == 1 else "images visited"
