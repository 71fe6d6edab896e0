"""`quadric report`: write a report of a model as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    output_path,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._inputs import (
    BootstrapSeedOption,
    LabeledTableArgument,
    ModelArgument,
    TableFormat,
    inputs_and_labels,
    open_model,
)
from quadric.utils import write_whole


def report(
    model: ModelArgument,
    data: LabeledTableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page to write [default: the model's name with .html]."
        ),
    ] = None,
    seed: BootstrapSeedOption = 0,
    *,
    table_format: TableFormat,
) -> None:
    """Write a self-contained HTML page about a model and its scores on a table.

    The page contains the scores with baselines and intervals, figures, the equation, the least
    certain rows, the columns, and how to use the model.
    """
    path = output_path(output or Path(model.name).with_suffix(".html"), inputs=[model, data])
    with errors_as_one_line():
        write_report(model, data, path, seed, table_format=table_format)
    print_line(f"Report: {path}")


def write_report(
    model: Path,
    table: Path | tables.Source,
    path: Path,
    seed: int = 0,
    trained: tables.Trained | None = None,
    table_format: TableFormat | None = None,
) -> None:
    """Score a saved model on a table and write the page.

    If the model was just trained, the page contains the scores and remarks of `train`.
    """
    from quadric import files
    from quadric.apps.shell._report_page import report_page

    opened = open_model(model, table, table_format)
    schema, source = opened.table
    about = files.info(model)
    about["table_hash"] = source.fingerprint()["content"]
    if trained is None:
        found = tables.evaluate_table(opened.model, schema, source, linear=opened.linear, seed=seed)
        how = f"the rows of {source.path.name}"
        print_notes(opened.notes + found.notes)
        remarks = found.remarks(balanced=opened.balanced)
    else:
        assert trained.tested is not None
        found, how, remarks = trained.tested, trained.how, trained.remarks
    page = report_page(
        model,
        opened.model,
        schema,
        source,
        found,
        about=about,
        points=inputs_and_labels(opened),
        how=how,
        remarks=remarks,
        notes=opened.notes + found.notes,
    )
    write_whole(path, page.encode(errors="replace"))
