"""`quadric explain`: print the equations, strongest terms, importances or spectrum of a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    fail,
    print_json,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._model_loading import open_model
from quadric.apps.shell.commands._table_options import (
    DecimalOption,
    EncodingOption,
    ModelArgument,
    ThousandsOption,
    check_exists,
    table_format,
)
from quadric.utils import counted, visible

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
    encoding: EncodingOption = None,
    decimal: DecimalOption = ".",
    thousands: ThousandsOption = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, by default with all terms.")
    ] = False,
) -> None:
    """Explain a model: equations, their strongest terms and the importance of each input."""
    check_exists(model, data)
    if spectrum + permutation + (row is not None) > 1:
        raise typer.BadParameter("use only one of --spectrum, --permutation and --row.")
    with errors_as_one_line(ValueError, TypeError):
        opened = open_model(model, data, table_format(encoding, decimal, thousands))

        from quadric.explain import explain as explain_model, permutation_importances

        print_notes(opened.notes)
        if spectrum:
            _print_spectrum(opened.model, None if whole else top or 3, as_json)
            return
        if row is not None:
            from quadric.apps.shell.commands._explain_row import explain_row

            explain_row(opened, row, as_json=as_json)
            return
        X, y = opened.inputs_and_labels()
        if permutation and y is None:
            fail("--permutation needs a table with the target: quadric explain MODEL DATA.")
        found = explain_model(
            opened.model,
            X,
            target="y" if opened.schema is None else opened.schema.target,
            top=None if whole or (as_json and top is None) else top or 10,
            precision=precision,
        )
        drops = permutation_importances(opened.model, X, y) if permutation else []
        if as_json:
            more = {"permutation": [one.to_dict() for one in drops]} if permutation else {}
            print_json(found.to_dict() | more)
            return
    typer.echo(str(found))
    if permutation:
        from quadric.models import classes_of

        score = "R²" if classes_of(opened.model) is None else "accuracy"
        for line in ["", *_permutation_lines(drops, score, len(y), whole)]:
            print_line(line)


def _print_spectrum(model: Any, top: int | None, as_json: bool) -> None:
    """Print the spectrum with `top` eigenvectors per class, or with all of them and all classes."""
    from quadric.explain import spectrum

    found = spectrum(model)
    shown = len(found.names) if top is None else top
    if as_json:
        print_json(found.to_dict(shown))
    else:
        typer.echo(found.text(shown, all_outputs=top is None))


def _permutation_lines(drops: list[Any], score: str, count: int, whole: bool) -> list[str]:
    """The table of permutation importances; `score` names the score that drops."""
    shown = drops if whole else drops[:MOST_INPUTS]
    width = max(2 + len(visible(drop.name)) for drop in shown)
    lines = [f"Drop of the {score} if an input is shuffled ({counted(count, 'row')})"]
    for drop in shown:
        lines.append(f"{'  ' + visible(drop.name):<{width}}  {drop.mean:8.4f} ± {drop.std:.4f}")
    if len(drops) > len(shown):
        lines.append(f"  ({counted(len(drops) - len(shown), 'less important input')}; use --all)")
    return lines
