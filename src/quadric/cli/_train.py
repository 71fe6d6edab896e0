"""`quadric train`: a model from a table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from quadric._utils.text import visible
from quadric.cli._console import make_console, names, one_line, output_path, say

if TYPE_CHECKING:
    from quadric.tables import Trained


MOST_SHOWN_CLASSES = 15


class Task(StrEnum):
    """What is predicted."""

    classification = "classification"
    regression = "regression"


class Kind(StrEnum):
    """Of the neurons of the last layer."""

    quadratic = "quadratic"
    reduced = "reduced"


def train(
    data: Annotated[Path, typer.Argument(readable=False, help="A CSV or Parquet file.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The model file [default: the data's name.quadric]."),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Widths of hidden layers, as 30 or 30,20; none by default, so that the "
            "model can be explained."
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="The neurons of the last layer.")] = Kind.quadratic,
    task: Annotated[
        Task | None,
        typer.Option(
            help="[default: classification, or regression for a target of fractions or of "
            "more than 20 distinct whole numbers]."
        ),
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, as a,b.")] = None,
    categorical: Annotated[
        str | None, typer.Option(help="Columns of numbers that are categories, as a,b.")
    ] = None,
    max_categories: Annotated[
        int, typer.Option(min=2, help="Text with more distinct values is left out.")
    ] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is random.")] = 0,
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="The share of rows that is held out.")
    ] = 0.25,
    cv: Annotated[
        int | None, typer.Option(min=2, max=100, help="Cross-validate instead, with K folds.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read in batches: the file may exceed the memory.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="With --stream: passes [default: by size].")
    ] = None,
    buffer: Annotated[
        int | None, typer.Option(min=1, help="With --stream: rows that are shuffled together.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, help="With --stream: buffers between checkpoints.")
    ] = 10,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --stream: go on where a run was stopped.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model on a table, and say how good it is beside two baselines.

    Columns of numbers and of categories are told apart, categories become one input each, missing
    values are imputed. What is left out or filled in is said on stderr.
    """
    widths = _widths(hidden)
    if stream and cv is not None:
        raise typer.BadParameter("--cv reads the data many times; it does not go with --stream.")
    if not stream and (resume or epochs or buffer):
        raise typer.BadParameter("--resume, --epochs and --buffer are for --stream.")
    path = output_path(output or Path(data.name).with_suffix(".quadric"), inputs=[data])
    stderr = make_console(stderr=True)
    with one_line(), _interruptible(path if stream else None):
        from quadric import model_file
        from quadric.tables import Settings, Wishes, open_table
        from quadric.tables import train as train_table

        source = open_table(data)
        wishes = Wishes(
            target, task.value if task else None, names(drop), names(categorical), max_categories
        )
        settings = Settings(
            widths, kind.value, seed, test_size, cv, verbose=stderr.is_terminal and not stream
        )
        if stream:
            from quadric.tables.streaming import Checkpoint, Stream, checkpoint_path, train_stream

            checkpoint = Checkpoint(checkpoint_path(path))
            if resume and not os.path.lexists(checkpoint.path):
                say([f"there is no checkpoint {checkpoint.path}: starting at the beginning."])
            with _bar(stderr) as update:
                trained = train_stream(
                    source, wishes, settings, Stream(buffer, epochs, checkpoint_every), checkpoint,
                    resume=resume, progress=update,
                )  # fmt: skip
        else:
            trained = train_table(source, wishes, settings, tell=_teller(stderr))
        report = trained.report.to_dict()
        extra = {"table": trained.schema.to_dict(), "report": report, "data": data.name}
        model_file.save(trained.model, path, extra=extra)
        if stream:
            checkpoint.remove()
    if as_json:
        typer.echo(json.dumps(_plain(trained, path, report), indent=2))
        return
    say(trained.notes)
    _show(trained, path)


def _widths(hidden: str | None) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in names(hidden))
    except ValueError:
        widths = (0,)
    if any(width < 1 for width in widths):
        raise typer.BadParameter(f"--hidden takes widths as 30 or 30,20. Got {hidden!r}.")
    return widths


@contextmanager
def _interruptible(path: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        more = "" if path is None else " The same command with --resume goes on from there."
        make_console(stderr=True).print(f"\nStopped.{more}")
        raise typer.Exit(130) from None


def _teller(stderr: Console) -> Callable[[str], None]:
    def tell(text: str) -> None:
        if stderr.is_terminal:
            stderr.print(f"{text} ...", style="dim")

    return tell


@contextmanager
def _bar(stderr: Console) -> Iterator[Callable[[str, float, float | None], None]]:
    """A live bar on a terminal; in a log nothing, since the end tells all."""
    if not stderr.is_terminal:
        yield lambda text, done, total: None
        return
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(), console=stderr, transient=True,
    )  # fmt: skip
    with progress:
        task = progress.add_task("", total=None, rows="")

        def update(text: str, done: float, total: float | None) -> None:
            progress.update(
                task, description=text, completed=done, total=total, rows=f"{done:,.0f} rows"
            )

        yield update


def _plain(trained: Trained, path: Path, report: dict[str, Any]) -> dict[str, Any]:
    schema = trained.schema
    return {
        "model": str(path),
        "task": schema.task,
        "target": schema.target,
        "classes": list(schema.classes),
        "columns": [{"name": column.name, "kind": column.kind} for column in schema.columns],
        "left_out": schema.left_out,
        "rows": schema.rows,
        "notes": trained.notes,
        **report,
    }


def _show(trained: Trained, path: Path) -> None:
    console, report, schema = make_console(), trained.report, trained.schema
    kinds = [column.kind for column in schema.columns]
    counted = [
        f"{kinds.count(kind)} {word}{'s' if kinds.count(kind) > 1 else ''}"
        for kind, word in (("number", "number"), ("boolean", "boolean"))
        if kind in kinds
    ]
    if "category" in kinds:
        count = kinds.count("category")
        counted.append(f"{count} categor{'ies' if count > 1 else 'y'}")
    console.print(
        f"{visible(schema.target)} ({schema.task}) from {', '.join(counted)}; "
        f"{report.trained} rows to train on."
    )
    if report.scores:
        console.print(f"\n{report.metric} ({report.how}):")
        table = Table("")
        table.add_column(report.metric, justify="right")
        for name, score in report.scores.items():
            spread = report.spread.get(name)
            text = f"{round(score, 3) + 0.0:.3f}" + ("" if spread is None else f" ± {spread:.3f}")
            table.add_row(name, text)
        console.print(table)
    else:
        console.print(f"No score: {report.how}.")
    if report.error is not None:
        console.print(f"mean absolute error: {report.error:.4g}")
    if report.confusion is not None and len(schema.classes) <= MOST_SHOWN_CLASSES:
        console.print("\nTrue classes in rows, predicted ones in columns:")
        table = Table()
        for heading in ("", *schema.classes):
            table.add_column(visible(str(heading)), justify="right" if heading != "" else "left")
        for label, row in zip(schema.classes, report.confusion.counts.tolist(), strict=True):
            table.add_row(visible(str(label)), *map(str, row))
        console.print(table)
    console.print(f"Model: {visible(str(path))}")
