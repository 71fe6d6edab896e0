"""`quadric predict`: make predictions for a table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    output_path,
    print_json,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._inputs import (
    DaskOption,
    KeepOption,
    ModelArgument,
    RawCsvOption,
    TableArgument,
    TableFormat,
    WorkersOption,
    check_written,
    cluster_of,
    column_names,
    open_model,
)
from quadric.utils import counted

KEPT = "Nothing was written; "


def predict(
    model: ModelArgument,
    data: TableArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .csv, .tsv or .parquet; - writes CSV to stdout. With --dask "
            "or --workers: a new directory.",
        ),
    ] = Path("-"),
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="With two classes: the probability from which the second class, in sorted order, "
            "is predicted, such as 0.2; or CLASS=0.2 for a class [default: the more probable one]."
        ),
    ] = None,
    keep: KeepOption = None,
    raw_csv: RawCsvOption = False,
    dask: DaskOption = None,
    workers: WorkersOption = None,
    *,
    table_format: TableFormat,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON (needs -o).")
    ] = False,
) -> None:
    """Make a prediction for every row of a table, in the same order.

    Columns are matched by name. A Network that was saved without column names uses the numeric
    columns in table order. Files are read and written in batches, so they may be larger than
    memory. The output file appears only when it is complete. If the table contains the target,
    the scores are printed to stderr.
    """
    path = None if str(output) == "-" else output
    if path is None and as_json:
        raise typer.BadParameter("--json needs a file for the predictions: -o predictions.csv.")
    on_workers = dask is not None or workers is not None
    if on_workers and (path is None or tables.is_stdin(data)):
        raise typer.BadParameter(
            "--dask and --workers need a table in files and a new directory for the predictions: "
            "-o predictions."
        )
    if path is not None and not on_workers:
        check_written(output_path(path, inputs=[model, data]))
    with errors_as_one_line():
        opened = open_model(model, data, table_format)
        schema, source = opened.table
        options: dict[str, Any] = {
            "proba": proba,
            "keep": column_names(keep, source.columns),
            "labeled": opened.labeled,
            "raw_csv": raw_csv,
            "threshold": threshold,
        }
        if on_workers and path is not None:
            with cluster_of(dask, workers, KEPT) as client:
                done = tables.predict_on_cluster(
                    client, opened.model, schema, source, path, **options
                )
        else:
            done = tables.predict(opened.model, schema, source, path, **options)
    notes = opened.notes + done.notes()
    if as_json:
        print_json(
            {
                "output": str(path),
                "rows": done.rows,
                "empty_rows": done.empty,
                "unused_columns": done.unused,
                "unknown_categories": dict(+done.unknown),
                "missing": dict(+done.missing),
                "outside_range": {"rows": done.rows_outside, "columns": dict(done.outside)},
                "threshold": asdict(done.threshold) if done.threshold else None,
                "scores": done.scores,
                "notes": notes,
            }
        )
        return
    print_notes(notes)
    if path is not None:
        print_line(f"Predictions: {path} ({counted(done.rows, 'row')})")
