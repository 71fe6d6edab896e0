"""`quadric predict`: what a model says of a table."""

import json
from pathlib import Path
from typing import Annotated

import typer

from quadric.cli._console import one_line, output_path, print_line, say
from quadric.cli._model_loading import open_model


def predict(
    model: Annotated[
        Path,
        typer.Argument(readable=False, help="A model file of `quadric train`, or of a Network."),
    ],
    data: Annotated[
        Path, typer.Argument(readable=False, help="A CSV or Parquet file with the model's columns.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A CSV file, or Parquet by its name; - is stdout."),
    ] = Path("-"),
    proba: Annotated[
        bool, typer.Option("--proba", help="Also the probability of each class.")
    ] = False,
    raw_csv: Annotated[
        bool,
        typer.Option(
            "--raw-csv",
            help="In CSV, no apostrophe in front of texts that a spreadsheet takes for formulas.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON (needs -o).")
    ] = False,
) -> None:
    """Predict a table: a row out for every row in, in the same order.

    Columns are matched by their names; a Network whose file names none takes the columns of
    numbers, in their order. The file is read and written in batches, so it may be larger than
    memory; the output is there whole at the end, or not at all.
    """
    to_stdout = str(output) == "-"
    if to_stdout and as_json:
        raise typer.BadParameter("--json needs a file for the predictions: -o predictions.csv.")
    path = None if to_stdout else output_path(output, inputs=[model, data])
    with one_line():
        from quadric.tables import predict as predict_table

        opened = open_model(model, data)
        schema, source = opened.schema, opened.source
        assert schema is not None
        assert source is not None
        done = predict_table(opened.model, schema, source, path, proba=proba, raw_csv=raw_csv)
    notes = opened.notes + done.notes(schema.target)
    if as_json:
        result = {
            "output": str(path), "rows": done.rows, "empty_rows": done.empty,
            "unused_columns": [name for name in done.extra if name != schema.target],
            "unknown_categories": {k: n for k, n in done.counts.unknown.items() if n},
            "missing": {k: n for k, n in done.counts.missing.items() if n},
            "notes": notes,
        }  # fmt: skip
        typer.echo(json.dumps(result, indent=2))
        return
    say(notes)
    if path is not None:
        print_line(f"{done.rows} predictions: {path}")
