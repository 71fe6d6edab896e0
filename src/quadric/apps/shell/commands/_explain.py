"""`quadric explain`: print the equations, strongest terms, importances or spectrum of a model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    as_options,
    errors_as_one_line,
    fail,
    print_json,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._inputs import (
    ModelArgument,
    TableFormat,
    inputs_and_labels,
    open_model,
)
from quadric.utils import counted, rounded_down, visible

MOST_CLASSES = 10  # other classes for which the nearest change of a row is searched
MOST_INPUTS = 15  # in the table of permutation importances


def explain(
    model: ModelArgument,
    data: Annotated[
        Path | None,
        typer.Argument(
            readable=False,
            help="A table used to rank the terms; by default, the ranking uses only the model.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of terms per equation, by default 10, or of eigenvectors per class, by "
            "default 3.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Print all terms, inputs and pairs of classes.")
    ] = False,
    spectrum: Annotated[
        bool,
        typer.Option(
            "--spectrum",
            help="Instead of equations, print the eigenvalues of each class's matrix Q and the "
            "strongest inputs of its eigenvectors.",
        ),
    ] = False,
    permutation: Annotated[
        bool,
        typer.Option(
            "--permutation",
            help="Also measure how much the score drops if an input is shuffled. "
            "Needs a table with the target.",
        ),
    ] = False,
    precision: Annotated[
        int, typer.Option(min=1, max=17, help="Number of significant digits.")
    ] = 3,
    row: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Explain one row of the table, counted from 1: its class, how far it is from "
            "another class, and the smallest change that leads to each of the others.",
        ),
    ] = None,
    *,
    table_format: TableFormat,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, by default with all terms.")
    ] = False,
) -> None:
    """Explain a model: equations, their strongest terms and the importance of each input."""
    if spectrum + permutation + (row is not None) > 1:
        raise typer.BadParameter("use only one of --spectrum, --permutation and --row.")
    with errors_as_one_line(ValueError, TypeError):
        opened = open_model(model, data, table_format)

        from quadric.explain import (
            explain as explain_model,
            permutation_importances,
            spectrum as spectrum_of,
        )

        print_notes(opened.notes)
        if spectrum:
            _print_spectrum(spectrum_of(opened.model), None if whole else top or 3, as_json)
            return
        if row is not None:
            _print_row(opened, row, as_json)
            return
        X, y = inputs_and_labels(opened)
        if permutation and y is None:
            fail("--permutation needs a table with the target: quadric explain MODEL DATA.")
        found = explain_model(
            opened.model,
            X,
            target=opened.target,
            top=None if whole or (as_json and top is None) else top or 10,
            precision=precision,
        )
        drops = []
        if permutation:
            drops = [one.to_dict() for one in permutation_importances(opened.model, X, y)]
        if as_json:
            more = {"permutation": drops} if permutation else {}
            print_json(found.to_dict() | {"note": as_options(found.note)} | more)
            return
    typer.echo(as_options(str(found)))
    if permutation:
        score = "accuracy" if opened.view.classes is not None else "R²"
        typer.echo()
        print_line(f"Drop of the {score} if an input is shuffled ({counted(len(y), 'row')})")
        _print_drops(drops, None if whole else MOST_INPUTS)


def _print_drops(drops: list[dict[str, Any]], most: int | None) -> None:
    """Print a line for each of the most important inputs."""
    names = [f"  {visible(drop['name'])}" for drop in drops[:most]]
    width = max(map(len, names))
    for name, drop in zip(names, drops, strict=False):
        typer.echo(f"{name:<{width}}  {drop['mean']:8.4f} ± {drop['std']:.4f}")
    if len(drops) > len(names):
        print_line(f"  ({counted(len(drops) - len(names), 'less important input')}; use --all)")


def _print_spectrum(found: Any, top: int | None, as_json: bool) -> None:
    """Print a spectrum with `top` eigenvectors per class, or with all of them and all classes."""
    shown = len(found.names) if top is None else top
    if as_json:
        print_json(found.to_dict(shown))
    else:
        typer.echo(as_options(found.text(shown, all_outputs=top is None)))


def _print_row(opened: tables.OpenedModel, number: int, as_json: bool) -> None:
    """Print the class of a row, its certified radius and its counterfactuals."""
    if opened.source is None:
        fail("--row needs a table: quadric explain MODEL DATA --row 17.")
    found = tables.nearest_classes(opened, number, MOST_CLASSES)
    others = len(opened.view.labels) - 1
    if others > MOST_CLASSES:
        print_notes([f"Only {MOST_CLASSES} of the {others} other classes are shown."])
    if as_json:
        print_json(found)
        return
    print_line(f"Row {number}: {found['predicted']} (probability {found['probability']:.3g})")
    if math.isinf(found["radius"]):
        print_line("No change of the numeric inputs changes the class.")
        return
    measured = f"{rounded_down(found['radius_in_inputs'])} in the units of the inputs"
    if found["units"] == "scaled":
        measured = f"{rounded_down(found['radius'])} standard deviations, or {measured},"
    print_line(f"No change smaller than {measured} changes the class.")
    for nearest in found["counterfactuals"]:
        nothing = f"{nearest['to']}: no such input was found"
        print_line(f"  {nearest['text'] if nearest['changes'] else nothing}")
