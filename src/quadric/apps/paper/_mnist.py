"""The paper's MNIST table: run the tasks that are not in the store, and compare all cells."""

import time
from collections.abc import Sequence
from typing import Any

from quadric.apps.paper._experiment import (
    MODELS,
    Claim,
    Context,
    Outcome,
    Table,
    Verdict,
    headline,
    samples_table,
)
from quadric.apps.paper._mnist_claims import (
    MEANS,
    PLACE,
    RULE,
    Accuracies,
    Cell,
    Row,
    Samples,
    accuracies_of,
    block_tests,
    cells_of,
    claims_of,
    comparisons,
    expected_within,
    paper_table,
    row_name,
    rows_below,
    smallest_width,
)
from quadric.apps.paper._mnist_figures import (
    CAPTIONS,
    block_means,
    by_block,
    descriptions,
    figures,
    findings,
    parameters,
)
from quadric.apps.paper._statistics import Comparison, expected_maximum, maximum_range
from quadric.apps.paper.sweep import SIZES, WIDTHS, Recipe, Run, Task, run_sweep, table_tasks
from quadric.datasets import ImageData

ROW_SEEDS = 25  # of a single row


def parse_row(text: str) -> Row:
    """Return the images, epochs and hidden neurons of a row of the table.

    >>> parse_row("600/5/10")
    (600, 5, 10)
    """
    axes = {"images": SIZES, "epochs": Recipe().epochs, "hidden neurons": WIDTHS}
    numbers = tuple(int(part) for part in text.split("/") if part.isdecimal())
    if len(numbers) != len(axes) or text.count("/") != len(axes) - 1:
        raise ValueError(f"--row must be images/epochs/hidden, such as 600/5/10. Got {text!r}.")
    if any(number not in axis for number, axis in zip(numbers, axes.values(), strict=True)):
        known = "; ".join(f"{name}: {', '.join(map(str, axis))}" for name, axis in axes.items())
        raise ValueError(f"the paper's table has no row {text}. It has {known}.")
    return numbers  # type: ignore[return-value]  # three of them


def tasks_for(context: Context) -> list[Task]:
    """Return the tasks of the table; fewer for one row, a quick run or a small data set."""
    if context.row:
        size, _, hidden = context.row
        return table_tasks(context.all_seeds(ROW_SEEDS), sizes=[size], widths=[hidden])
    return table_tasks(
        context.all_seeds(60 if context.full else 3),
        sizes=[
            size
            for size in (SIZES if context.full else SIZES[:3])
            if size <= len(context.data.X_train)
        ],
    )


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    per_epoch = sum(task.cost for task in tasks_for(context))
    return per_epoch * 1e-9 * context.recipe.epochs[-1] / context.jobs


def run(context: Context) -> Outcome:
    """Run the tasks that are not in the store, and compare the table with the paper's.

    If the images are not MNIST, the same grid is run on them, but not compared with the paper.
    """
    data, store, recipe, tasks = context.data, context.store, context.recipe, tasks_for(context)
    assert store is not None
    if (largest := max(task.size for task in tasks)) > len(data.X_train):
        raise RuntimeError(f"{data.name} has {len(data.X_train)} training images, not {largest}.")
    stored = {run.task for run in store.runs(recipe, data.checksum)} & set(tasks)
    total, done = sum(task.cost for task in tasks), sum(task.cost for task in stored)
    context.progress(done, total, f"{data.name}: {len(stored)} of {len(tasks)} runs stored")
    steps, start = 0, time.perf_counter()

    def on_result(run: Run, count: int, wanted: int) -> None:
        nonlocal steps, done
        steps += run.result.visited
        done += run.task.cost
        rate = steps / max(1e-9, time.perf_counter() - start) / 1e6
        context.progress(
            done,
            total,
            f"{data.name}: run {count} of {wanted}, {rate:.2f} million {_unit(recipe)} per second",
        )

    runs = run_sweep(
        tasks, recipe, data, store, jobs=context.jobs, dask=context.dask, on_result=on_result
    )
    seconds = time.perf_counter() - start
    cells = cells_of(runs, recipe, paper_table() if context.has_mnist else {})
    if context.row:
        return row_outcome(cells, data, context.row)
    return outcome(
        runs,
        cells,
        data,
        recipe,
        {
            "seconds of this run": seconds,
            f"{_unit(recipe)} per second, this run": steps / seconds if steps else None,
        },
    )


