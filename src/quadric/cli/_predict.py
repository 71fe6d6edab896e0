"""`quadric predict`: make predictions for a table."""

from pathlib import Path
from typing import Annotated

import typer

from quadric.cli._console import (
    errors_as_one_line,
    output_path,
    print_json,
    print_line,
    print_notes,
)
from quadric.cli._model_loading import open_model


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            readable=False, help="A model file from `quadric train`, or a saved Network."
        ),
    ],
    data: Annotated[
        Path, typer.Argument(readable=False, help="A CSV or Parquet file with the model's columns.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The CSV or Parquet file to write; - writes CSV to stdout."
        ),
    ] = Path("-"),
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    raw_csv: Annotated[
        bool,
        typer.Option(
            "--raw-csv",
            help="Do not add an apostrophe in front of text that looks like a spreadsheet formula.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as JSON (needs -o).")
    ] = False,
) -> None:
    """Make a prediction for every row of a table, in the same order.

    Columns are matched by name. A Network that was saved without column names uses the numeric
    columns in table order. Files are read and written in batches, so they may be larger than
    memory. The output file appears only when it is complete.
    """
    to_stdout = str(output) == "-"
    if to_stdout and as_json:
        raise typer.BadParameter("--json needs a file for the predictions: -o predictions.csv.")
    path = None if to_stdout else output_path(output, inputs=[model, data])
    with errors_as_one_line():
        from quadric.tables import predict as predict_table

        opened = open_model(model, data)
        schema, source = opened.schema, opened.source
        assert schema is not None
        assert source is not None
        done = predict_table(opened.model, schema, source, path, proba=proba, raw_csv=raw_csv)
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
                "notes": notes,
            }
        )
        return
    print_notes(notes)
    if path is not None:
        print_line(f"Predictions: {path} ({done.rows} rows)")
