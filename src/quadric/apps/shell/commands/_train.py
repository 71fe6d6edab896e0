"""`quadric train`: train a model on a table."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import TextColumn, TimeElapsedColumn

from quadric.apps.shell.commands._console import (
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
from quadric.apps.shell.commands._report import write_report
from quadric.apps.shell.commands._table_options import (
    TABLE_HELP,
    DecimalOption,
    EncodingOption,
    ThousandsOption,
    check_exists,
    column_names,
    default_output,
    table_format,
)
from quadric.apps.shell.tables._table_format import check_columns, is_stdin
from quadric.utils import counted, first_applying, visible

if TYPE_CHECKING:
    from quadric.apps.shell.tables import Trained

TaskOption = StrEnum("TaskOption", ["classification", "regression"])
KindOption = StrEnum("KindOption", ["quadratic", "reduced"])
ClassWeightOption = StrEnum("ClassWeightOption", ["balanced"])


def train(
    data: Annotated[Path, typer.Argument(readable=False, help=f"The table: {TABLE_HELP}.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
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
    kind: Annotated[
        KindOption | None,
        typer.Option(
            help="Kind of neurons in the last layer [default: chosen on held-out rows; with "
            "--hidden or --stream: quadratic]."
        ),
    ] = None,
    task: Annotated[
        TaskOption | None,
        typer.Option(
            help="The task [default: regression if the target contains fractions or more than 20 "
            "distinct integers, otherwise classification]."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to ignore, such as a,b; may be repeated.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Numeric columns to treat as categories, such as a,b; may be repeated."),
    ] = None,
    max_categories: Annotated[
        int, typer.Option(min=2, help="Ignore text columns with more distinct values than this.")
    ] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out for testing.")
    ] = 0.25,
    cv: Annotated[
        int | None,
        typer.Option(
            min=2, max=100, help="Number of cross-validation folds, instead of --test-size."
        ),
    ] = None,
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
    class_weight: Annotated[
        ClassWeightOption | None,
        typer.Option(help="Give all classes the same total weight, whatever their sizes."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="The L2 penalty [default: chosen on held-out rows; with --stream: 0.0001].",
        ),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of iterations of the solver.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read in batches, for files larger than memory.")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="With --stream: number of epochs [default: depends on the size]."),
    ] = None,
    buffer: Annotated[
        int | None, typer.Option(min=1, help="With --stream: number of rows shuffled together.")
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --stream: number of buffers between checkpoints [default: 10]."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --stream: continue from the last checkpoint.")
    ] = False,
    encoding: EncodingOption = None,
    decimal: DecimalOption = ".",
    thousands: ThousandsOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model on a table and compare it with two baselines.

    Numeric and categorical columns are detected, categories are one-hot encoded, and missing
    values are imputed. Notes on stderr list unused columns and imputed values.
    """
    widths = [] if hidden == "none" else comma_separated(hidden)
    problems = {
        f"--hidden must be none, or widths such as 30 or 30,20. Got {hidden!r}.": not all(
            width.isdecimal() and int(width) > 0 for width in widths
        ),
        "--cv cannot be combined with --stream.": stream and cv is not None,
        "--cv cannot be combined with --test.": test is not None and cv is not None,
        "--report needs rows that the model was not trained on. With --stream or --test-size 0, "
        "also use --test.": (
            report_page is not None and test is None and (stream or (test_size == 0 and cv is None))
        ),
        "--max-iter cannot be combined with --stream; use --epochs.": (
            stream and max_iter is not None
        ),
        "--resume, --epochs, --buffer and --checkpoint-every need --stream.": (
            not stream and (resume or epochs or buffer or checkpoint_every)
        ),
        "--stream reads the table several times, so it needs a file instead of -.": (
            stream and is_stdin(data)
        ),
        "only one of the two tables can be read from -.": (
            test is not None and is_stdin(data) and is_stdin(test)
        ),
    }
    if problem := first_applying(problems):
        raise typer.BadParameter(problem)
    check_exists(data, test)
    path = output_path(output or default_output(data, ".quadric"), inputs=[data, test])
    if report_page is not None:
        output_path(report_page, "--report", inputs=[data, test, path])
    stderr = make_console(stderr=True)
    with errors_as_one_line(
        hint=" Repeat the command with --resume to continue." if stream else ""
    ):
        from quadric.apps.shell.tables import open_table

        written = table_format(encoding, decimal, thousands)
        source = open_table(data, written)
        test_source = None if test is None else open_table(test, written)
        dropped = column_names(drop, source.columns)
        categories = column_names(categorical, source.columns)
        check_columns([target, *dropped, *categories], source.columns)  # before slow imports

        from quadric import files
        from quadric.apps.shell.tables import ColumnOptions, Settings, train as train_table

        options = ColumnOptions(
            target, task.value if task else None, dropped, categories, max_categories
        )
        settings = Settings(
            None if hidden is None else tuple(map(int, widths)),
            kind.value if kind else None,
            seed,
            test_size if test is None else 0.0,
            cv,
            verbose=stderr.is_terminal and not stream,
            class_weight=class_weight.value if class_weight else None,
            alpha=alpha,
            max_iter=max_iter,
        )
        if stream:
            from quadric.apps.shell.tables import (
                Checkpoint,
                Stream,
                checkpoint_path,
                train_stream,
            )

            checkpoint = Checkpoint(checkpoint_path(path))
            if resume and not os.path.lexists(checkpoint.path):
                print_notes(
                    [f"There is no checkpoint {checkpoint.path}; starting from the beginning."]
                )
            with progress_bar(
                "", TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()
            ) as progress:
                trained = train_stream(
                    source,
                    options,
                    settings,
                    Stream(buffer, epochs, checkpoint_every or Stream.every),
                    checkpoint,
                    resume=resume,
                    test=test_source,
                    progress=progress,
                )
        else:
            stderr.quiet = not stderr.is_terminal  # no progress messages in a log
            trained = train_table(
                source,
                options,
                settings,
                lambda text: stderr.print(f"{text} ...", style="dim"),
                test_source,
            )
        schema, report = trained.schema, trained.report
        extra = {"table": schema.to_dict(), "report": report, "data": data.name}
        if linear := trained.linear.to_dict():
            extra["linear"] = linear  # a baseline for `quadric evaluate`
        files.save(trained.model, path, extra=extra)
        if report_page is not None:
            write_report(path, test_source or source, report_page, seed, trained)
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


def _show(trained: Trained, path: Path) -> None:
    """Print the columns, the scores and the remarks."""
    from quadric.apps.shell.tables._evaluation import MODEL

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
        if "spread" in report and report["scores"][MODEL] is not None:
            folds = f"{report['scores'][MODEL]:.3f} ± {report['spread'][MODEL]:.3f}"
            console.print(f"{report['metric']} over the folds: {folds}")
    print_remarks(trained.remarks)
    console.print(f"Model: {visible(str(path))}")