def outcome(
    runs: Sequence[Run],
    cells: Sequence[Cell],
    data: ImageData,
    recipe: Recipe,
    facts: dict[str, Any],
) -> Outcome:
    """Build tables, claims and figures."""
    compared, accuracies = data.name == "mnist", accuracies_of(runs, recipe)
    claims = [data_claim(data), *claims_of(cells, compared, accuracies)]
    steps, unit = sum(run.result.visited for run in runs), _unit(recipe)
    first, last = min(run.task.seed for run in runs), max(run.task.seed for run in runs)
    seeds = str(first) if first == last else f"{first} to {last}"
    images = "1 image" if recipe.batch_size == 1 else f"{recipe.batch_size} images"
    within = sum(bool(cell.is_within) for cell in cells)
    return Outcome(
        data.name,
        "MNIST: the paper's table" if compared else f"{data.name}: the paper's grid, other data",
        f"{data.X_train.shape[1]} - h - 10 networks, SGD with {images} per step, {len(runs)} runs, "
        f"seeds {seeds}, {steps / 1e6:.1f} million {unit}. Data: {data.name}, from {data.source}."
        + (
            f" {RULE}"
            if compared
            else " This is not MNIST: do not compare it with the paper's numbers."
        ),
        tables(cells, data, compared, accuracies),
        claims,
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
        findings(cells, compared),
        headline=headline(
            claims,
            MEANS,
            "mnist: Table IV, means that agree",
            "180 cells",
            f"{within} of {len(cells)} cells" if compared else "not MNIST",
        ),
        descriptions={f"{data.name}_{name}": text for name, text in descriptions(cells).items()},
    )


def row_outcome(cells: Sequence[Cell], data: ImageData, row: Row) -> Outcome:
    """Compare one row of the table with the paper's, without judging any claim."""
    size, epochs, hidden = row
    numbers = ("paper", "paper std", "ours", "std", "difference", "z")
    return Outcome(
        data.name,
        f"{data.name}: {size} images, {epochs} epochs, {hidden} hidden neurons",
        f"Test accuracy in percent, {cells[0].ours.runs} seeds.",
        [
            Table(
                f"{data.name}_row",
                f"Row {row_name(row)} of the paper's table",
                ("model", *numbers, "within 2"),
                [
                    (
                        cell.key[3].upper(),
                        *(cell.paper and cell.paper.mean, cell.paper and cell.paper.std),
                        *(cell.ours.mean, cell.ours.std),
                        *(cell.comparison and cell.comparison.difference, cell.z, cell.is_within),
                    )
                    for cell in cells
                    if cell.key[:3] == row
                ],
                "z is the difference of the means in standard errors of this difference.",
                dict.fromkeys(numbers[:4], ".2f") | dict.fromkeys(numbers[4:], "+.2f"),
            )
        ],
    )


def data_claim(data: ImageData) -> Claim:
    """Judge what the paper states about MNIST, from the files themselves."""
    train, test = len(data.y_train), len(data.y_test)
    pixels, classes = data.X_train.shape[1], len(set(data.y_train))
    is_mnist = data.name == "mnist"
    return Claim(
        "mnist-data",
        "60 000 and 10 000 images of 28 × 28 pixels",
        f"{train} training and {test} test images of {pixels} pixels, {classes} classes"
        + ("" if is_mnist else "; not judged: the images are not MNIST"),
        Verdict.of(
            (train, test, pixels, classes) == (60_000, 10_000, 28 * 28, 10), judged=is_mnist
        ),
        Verdict.HOLDS,
        "count",
    )


def _unit(recipe: Recipe) -> str:
    """Return the unit of the counts: without mini-batches, a step visits one image."""
    return "steps" if recipe.batch_size == 1 else "images visited"


SIDE_BY_SIDE = "mnist_side_by_side"  # the table in the paper's form
STATISTICS = ("mean", "std", "best", "worst")
PAPER = tuple(f"paper {name}" for name in STATISTICS)
PAIRS = (("qnn", "ann"), ("rpqnn", "ann"), ("qnn", "rpqnn"))
VERDICTS = {1: "better", 0: "undecided", -1: "worse"}


