"""`quadric reproduce`: the paper's results, each beside ours."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from quadric._utils.text import visible
from quadric.cli._console import fail, make_console, writable_directory
from quadric.cli._reproduce_tables import show

if TYPE_CHECKING:
    from quadric.datasets import ImageData
    from quadric.paper.experiments._outcome import Outcome
    from quadric.paper.sweep import Recipe, Store


class Experiment(StrEnum):
    """What can be reproduced."""

    all = "all"
    xor = "xor"
    clusters = "clusters"
    mnist = "mnist"
    timing = "timing"
    complexity = "complexity"
    theorem = "theorem"
    ablation = "ablation"


# about how long each takes on two cores, in seconds: (quick, full); mnist's runs are estimated
SECONDS = {
    "xor": (2, 2), "clusters": (20, 180), "timing": (6, 8), "complexity": (2, 6),
    "theorem": (8, 50), "ablation": (4, 20),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """The options of the command that experiments need."""

    full: bool
    seeds: int | None
    first_seed: int
    jobs: int
    dask: str | None
    store: Path
    data_dir: Path | None
    recipe: Recipe


def reproduce(
    experiment: Annotated[
        Experiment, typer.Argument(help="Which result; all of them by default.")
    ] = Experiment.all,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="All 180 cells of the MNIST table with 25 seeds and the paper's own numbers of "
            "epochs; or, in about two minutes, 135 cells with 3 seeds.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="The directory for the report.")] = Path("report"),
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds for xor (50) and mnist (3 or 25).")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, max=2**62, help="The first seed of mnist.")] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where MNIST's four idx files are (also QUADRIC_DATA).")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="The file that keeps finished runs [default: runs.sqlite in --out]."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Threads [default: all cores].")] = None,
    dask: Annotated[
        str | None, typer.Option(help="The address of a Dask scheduler that runs mnist's runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    scaling: Annotated[
        str, typer.Option(help="Pixels: centered (p/255 - 0.5) or unit.")
    ] = "centered",
    init: Annotated[str, typer.Option(help="Initial values, see Network.create.")] = "normal",
    init_scale: Annotated[
        float | None,
        typer.Option(help="Their standard deviation (normal: 0.005); of others a factor (1)."),
    ] = None,
    rate: Annotated[float, typer.Option(help="The learning rate.")] = 0.01,
    batch_size: Annotated[int, typer.Option(min=1, help="Images a step.")] = 1,
    order: Annotated[str, typer.Option(help="Of the images: new every epoch, or given.")] = "new",
    images: Annotated[str, typer.Option(help="The first N images, or N at random.")] = "first",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
) -> None:
    """Reproduce the paper's results, each beside ours, with a verdict; write a report to look at.

    Finished runs of the MNIST table are kept: stop it at any moment (Ctrl-C, a crash), give the
    same command again, and it goes on where it was. The options from --scaling on are choices that
    the paper leaves unstated; the defaults are those that match its table.
    """
    out = writable_directory(out)
    from quadric.errors import DatasetError, DivergenceError, StoreError
    from quadric.paper.report import write_report
    from quadric.paper.report._about import about_this_run
    from quadric.paper.sweep import Recipe

    if init_scale is None:
        init_scale = 0.005 if init == "normal" else 1.0
    try:
        recipe = Recipe(
            scaling=scaling, init=init, init_scale=init_scale, learning_rate=rate,
            batch_size=batch_size, order=order, images=images, dtype=dtype,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        fail(str(error))
    settings = Settings(
        full, seeds, first_seed, jobs or _cores(), dask, store or out / "runs.sqlite", data_dir,
        recipe,
    )  # fmt: skip
    names = [str(name) for name in Experiment if name is not Experiment.all]
    if experiment is not Experiment.all:
        names = [str(experiment)]
    start = time.perf_counter()
    outcomes: list[Outcome] = []
    problem, code = "", 0
    try:
        _run(names, settings, outcomes)
    except KeyboardInterrupt:
        problem, code = "Stopped.", 130
        if settings.store.exists():
            problem += (
                f" Finished runs of the MNIST table are kept in {settings.store}: the same command "
                "goes on from there."
            )
    except DivergenceError as error:
        problem, code = f"{error} (Choose a smaller --rate or --init-scale.)", 1
    except (DatasetError, StoreError, ImportError, OSError, MemoryError, RuntimeError) as error:
        problem, code = " ".join(str(error).split()) or type(error).__name__, 1
    if problem and not outcomes:
        _end(problem, code)
    about = about_this_run(time.perf_counter() - start, settings.jobs)
    if problem:
        missing = ", ".join(names[len(outcomes) :])
        about = {"incomplete": f"{missing} not finished ({problem})"} | about
    try:
        page = write_report(outcomes, out, about)
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror}. Choose another directory with --out.")
    if problem:
        _end(f"{problem} What was finished before is in {page}.", code)
    if as_json:
        typer.echo(json.dumps(_plain(outcomes, page), indent=2))
        return
    console = make_console()
    for outcome in outcomes:
        show(console, outcome)
    console.print(f"\nReport: {visible(str(page))}")


def _end(problem: str, code: int) -> NoReturn:
    if code == 1:
        fail(problem)
    make_console(stderr=True).print(f"\n{visible(problem)}")
    raise typer.Exit(code)


def _run(names: list[str], settings: Settings, outcomes: list[Outcome]) -> None:
    """Run them one after the other; `outcomes` has those that are finished, whatever happens."""
    stderr = make_console(stderr=True)
    images = _images(settings.data_dir, stderr) if {"mnist", "timing"} & set(names) else None
    _tell_estimate(names, settings, images, stderr)
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(), console=stderr, transient=True,
    )  # fmt: skip
    with contextlib.ExitStack() as held:
        store = None
        if "mnist" in names:  # opened first: a store that cannot be used is told at once
            from quadric.paper.sweep import Store

            store = held.enter_context(Store(settings.store))
        if stderr.is_terminal:
            held.enter_context(progress)
        for name in names:
            if not stderr.is_terminal:  # a log: one line each
                stderr.print(f"{name} ...")
            task = progress.add_task(name, total=None)

            def advance(done: float, total: float, text: str, task: Any = task) -> None:
                progress.update(task, completed=done, total=total, description=text)

            outcomes.append(_run_one(name, settings, images, store, advance))
            progress.update(task, visible=False)


def _run_one(
    name: str, settings: Settings, images: ImageData | None, store: Store | None,
    progress: Callable[..., None],
) -> Outcome:  # fmt: skip
    from quadric.paper import experiments

    if name == "xor":
        from quadric.paper.experiments import _xor as xor

        return xor.run(seeds=settings.seeds or 50, progress=progress)
    if name == "mnist":
        assert images is not None
        assert store is not None
        return experiments.mnist.run(
            images, store, recipe=settings.recipe, tasks=_tasks(settings, images),
            jobs=settings.jobs, dask=settings.dask, progress=progress,
        )  # fmt: skip
    if name == "timing":
        assert images is not None
        return experiments.timing.run(images, full=settings.full, progress=progress)
    module = getattr(experiments, name)
    outcome: Outcome = module.run(full=settings.full, jobs=settings.jobs, progress=progress)
    return outcome


def _images(data_dir: Path | None, stderr: Console) -> ImageData:
    """MNIST; or, said aloud, scikit-learn's digits where it cannot be had."""
    from quadric import datasets
    from quadric.errors import DatasetUnavailableError

    try:
        with stderr.status("looking for MNIST") if stderr.is_terminal else nullcontext():
            return datasets.mnist(data_dir)
    except DatasetUnavailableError as error:
        stderr.print(
            f"MNIST is not to be had: {visible(str(error))}\nscikit-learn's 8x8 digits are used "
            "instead, and labelled so; they cannot be compared with the paper's numbers.",
            style="yellow",
        )
        return datasets.digits()


def _tasks(settings: Settings, images: ImageData) -> Any:
    from quadric.paper.experiments import _mnist as mnist

    return mnist.tasks_for(
        images, full=settings.full, seeds=settings.seeds, first_seed=settings.first_seed
    )


def _tell_estimate(
    names: list[str], settings: Settings, images: ImageData | None, stderr: Console
) -> None:
    seconds = sum(float(SECONDS[name][settings.full]) for name in names if name in SECONDS)
    if "mnist" in names and images is not None:
        from quadric.paper.experiments import _mnist as mnist

        seconds += mnist.estimate(_tasks(settings, images), settings.recipe, settings.jobs)
    if seconds > 5:
        text = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} seconds"
        stderr.print(f"About {text} with {settings.jobs} threads, less what is stored already.")


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _plain(outcomes: list[Outcome], page: Path) -> dict[str, Any]:
    return {
        "experiments": [
            {
                "name": outcome.name,
                "title": outcome.title,
                "summary": outcome.summary,
                "claims": [claim.__dict__ for claim in outcome.claims],
                "tables": {
                    table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                    for table in outcome.tables
                },
                "facts": outcome.facts,
            }
            for outcome in outcomes
        ],
        "report": str(page),
        "command": sys.argv[1:],
    }
