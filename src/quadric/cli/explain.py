"""`quadric explain`: what a model has learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadric.cli.console import fail, one_line, say
from quadric.cli.models import load_model, needs_table

if TYPE_CHECKING:
    from quadric.tables import Schema

__all__ = ["explain", "inputs_from"]


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

        fitted, schema = load_model(model)
        X = None
        if data is not None:
            X, _ = inputs_from(data, needs_table(schema, model))
        try:
            found = explain_model(fitted, X, top=top, precision=precision)
        except (ValueError, TypeError) as error:
            fail(" ".join(str(error).split()))
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


def inputs_from(data: Path, schema: Schema) -> tuple[Any, Any]:
    """Inputs and targets (None where the table has none) of the rows without a missing value."""
    from quadric.errors import TableError
    from quadric.tables import open_table
    from quadric.tables.columns import complete_rows, features, labels, match, take

    source = open_table(data)
    match(schema, source.columns)
    frame = source.read()
    X, y = features(schema, frame), None
    kept = complete_rows(X)
    if schema.target in source.columns:
        y, there = labels(schema, frame)
        kept, y = kept & there, y[kept[there]]
    if not kept.any():
        raise TableError(f"{data} has no row in which every value is there.")
    if not kept.all():
        say([f"{int((~kept).sum())} rows with missing values are not used."])
    return take(X, kept), y
