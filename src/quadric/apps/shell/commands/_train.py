"""`quadric train`: train a model on a table."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

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
from quadric.apps.shell.commands._evaluate import print_evaluation, print_remarks, print_threshold
from quadric.apps.shell.commands._explain import print_readable
from quadric.apps.shell.commands._inputs import (
    TABLE_HELP,
    DaskOption,
    JsonOption,
    TableFormat,
    WorkersOption,
    check_exists,
    cluster_of,
    column_names,
)
from quadric.utils import counted, listed, visible

KEPT = "The fit is stored after every iteration; to continue with --resume, "
# the options that help lists first; the others follow in the order of the signature
FIRST_OPTIONS = (
    *(
        "data",
        "target",
        "output",
        "equation",
        "readable",
        "terms",
        "hierarchy",
        "hidden",
        "kind",
        "task",
        "drop",
        "categorical",
    ),
    *("ordinal", "most_categories", "seed", "test_size", "holdout", "cv", "test", "report_page"),
)


def train(
    data: Annotated[Path, typer.Argument(readable=False, help=f"The table: {TABLE_HELP}.")],
    *,
    columns: tables.ColumnOptions,
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
            help="Widths of hidden layers, such as 30 or 30,20, or none for a single layer "
            "[default: chosen on held-out rows; with --kind or --stream: none]."
        ),
    ] = None,
    settings: tables.Settings,
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
    streaming: tables.Stream,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="With --stream, --dask or --workers: continue from the checkpoint."
        ),
    ] = False,
    dask: DaskOption = None,
    workers: WorkersOption = None,
    table_format: TableFormat,
    as_json: JsonOption = False,
) -> None:
    """Train a model on a table and compare it with two baselines.

    Numeric, categorical and ordinal columns are detected, categories are encoded, and missing
    values are imputed. Notes on stderr list unused, ordinal and imputed columns.
    """
    settings = replace(settings, hidden=_widths(hidden))
    on_workers = dask is not None or workers is not None
    untested = stream or (settings.test_size == 0 and settings.cv is None)
    check_options(
        {
            f"--cv cannot be combined with {'--stream' if stream else '--test'}.": (
                settings.cv is not None and (stream or test is not None)
            ),
            "--holdout cannot be combined with --cv or --test, which train the saved model on all "
            "rows.": settings.holdout and (settings.cv is not None or test is not None),
            "--equation cannot be combined with --hidden or --kind: it chooses a single layer.": (
                settings.equation and (settings.hidden is not None or settings.kind is not None)
            ),
            "--equation cannot be combined with --stream, whose model is a single quadratic layer "
            "unless --hidden is given.": settings.equation and stream,
            "--readable cannot be combined with --equation, --hidden, --kind, --max-iter or "
            "--stream.": (
                settings.readable
                and (
                    settings.equation
                    or stream
                    or any(v is not None for v in (hidden, settings.kind, settings.max_iter))
                )
            ),
            "--alpha must be above 0 with --readable.": settings.readable and settings.alpha == 0,
            "--terms and --hierarchy need --readable.": (
                not settings.readable
                and (settings.terms is not None or settings.hierarchy is not None)
            ),
            "--report needs scores. With --stream or --test-size 0, also use --test.": (
                report_page is not None and test is None and untested
            ),
            "--cost needs scores. With --test-size 0, also use --test.": (
                settings.cost and test is None and settings.test_size == 0 and settings.cv is None
            ),
            "--time cannot be combined with --cv, --test or --stream. Instead, write the later "
            "rows to a file of their own, and use --test.": (
                settings.time is not None
                and (stream or test is not None or settings.cv is not None)
            ),
            "--max-iter cannot be combined with --stream; use --epochs.": (
                stream and settings.max_iter is not None
            ),
            "--tails power cannot be combined with --stream, which reads the rows in batches.": (
                stream and settings.tails == "power"
            ),
            "--dask and --workers cannot be combined with --stream, --cv, --time, --tails power "
            "or a table on standard input. Without --stream, all rows are held by the workers.": (
                on_workers
                and (
                    stream
                    or settings.cv is not None
                    or settings.time is not None
                    or settings.tails == "power"
                    or tables.is_stdin(data)
                )
            ),
            "--dask cannot be combined with --workers.": dask is not None and workers is not None,
            "--resume needs --stream, --dask or --workers.": (
                resume and not stream and not on_workers
            ),
            "--epochs, --buffer and --checkpoint-every need --stream.": (
                not stream and streaming != tables.Stream()
            ),
            "--stream reads the table several times, so it needs a file instead of -.": (
                stream and tables.is_stdin(data)
            ),
            "only one of the two tables can be read from -.": (
                test is not None and tables.is_stdin(data) and tables.is_stdin(test)
            ),
        }
    )
    check_exists(data, test)
    path = output_path(output or Path(f"{tables.plain_stem(data)}.quadric"), inputs=[data, test])
    if report_page is not None:
        output_path(report_page, "--report", inputs=[data, test, path])
    with errors_as_one_line(
        hint=" Repeat the command with --resume to continue." if stream or on_workers else ""
    ):
        source = tables.open_table(data, table_format)
        test_source = None if test is None else tables.open_table(test, table_format)
        columns = replace(
            columns,
            drop=column_names(columns.drop, source.columns),
            categorical=column_names(columns.categorical, source.columns),
            missing_values=[
                one for text in columns.missing_values for one in tables.split_names(text)
            ],
        )
        tables.check_columns(  # before slow imports
            [columns.target, *columns.drop, *columns.categorical], source.columns
        )
        settings = replace(settings, test_size=settings.test_size if test is None else 0.0)
        if stream:
            checkpoint = tables.Checkpoint(tables.checkpoint_path(path))
            if resume and not os.path.lexists(checkpoint.path):
                print_notes(
                    [f"There is no checkpoint {checkpoint.path}; starting from the beginning."]
                )
            with progress_bar(
                "", TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()
            ) as progress:
                trained = tables.train_stream(
                    source,
                    columns,
                    settings,
                    streaming,
                    checkpoint,
                    resume=resume,
                    test=test_source,
                    progress=progress,
                )
        elif on_workers:
            settings = replace(settings, verbose=make_console(stderr=True).is_terminal)
            with cluster_of(dask, workers, KEPT):
                trained = tables.train_on_cluster(
                    source,
                    columns,
                    settings,
                    tables.checkpoint_path(path),
                    resume=resume,
                    test=test_source,
                )
        else:
            stderr = make_console(stderr=True)
            settings = replace(settings, verbose=stderr.is_terminal)
            stderr.quiet = not stderr.is_terminal  # no progress messages in a log
            trained = tables.train(
                source,
                columns,
                settings,
                tell=lambda text: stderr.print(f"{text} ...", style="dim"),
                test=test_source,
            )
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
                "tails": trained.tails,
                "threshold": trained.threshold.to_dict() if trained.threshold else None,
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


def _tails(facts: dict[str, Any]) -> str:
    """Return a sentence about columns with long tails."""
    columns = listed(map(visible, facts["columns"]), most=5)
    before, after = facts["kept_loss"], facts["transformed_loss"]
    if before is None or after is None:
        how = "transformed by a power" if facts["transformed"] else "kept, as there was no choice"
    elif facts["transformed"]:
        how = (
            f"transformed by a power, which reduced the loss on held-out rows from {before:.3g} to "
            f"{after:.3g}. Equations are in the transformed inputs, and there are no certificates; "
            "--tails keep avoids this"
        )
    else:
        how = f"kept: the loss on held-out rows is {before:.3g}, and {after:.3g} with powers"
    return f"Inputs with long tails: {columns}; {how}."


def _show(trained: tables.Trained, path: Path) -> None:
    """Print the columns, the scores and the remarks."""
    console, report, schema = make_console(), trained.report, trained.schema
    kinds = [column.kind for column in schema.columns]
    words = {"number": "numeric", "category": "categorical"}
    columns = [
        counted(kinds.count(kind), f"{words.get(kind, kind)} column")
        for kind in ("number", "boolean", "date", "category", "ordinal", "target-encoded")
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
    if trained.tails:
        console.print(_tails(trained.tails))
    if trained.tested is None:
        console.print(f"No score: {report['how']}.")
    else:
        console.print(f"\nScores ({report['how']}):")
        print_evaluation(trained.tested.evaluation)
        if "spread" in report and report["scores"][tables.MODEL] is not None:
            folds = f"{report['scores'][tables.MODEL]:.3f} ± {report['spread'][tables.MODEL]:.3f}"
            console.print(f"{report['metric']} over the folds: {folds}")
        if trained.cost_of_equation:
            console.print(trained.cost_of_equation)
    if hasattr(trained.model[-1], "terms_"):
        print_readable(trained.model, schema.target)
    print_threshold(trained.threshold)
    print_remarks(trained.remarks)
    console.print(f"Model: {visible(str(path))}")