def tables(
    cells: Sequence[Cell], data: ImageData, compared: bool, accuracies: Accuracies
) -> list[Table]:
    """Return all tables; those with the paper's numbers only if the data are the paper's."""
    ours = {cell.key: cell.ours for cell in cells}
    theirs = {cell.key: cell.paper for cell in cells if cell.paper is not None}
    return [
        *([_comparison(cells), _not_reproduced(cells), _extremes(cells)] if compared else []),
        *([_rows_below(cells, accuracies), _side_by_side(cells)] if compared else []),
        _summary(cells, data.name),
        _blocks(accuracies, data.name),
        samples_table(
            f"{data.name}_table",
            "Our results in the form of the paper's table",
            PLACE,
            ours,
            f"Accuracy on the {len(data.y_test)} test images, in percent, over the seeds.",
            STATISTICS,
        ),
        _outperforms(ours, theirs, data.name),
        Table(
            f"{data.name}_smallest_width",
            "The smallest width at which the QNN is at least as accurate as the ANN of width 30",
            ("train_size", "epochs", "paper", "ours"),
            [
                (*row, smallest_width(theirs, *row), smallest_width(ours, *row))
                for row in sorted({key[:2] for key in ours})
            ],
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


def _comparison(cells: Sequence[Cell]) -> Table:
    return Table(
        "mnist_comparison",
        "Every cell compared with the paper",
        (
            *(*PLACE, *STATISTICS, *PAPER, "difference", "z", "within 2 standard errors"),
            *("in printed std", "within 2 printed std"),
        ),
        [
            (
                *cell.key,
                *(getattr(cell.ours, name) for name in STATISTICS),
                *(getattr(cell.paper, name, None) for name in STATISTICS),
                cell.comparison and cell.comparison.difference,
                cell.z,
                cell.is_within,
                cell.in_printed_std,
                cell.is_within_leniently,
            )
            for cell in cells
        ],
        "z is the difference of the means in standard errors of this difference, computed from "
        "both standard deviations and both numbers of runs. The last two columns are the lenient "
        "criterion: they compare the means by the spread of a single run.",
        dict.fromkeys((*STATISTICS, *PAPER), ".2f")
        | dict.fromkeys(("difference", "z", "in printed std"), "+.2f"),
    )


def _not_reproduced(cells: Sequence[Cell]) -> Table:
    columns = ("mean", "paper mean", "difference", "z")
    runs = cells[0].ours.runs
    expected, _ = expected_within(len(cells), runs)
    return Table(
        "mnist_not_reproduced",
        "Cells in which the means differ by more than 2 standard errors",
        (*PLACE, *columns),
        [
            (*cell.key, cell.ours.mean, cell.paper.mean, cell.comparison.difference, cell.z)
            for cell in cells
            if cell.is_within is False and cell.paper and cell.comparison
        ],
        f"Even with the authors' own program, about {len(cells) - expected:.0f} of the "
        f"{len(cells)} cells ({1 - expected / len(cells):.1%} with {runs} seeds) are expected.",
        {name: "+.2f" if name in ("difference", "z") else ".2f" for name in columns},
    )


def _side_by_side(cells: Sequence[Cell]) -> Table:
    """Return the table in the paper's form: a row for each width, the models side by side."""
    rows: dict[Row, list[Any]] = {}
    for cell in cells:
        numbers = (cell.paper and cell.paper.mean, cell.ours.mean, cell.z)
        rows.setdefault(cell.key[:3], []).extend(numbers)
    columns = [f"{name}{model.upper()}" for model in MODELS for name in ("paper ", "", "z ")]
    return Table(
        SIDE_BY_SIDE,
        "The paper's table and ours",
        (*PLACE[:3], *columns),
        [(*row, *numbers) for row, numbers in rows.items()],
        "Mean test accuracy in percent. z is the difference of the means in standard errors of "
        "this difference.",
        {name: "+.1f" if name.startswith("z") else ".2f" for name in columns},
    )


def _summary(cells: Sequence[Cell], name: str) -> Table:
    """Return the means over the widths for each block of images and epochs."""
    columns = [f"{name}{model.upper()}" for model in MODELS for name in ("", "paper ")]
    return Table(
        f"{name}_summary",
        "The table condensed: means over the widths",
        (*PLACE[:2], *columns, "cells", "within 2"),
        [
            (
                *block,
                *(mean for model in MODELS for mean in block_means(some, model)),
                len(some),
                sum(bool(cell.is_within) for cell in some) if some[0].paper else None,
            )
            for block, some in by_block(cells).items()
        ],
        "Mean test accuracy in percent, and how many cells are within 2 standard errors.",
        dict.fromkeys(columns, ".2f"),
    )


def _rows_below(cells: Sequence[Cell], accuracies: Accuracies) -> Table:
    return Table(
        "mnist_rpqnn_below_ann",
        "The rows in which the paper prints an RPQNN below the ANN",
        (*PLACE[:3], "paper, points", "ours, points", "standard error", "p (Holm)", "the RPQNN is"),
        [
            (*row, printed, test.difference, test.error, test.p, VERDICTS[test.sign])
            for row, (printed, test) in rows_below(cells, accuracies).items()
        ],
        "RPQNN minus ANN. Runs of one seed share their images and the order of the images, so they "
        "are compared in pairs: a paired t test over the seeds, with Holm's correction.",
        {
            "paper, points": "+.2f",
            "ours, points": "+.2f",
            "standard error": ".2f",
            "p (Holm)": ".2g",
        },
    )


def _blocks(accuracies: Accuracies, name: str) -> Table:
    return Table(
        f"{name}_blocks",
        "Which model is better, by numbers of images and epochs",
        ("models", *PLACE[:2], "difference", "standard error", "p (Holm)", "the first one is"),
        [
            (
                f"{better.upper()} - {worse.upper()}",
                *block,
                *(test.difference, test.error, test.p, VERDICTS[test.sign]),
            )
            for better, worse in PAIRS
            for block, test in block_tests(accuracies, better, worse).items()
        ],
        "Differences of the accuracies in percentage points, averaged over the five widths: a "
        "paired t test over the seeds, with Holm's correction over the blocks of a pair of models.",
        {"difference": "+.2f", "standard error": ".2f", "p (Holm)": ".2g"},
    )


def _extremes(cells: Sequence[Cell]) -> Table:
    columns = ("best in std", "worst in std", "paper best in std", "paper worst in std")
    low, high = maximum_range(25)
    return Table(
        "mnist_extremes",
        "Best and worst runs in standard deviations from the mean",
        (*PLACE, *columns, "printed values possible"),
        [
            (
                *cell.key,
                *cell.ours.extremes,
                *(cell.paper.extremes if cell.paper else (None, None)),
                cell.paper and cell.paper.is_possible,
            )
            for cell in cells
        ],
        f"The best of 25 normal draws is expected at +{expected_maximum(25):.2f} standard "
        f"deviations and lies between {low:+.2f} and {high:+.2f} in 95 % of cases; "
        "the worst at the negative values.",
        dict.fromkeys(columns, "+.2f"),
    )


def _outperforms(ours: Samples, theirs: Samples, name: str) -> Table:
    styles = {"difference": "+.2f", "t": "+.1f", "p (Holm)": ".2g"}
    measured = (*styles, "verdict")
    rows: list[tuple[Any, ...]] = []
    for better, worse in PAIRS:
        mine, printed = (comparisons(samples, better, worse) for samples in (ours, theirs))
        for row, test in mine.items():
            paper = printed.get(row)
            rows.append(
                (
                    f"{better.upper()} - {worse.upper()}",
                    *(*row, *_values(paper), *_values(test)),
                    paper and paper.difference * test.difference > 0,
                )
            )
    return Table(
        f"{name}_outperforms",
        "Which model is significantly better",
        ("models", *PLACE[:3], *(f"paper {column}" for column in measured), *measured, "same sign"),
        rows,
        "Welch's test of the difference of two means. The p values are adjusted by Holm's method "
        "over all rows of a pair of models; a difference is significant below 0.05.",
        {prefix + column: style for column, style in styles.items() for prefix in ("", "paper ")},
    )


def _values(test: Comparison | None) -> tuple[Any, ...]:
    return (test.difference, test.t, test.p, VERDICTS[test.sign]) if test else (None,) * 4
