"""`quadric explain`: what a model has learned."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.cli._console import fail, one_line, say
from quadric.cli._model_loading import Opened, open_model


def explain(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            readable=False, help="A table to rank the terms on; else by what the model knows."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many terms of each sort.")] = 5,
    precision: Annotated[int, typer.Option(min=1, max=17, help="Significant digits.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say what a model has learned: for each class its equation, its kind, its strongest terms."""
    with one_line():
        from quadric.explain import explain as explain_model

        opened = open_model(model, data)
        say(opened.notes)
        X, _ = inputs_from(opened)
        try:
            found = explain_model(opened.model, X, top=top, precision=precision)
        except (ValueError, TypeError) as error:
            fail(" ".join(str(error).split()))
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


def inputs_from(opened: Opened) -> tuple[Any, Any]:
    """Inputs and targets of the rows without a missing value; None for what the table lacks."""
    from quadric.errors import TableError
    from quadric.tables._features import complete_rows, features, labels, match, take

    schema, source = opened.schema, opened.source
    if schema is None or source is None:
        return None, None
    match(schema, source.columns)
    frame = source.read()
    X, y = features(schema, frame), None
    kept = complete_rows(X)
    if opened.labelled and schema.target in source.columns:
        y, there = labels(schema, frame)
        kept, y = kept & there, y[kept[there]]
    if not kept.any():
        raise TableError(f"{source.path} has no row in which every value is there.")
    if not kept.all():
        say([f"{int((~kept).sum())} rows with missing values are not used."])
    return take(X, kept), y
