"""`quadric train`: train a model on a table."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TextColumn, TimeElapsedColumn

import quadric
from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    check_options,
    comma_separated,
    errors_as_one_line,
    make_console,
    output_path,
    print_json,
    print_line,
    print_notes,
    progress_bar,
)
from quadric.apps.shell.commands._evaluate import print_evaluation, print_remarks
from quadric.apps.shell.commands._inputs import (
    TABLE_HELP,
    JsonOption,
    TableFormat,
    check_exists,
    column_names,
)
from quadric.apps.shell.tables._options import (
    ColumnOptions,
    Settings,
    Stream,
    check_columns,
    is_stdin,
    plain_stem,
)
from quadric.utils import counted, visible

# the options that help lists first; the others follow in the order of the signature
FIRST_OPTIONS = (
    *("data", "target", "output", "hidden", "kind", "task", "drop", "categorical"),
    *("most_categories", "seed", "test_size", "cv", "test", "report_page"),
)


def train(
    data: Annotated[Path, typer.Argument(readable=False, help=f"The table: {TABLE_HELP}.")],
    *,
    columns: ColumnOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The model file [default: the data file's name with the extension .quadric].",
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Widths of hidden layers, such as 30 or 30,20, or none for a model that is an "
            "equation [default: chosen on held-out rows; with --kind or --stream: none]."
        ),
    ] = None,
    settings: Settings,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", readable=False, help="A table to score the model on, instead of --test-size."
        ),
    ] = None,
    report_page: Annotated[
        Path | None,
        typer.Option("--report", help="Also write a report, an HTML page."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read in batches, for files larger than memory.")
    ] = False,
    streaming: Stream,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --stream: continue from the last checkpoint.")
    ] = False,
    table_format: TableFormat,
    as_json: JsonOption = False,
) -> None:
    """Train a model on a table and compare it with two baselines.

    Numeric and categorical columns are detected, categories are one-hot encoded, and missing
    values are imputed. Notes on stderr list unused columns and imputed values.
    """
    settings = replace(settings, hidden=_widths(hidden))
    untested = stream or (settings.test_size == 0 and settings.cv is None)
    check_options(
        {
            f"--cv cannot be combined with {'--stream' if stream else '--test'}.": (
                settings.cv is not None and (stream or test is not None)
            ),
            "--report needs rows that the model was not trained on. With --stream or --test-size "
            "0, also use --test.": report_page is not None and test is None and untested,
            "--max-iter cannot be combined with --stream; use --epochs.": (
                stream and settings.max_iter is not None
            ),
            "--resume, --epochs, --buffer and --checkpoint-every need --stream.": (
                not stream and (resume or streaming != Stream())
            ),
            "--stream reads the table several times, so it needs a file instead of -.": (
                stream and is_stdin(data)
            ),
            "only one of the two tables can be read from -.": (
                test is not None and is_stdin(data) and is_stdin(test)
            ),
        }
    )
    check_exists(data, test)
    path = output_path(output or Path(f"{plain_stem(data)}.quadric"), inputs=[data, test])
    if report_page is not None:
        output_path(report_page, "--report", inputs=[data, test, path])
    with errors_as_one_line(
        hint=" Repeat the command with --resume to continue." if stream else ""
    ):
        source = tables.open_table(data, table_format)
        test_source = None if test is None else tables.open_table(test, table_format)
        columns = replace(
            columns,
            drop=column_names(columns.drop, source.columns),
            categorical=column_names(columns.categorical, source.columns),
        )
        check_columns(  # before slow imports
            [columns.target, *columns.drop, *columns.categorical], source.columns
        )
        settings = replace(settings, test_size=settings.test_size if test is None else 0.0)
        if stream:
            checkpoint = tables.Checkpoint(tables.checkpoint_path(path))
            trained = _train_stream(
                source, columns, settings, streaming, checkpoint, resume, test_source
            )
        else:
            trained = _train_in_memory(source, columns, settings, test_source)
        schema, report = trained.schema, trained.report
        extra = {"table": schema.to_dict(), "report": report, "data": data.name}
        if linear := trained.linear.to_dict():
            extra["linear"] = linear  # a baseline for `quadric evaluate`
        quadric.save(trained.model, path, extra=extra)
        if report_page is not None:
            from quadric.apps.shell._report_page import write_report

            write_report(path, test_source or source, report_page, settings.seed, trained)
        if stream:
            checkpoint.remove()
    if as_json:
        print_json(
            {
                "model": str(path),
                "task": schema.task,
                "target": schema.target,
                "classes": list(schema.classes),
                "columns": [
                    {"name": column.name, "kind": column.kind} for column in schema.columns
                ],
                "left_out": schema.left_out,
                "rows": schema.rows,
                "notes": trained.notes,
                "remarks": trained.remarks,
                "selection": trained.selection,
                "findings": [asdict(finding) for finding in schema.findings],
                **report,
            }
        )
        return
    print_notes([note for note in trained.notes if note not in trained.remarks])
    _show(trained, path)
    if report_page is not None:
        print_line(f"Report: {report_page}")


def _widths(hidden: str | None) -> tuple[int, ...] | None:
    """Return the widths of the hidden layers, or None if they are not given."""
    if hidden is None:
        return None
    widths = [] if hidden == "none" else comma_separated(hidden)
    if not all(width.isdecimal() and int(width) > 0 for width in widths):
        raise typer.BadParameter(
            f"--hidden must be none, or widths such as 30 or 30,20. Got {hidden!r}."
        )
    return tuple(map(int, widths))


def _train_in_memory(
    source: tables.Source, columns: ColumnOptions, settings: Settings, test: tables.Source | None
) -> tables.Trained:
    """Train on a table in memory, with progress messages on a terminal."""
    stderr = make_console(stderr=True)
    settings = replace(settings, verbose=stderr.is_terminal)
    stderr.quiet = not stderr.is_terminal  # no progress messages in a log
    return tables.train(
        source, columns, settings, lambda text: stderr.print(f"{text} ...", style="dim"), test
    )


def _train_stream(
    source: tables.Source,
    columns: ColumnOptions,
    settings: Settings,
    streaming: Stream,
    checkpoint: tables.Checkpoint,
    resume: bool,
    test: tables.Source | None,
) -> tables.Trained:
    """Train on a table of any length, with a progress bar on a terminal."""
    if resume and not os.path.lexists(checkpoint.path):
        print_notes([f"There is no checkpoint {checkpoint.path}; starting from the beginning."])
    rows = TextColumn("{task.completed:,.0f} rows")
    with progress_bar("", rows, TimeElapsedColumn()) as progress:
        return tables.train_stream(
            source,
            columns,
            settings,
            streaming,
            checkpoint,
            resume=resume,
            test=test,
            progress=progress,
        )


def _show(trained: tables.Trained, path: Path) -> None:
    """Print the columns, the scores and the remarks."""
    console, report, schema = make_console(), trained.report, trained.schema
    kinds = [column.kind for column in schema.columns]
    words = {"number": "numeric", "boolean": "boolean", "category": "categorical"}
    columns = [
        counted(kinds.count(kind), f"{word} column")
        for kind, word in words.items()
        if kind in kinds
    ]
    console.print(
        f"{visible(schema.target)} ({schema.task}) from {', '.join(columns)}; trained on "
        f"{counted(report['trained'], 'row')}."
    )
    if chosen := [one for one in trained.selection if one.get("chosen")]:
        count = len({one["shape"] for one in trained.selection if "loss" in one})
        how = f", chosen among {count} by the loss on held-out rows" if count > 1 else ""
        console.print(f"Shape: {chosen[0]['shape']}{how}.")
    for one in trained.selection:
        if "skipped" in one:
            console.print(f"Not tried: {one['shape']}. {one['skipped']}")
    if trained.tested is None:
        console.print(f"No score: {report['how']}.")
    else:
        console.print(f"\nScores ({report['how']}):")
        print_evaluation(trained.tested.evaluation)
        if "spread" in report and report["scores"][tables.MODEL] is not None:
            folds = f"{report['scores'][tables.MODEL]:.3f} ± {report['spread'][tables.MODEL]:.3f}"
            console.print(f"{report['metric']} over the folds: {folds}")
    print_remarks(trained.remarks)
    console.print(f"Model: {visible(str(path))}")
