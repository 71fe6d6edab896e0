"""`quadric report`: write a report of a model as an HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    output_path,
    print_line,
)
from quadric.apps.shell.commands._inputs import (
    BootstrapSeedOption,
    LabeledTableArgument,
    ModelArgument,
    TableFormat,
    check_exists,
)


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

    The page contains the scores with baselines and intervals, figures, the equation, the
    contributions of the inputs, the least certain rows, the columns, and how to use the model.
    """
    path = output_path(output or Path(model.name).with_suffix(".html"), inputs=[model, data])
    check_exists(model, data)
    with errors_as_one_line():
        from quadric.apps.shell._report_page import write_report

        write_report(model, data, path, seed, table_format=table_format)
    print_line(f"Report: {path}")
