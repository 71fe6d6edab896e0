"""The paper's MNIST table: run the tasks that are not in the store, and compare all cells."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.datasets import ImageData
from quadric.paper.experiments._experiment import MODELS, Context, Outcome, Table, new_figure
from quadric.paper.experiments._mnist_cells import (
    Cell,
    cells_of,
    claims_of,
    paper_table,
    smallest_widths,
)
from quadric.paper.sweep import SIZES, WIDTHS, Recipe, Run, Task, run_sweep, table_tasks
from quadric.plotting._style import color_of, marker_of
from quadric.reference._counts import PARAMETERS

QUICK_SIZES = SIZES[:3]
PLACE = ("train_size", "epochs", "hidden", "model")
STATISTICS = ("mean", "std", "best", "worst")
COMPARISON = {  # attributes of a cell and their column headings
    "mean": "mean",
    "paper_mean": "paper mean",
    "paper_std": "paper std",
    "difference": "difference",
    "sigmas": "in std",
    "within_2_sigmas": "within 2 std",
    "near": "within 3 std or 1 point",
}
CROSS: dict[str, Any] = {  # the style of the paper's values
    "linestyle": "",
    "marker": "x",
    "markersize": 6,
    "markeredgewidth": 1.6,
}


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


def parameters(hidden: int, model: str, inputs: int = 784, outputs: int = 10) -> int:
    """Return the number of parameters of a cell's network."""
    return PARAMETERS["ann"](hidden, inputs) + PARAMETERS[model](outputs, hidden)


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
    total, done = (float(sum(task.cost for task in some)) for some in (tasks, stored))
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
        _figures(cells, data, compared),
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
        "Differences of means in percentage points and in units of the paper's std.",
        dict.fromkeys(COMPARISON.values(), ".2f") | {"difference": "+.2f", "in std": "+.1f"},
    )
    tables = [
        Table(
            f"{data.name}_table",
            "Our results in the form of the paper's table",
            (*PLACE, *STATISTICS),
            rows(STATISTICS),
            f"Accuracy on the {len(data.y_test)} test images, in percent, over the seeds.",
            dict.fromkeys(STATISTICS, ".2f"),
        ),
        Table(
            f"{data.name}_smallest_width",
            "The smallest width at which the QNN is at least as accurate as the ANN of width 30",
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


def _figures(cells: Sequence[Cell], data: ImageData, compared: bool) -> dict[str, Figure]:
    """Draw accuracy against width, the gain over the ANN, and accuracy against parameters."""
    ann = {cell.key[:3]: cell for cell in cells if cell.model == "ann"}
    fewest, most = (end(cell.epochs for cell in cells) for end in (min, max))

    def paper_gain(cell: Cell) -> float:
        return (cell.paper_mean or 0) - (ann[cell.key[:3]].paper_mean or 0)

    drawn = {
        "accuracy": _panels(
            cells,
            ("hidden neurons", lambda cell: cell.hidden),
            ("test accuracy, %", lambda cell: cell.mean),
            paper=(lambda cell: cell.paper_mean) if compared else None,
            error=lambda cell: cell.std or 0.0,
        ),
        "gain": _panels(
            [cell for cell in cells if cell.epochs == fewest],
            ("hidden neurons", lambda cell: cell.hidden),
            ("gain over ANN, percentage points", lambda cell: cell.mean - ann[cell.key[:3]].mean),
            paper=paper_gain if compared else None,
        ),
        "parameters": _panels(
            [cell for cell in cells if cell.epochs == most],
            ("parameters", lambda c: parameters(c.hidden, c.model, data.X_train.shape[1])),
            ("test accuracy, %", lambda cell: cell.mean),
        ),
    }
    if compared:
        drawn["differences"] = _differences(cells)
    return {f"{data.name}_{what}": figure for what, figure in drawn.items()}


def _panels(
    cells: Sequence[Cell],
    x: tuple[str, Callable[[Cell], float]],
    y: tuple[str, Callable[[Cell], float]],
    *,
    paper: Callable[[Cell], float | None] | None = None,
    error: Callable[[Cell], float] | None = None,
) -> Figure:
    """Draw a line for each model, with a panel for each number of epochs and each size.

    `x` and `y` contain the label of an axis and a function that returns the coordinate of a cell.
    `paper` returns the paper's y, drawn as a cross, and `error` the length of an error bar.
    """
    sizes, epochs = (sorted({cell.key[k] for cell in cells}) for k in (0, 1))
    figure = new_figure(2.9 * len(sizes) + 0.4, 2.3 * len(epochs) + 0.9)
    axes = figure.subplots(len(epochs), len(sizes), squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        for k, model in enumerate(MODELS):
            mine = [
                c
                for c in cells
                if (c.epochs, c.train_size, c.model) == (epochs[i], sizes[j], model)
            ]
            places, color = [x[1](cell) for cell in mine], color_of(k)
            ax.errorbar(
                places,
                [y[1](cell) for cell in mine],
                [error(cell) for cell in mine] if error else None,
                capsize=2,
                color=color,
                marker=marker_of(k),
                markersize=4,
                linewidth=1.3,
                label=model.upper(),
            )
            if paper:
                ax.plot(places, [paper(cell) for cell in mine], color=color, **CROSS)
        ax.set_title(f"{sizes[j]:,} images, {epochs[i]} epochs", fontsize=10)
        ax.grid(alpha=0.25)
    if paper:
        axes[0, 0].plot([], [], color="#222222", label="the paper", **CROSS)
    for ax in axes[-1]:
        ax.set_xlabel(x[0])
    figure.supylabel(y[0], fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _differences(cells: Sequence[Cell]) -> Figure:
    """Draw our means minus the paper's, in units of the paper's standard deviations."""
    sigmas = {cell.key: cell.sigmas for cell in cells if cell.sigmas is not None}
    columns, widths = sorted({key[:2] for key in sigmas}), sorted({key[2] for key in sigmas})
    figure = new_figure(0.62 * len(columns) + 1.6, 5.2)
    axes = figure.subplots(len(MODELS), 1, sharex=True)
    for ax, model in zip(axes, MODELS, strict=True):
        values = np.array(
            [
                [sigmas.get((*column, width, model), np.nan) for column in columns]
                for width in widths
            ]
        )
        image = ax.imshow(values, cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                color = "white" if abs(value) > 2 else "black"
                ax.text(j, i, f"{value:+.1f}", ha="center", va="center", fontsize=7, color=color)
        ax.set_yticks(range(len(widths)), [str(width) for width in widths])
        ax.set_ylabel(f"{model.upper()}\nhidden")
    labels = [f"{size:,}\n{count} ep." for size, count in columns]
    axes[-1].set_xticks(range(len(columns)), labels, fontsize=8)
    figure.colorbar(image, ax=axes, label="(ours - paper) / paper's std")
    return figure


def _unit(recipe: Recipe) -> str:
    """Return the unit of the counts: without mini-batches, a step visits one image."""
    return "steps" if recipe.batch_size == 1 else "images visited"
