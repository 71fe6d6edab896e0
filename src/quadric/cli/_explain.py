"""`quadric explain`: print the equations and strongest terms of a model."""

from pathlib import Path
from typing import Annotated

import typer

from quadric.cli._console import errors_as_one_line, print_json, print_notes
from quadric.cli._model_loading import open_model


def explain(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            readable=False,
            help="A table used to rank the terms; by default, the ranking uses only the model.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of terms to list for each type.")] = 5,
    precision: Annotated[
        int, typer.Option(min=1, max=17, help="Number of significant digits.")
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Explain a model: the equation, the surface and the strongest terms of each class."""
    with errors_as_one_line(ValueError, TypeError):
        from quadric.explain import explain as explain_model

        opened = open_model(model, data)
        print_notes(opened.notes)
        X, _ = opened.inputs_and_labels()
        found = explain_model(opened.model, X, top=top, precision=precision)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
