"""`quadric predict`: make predictions for a table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

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
    KeepOption,
    ModelArgument,
    RawCsvOption,
    TableArgument,
    TableFormat,
    check_written,
    column_names,
    open_model,
)
from quadric.utils import counted


def predict(
    model: ModelArgument,
    data: TableArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .csv, .tsv or .parquet; - writes CSV to stdout.",
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
    if path is not None:
        check_written(output_path(path, inputs=[model, data]))
    with errors_as_one_line():
        opened = open_model(model, data, table_format)
        schema, source = opened.table
        done = tables.predict(
            opened.model,
            schema,
            source,
            path,
            proba=proba,
            keep=column_names(keep, source.columns),
            labeled=opened.labeled,
            raw_csv=raw_csv,
            threshold=threshold,
        )
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
