"""`quadric reproduce`: repeat the paper's experiments and compare the results with the paper's."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from quadric.apps import paper
from quadric.apps.shell.commands._console import (
    fail,
    make_console,
    print_json,
    writable_directory,
)
from quadric.apps.shell.commands._reproduce_screen import (
    LiveLines,
    plain_table,
    print_details,
    print_screen,
)
from quadric.errors import DatasetUnavailableError, DivergenceError, StoreError
from quadric.utils import counted, visible

ExperimentName = StrEnum(
    "ExperimentName",
    [
        "all",
        "xor",
        "clusters",
        "mnist",
        "timing",
        "complexity",
        "theorem",
        "ablation",
        "wide-layers",
        "fewer-layers",
        "cnn-head",
        "recurrent",
        "bilinear",
    ],
)


@dataclass(frozen=True)
class RecipeChanges:
    """Settings of a `Recipe` that are changed; None for those that are not."""

    scaling: Annotated[
        str | None, typer.Option(help="Pixel scaling: centered (p/255 - 0.5) or unit (p/255).")
    ] = None
    init: Annotated[str | None, typer.Option(help="Initialization; see Network.create.")] = None
    init_scale: Annotated[
        float | None,
        typer.Option(help="Standard deviation for normal, or a factor for the others (1)."),
    ] = None
    learning_rate: Annotated[float | None, typer.Option("--rate", help="The learning rate.")] = None
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images per step.")] = None
    order: Annotated[
        str | None, typer.Option(help="Shuffle the images every epoch (new), or not (given).")
    ] = None
    images: Annotated[
        str | None, typer.Option(help="Use the first N images, or a random N (first or random).")
    ] = None
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.")] = None

    def applied_to(self, recipe: paper.Recipe) -> paper.Recipe:
        """Return the recipe with the changes."""
        changes = {name: value for name, value in vars(self).items() if value is not None}
        if self.init not in (None, "normal"):
            changes.setdefault("init_scale", 1.0)
        return replace(recipe, **changes)


def reproduce(
    experiment: Annotated[
        ExperimentName,
        typer.Argument(help="The result or study to run; by default, all results."),
    ] = ExperimentName.all,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="Full: all 180 cells of the MNIST table with 60 seeds and the paper's numbers of "
            "epochs, and 5 seeds of bilinear. Quick: 135 cells with 3 seeds, in about two minutes "
            "on two cores.",
        ),
    ] = False,
    studies: Annotated[
        bool,
        typer.Option(
            "--studies",
            help="Run the four studies instead: wide-layers, fewer-layers, cnn-head, recurrent.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="The directory for the report.")] = Path("report"),
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of seeds for xor (50), mnist (3 or 60, --row 25), ablation (3 or 60), "
            "studies (10 or 60) and bilinear (1 or 5).",
        ),
    ] = None,
    first_seed: Annotated[
        int, typer.Option(min=0, max=2**62, help="First seed for mnist, studies and bilinear.")
    ] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Directory with MNIST's four idx files (or QUADRIC_DATA).")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="File that stores finished runs [default: runs.sqlite in --out]."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of threads or processes [default: all cores]."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler for mnist, studies and bilinear."),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(
            help="Run one row of the MNIST table and print it, without a report: "
            "images/epochs/hidden, such as 600/5/10."
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Print all claims and tables before the summary.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    recipe: Annotated[
        str,
        typer.Option(
            help="How the MNIST networks are trained. one-shuffle: N random images in one order, "
            "N(0, 0.006²). first-images: the first N, reshuffled every epoch, N(0, 0.005²)."
        ),
    ] = "one-shuffle",
    *,
    changes: RecipeChanges,
) -> None:
    """Repeat the paper's experiments, compare the results with the paper's, and write a report.

    Finished runs of the MNIST table, of the studies and of bilinear are kept: after Ctrl-C or a
    crash, the same command resumes. bilinear reproduces the results of another publication on MNIST
    and Fashion-MNIST, in about 15 minutes. The options from --recipe onward are choices that the
    paper does not specify. The default recipe matches its table, and the options after --recipe
    change single settings of a recipe. The studies always use the default recipe.
    """
    out = writable_directory(out)
    from joblib import cpu_count

    from quadric.checks import check_choice

    if studies and experiment is not ExperimentName.all:
        fail(f"--studies runs all studies. Omit it, or omit {str(experiment)!r}.")
    if row is not None and experiment is not ExperimentName.mnist:
        fail("--row is a row of the MNIST table: quadric reproduce mnist --row 600/5/10.")
    try:
        chosen_recipe = changes.applied_to(
            paper.RECIPES[check_choice("--recipe", recipe, paper.RECIPES)]
        )
        place = None if row is None else paper.parse_row(row)
    except (ValueError, TypeError) as error:
        fail(str(error))
    if place:  # no more epochs than the row has
        epochs = tuple(count for count in chosen_recipe.epochs if count <= place[1])
        chosen_recipe = replace(chosen_recipe, epochs=epochs)
    context = paper.Context(
        full, seeds, first_seed, jobs or cpu_count(), dask, chosen_recipe, row=place
    )
    store = store or out / "runs.sqlite"
    if experiment is ExperimentName.all:
        chosen = paper.STUDIES if studies else paper.EXPERIMENTS
    else:
        chosen = {str(experiment): (paper.EXPERIMENTS | paper.STUDIES | paper.BILINEAR)[experiment]}
    start = time.perf_counter()
    outcomes: list[paper.Outcome] = []
    problem, code = "", 1
    try:
        outcomes.extend(_run(chosen, context, store, data_dir))  # keeps those before an error
    except KeyboardInterrupt:
        kept = f" Finished runs are kept in {store}: the same command resumes from there."
        problem, code = "Stopped." + (kept if store.exists() else ""), 130
    except DivergenceError as error:
        problem = f"{error} (Choose a smaller --rate or --init-scale.)"
    except (StoreError, ImportError, OSError, MemoryError, RuntimeError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
    if problem and not outcomes:
        _end(problem, code)
    if place and not problem:
        _print_row(outcomes[0], as_json=as_json)
        return
    about = paper.about_this_run(time.perf_counter() - start, context.jobs, full=full)
    if problem:
        missing = ", ".join(list(chosen)[len(outcomes) :])
        about = {"incomplete": f"{missing} not finished ({problem})"} | about
    try:
        page = paper.write_report(outcomes, out, about)
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror}. Choose another directory with --out.")
    if problem:
        _end(f"{problem} The finished experiments are in {page}.", code)
    if as_json:
        print_json(
            {
                "experiments": [_plain(outcome) for outcome in outcomes],
                "report": str(page),
                "command": sys.argv[1:],
            }
        )
        return
    judged = paper.judge(claim for outcome in outcomes for claim in outcome.claims)
    if details:
        print_details(outcomes, judged)
    data = " and ".join(sorted({one.facts["data"] for one in outcomes if "data" in one.facts}))
    with_data = f", with {data}" if data else ""
    took = f"{'Full' if full else 'Quick'} run of {counted(len(outcomes), 'experiment')}{with_data}"
    print_screen(outcomes, judged, page, f"{took}, in {about['took']}")


def _print_row(outcome: paper.Outcome, *, as_json: bool) -> None:
    """Print one row of the MNIST table."""
    if as_json:
        print_json({"experiments": [_plain(outcome)], "command": sys.argv[1:]})
        return
    console = make_console()
    console.print(outcome.title)
    console.print(outcome.summary)
    console.print(plain_table(outcome.tables[0]))
    console.print(outcome.tables[0].note)


def _end(problem: str, code: int) -> NoReturn:
    if code == 1:
        fail(problem)
    make_console(stderr=True).print(f"\n{visible(problem)}")
    raise typer.Exit(code)


def _run(
    chosen: Mapping[str, paper.Experiment],
    context: paper.Context,
    store: Path,
    data_dir: Path | None,
) -> Iterator[paper.Outcome]:
    """Run the experiments one after another, with their progress on stderr."""
    stderr = make_console(stderr=True)
    context = _with_images(context, chosen, data_dir, stderr)
    estimates = {name: experiment.estimate(context) for name, experiment in chosen.items()}
    seconds = sum(estimates.values())
    if seconds > 5:
        text = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} seconds"
        stderr.print(
            f"About {text} with {counted(context.jobs, 'thread')}, less if runs are already stored."
        )
        stderr.print("The first run after an installation compiles for up to a minute more.")
    with contextlib.ExitStack() as stack:
        if any(experiment.needs_store for experiment in chosen.values()):
            # opened first, so that an unusable store is reported immediately
            context = replace(context, store=stack.enter_context(paper.Store(store)))
        lines = LiveLines(estimates)
        stack.enter_context(lines.bars)
        for name, experiment in chosen.items():
            with lines.running(name) as progress:
                yield experiment.run(replace(context, progress=progress))


def _with_images(
    context: paper.Context,
    chosen: Mapping[str, paper.Experiment],
    data_dir: Path | None,
    stderr: Console,
) -> paper.Context:
    """Load the images that the experiments need; warn about those that cannot be downloaded.

    scikit-learn's digits replace MNIST, and Fashion-MNIST is left out.
    """
    from quadric import datasets

    if any(experiment.needs_images for experiment in chosen.values()):
        try:
            with stderr.status("looking for MNIST"):  # shown only on a terminal
                context = replace(context, images=datasets.mnist(data_dir))
        except DatasetUnavailableError as error:
            stderr.print(
                f"MNIST is not available: {visible(str(error))}\nUsing scikit-learn's 8x8 digits "
                "instead. The results are labeled accordingly and cannot be compared with the "
                "paper's.",
                style="yellow",
            )
            context = replace(context, images=datasets.digits())
    if any(experiment.needs_fashion for experiment in chosen.values()):
        try:
            context = replace(context, fashion=datasets.fashion_mnist(data_dir))
        except DatasetUnavailableError as error:
            stderr.print(
                f"Fashion-MNIST is not available and is left out: {visible(str(error))}",
                style="yellow",
            )
    return context


def _plain(outcome: paper.Outcome) -> dict[str, Any]:
    """Return the outcome as JSON values."""
    return {
        "name": outcome.name,
        "title": outcome.title,
        "summary": outcome.summary,
        "claims": [
            {"text": paper.statements()[claim.id].claim, **asdict(claim)}
            for claim in outcome.claims
        ],
        "findings": outcome.findings,
        "citation": outcome.citation,
        "tables": {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in outcome.tables
        },
        "facts": outcome.facts,
        "headline": asdict(outcome.headline) if outcome.headline else None,
    }
