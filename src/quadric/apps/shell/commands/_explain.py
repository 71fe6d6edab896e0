"""`quadric explain`: print the equations, strongest terms, importances or spectrum of a model."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    as_options,
    errors_as_one_line,
    fail,
    output_path,
    print_json,
    print_line,
    print_notes,
    print_table,
)
from quadric.apps.shell.commands._inputs import (
    ModelArgument,
    TableFormat,
    check_written,
    inputs_and_labels,
    open_model,
)
from quadric.utils import counted, rounded, rounded_down, visible

MOST_CLASSES = 10  # other classes for which the nearest change of a row is searched
MOST_EQUATIONS = 3  # printed by `train --readable`
MOST_EFFECTS = 10  # inputs of a row that are set to a typical value


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
            "another class, and the smallest change that leads to each of the others. For numbers "
            "and networks that do not fold: the effect of each input.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Write a row for each term, all of them unless --top is given, to a .csv, .tsv or "
            ".parquet file; - writes CSV to stdout.",
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
    if csv is not None:
        if as_json or spectrum or permutation or row is not None:
            raise typer.BadParameter(
                "--csv cannot be combined with --json, --spectrum, --permutation or --row."
            )
        if not tables.is_stdin(csv):
            check_written(output_path(csv, "--csv", [model, data]))
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
            top=None if whole or (top is None and (as_json or csv)) else top or 10,
            precision=precision,
        )
        if csv is not None:
            tables.write_rows(None if tables.is_stdin(csv) else csv, found.rows())
            return
        if permutation:  # all rows, and for equations as well
            drops = permutation_importances(opened.model, X, y)
            found = replace(found, permutation=drops, n_rows=len(y))
        if as_json:
            print_json(found.to_dict() | {"note": as_options(found.note)})
            return
    typer.echo(as_options(str(found)))


def _print_spectrum(found: Any, top: int | None, as_json: bool) -> None:
    """Print a spectrum with `top` eigenvectors per class, or with all of them and all classes."""
    shown = len(found.names) if top is None else top
    if as_json:
        print_json(found.to_dict(shown))
    else:
        typer.echo(as_options(found.text(shown, all_outputs=top is None)))


def _print_row(opened: "tables.OpenedModel", number: int, as_json: bool) -> None:
    """Print the class of a row, its certified radius and its counterfactuals."""
    if opened.source is None:
        fail("--row needs a table: quadric explain MODEL DATA --row 17.")
    if opened.table[0].task != "classification" or len(opened.view.folded.layers) > 1:
        effects = tables.effects_of_row(opened, number)
        _print_effects(effects | _contributions(opened, number), as_json)
        return
    found = tables.nearest_classes(opened, number, MOST_CLASSES) | _contributions(opened, number)
    others = len(opened.view.labels) - 1
    if others > MOST_CLASSES:
        print_notes([f"Only {MOST_CLASSES} of the {others} other classes are shown."])
    if as_json:
        print_json(found)
        return
    print_line(f"Row {number}: {found['predicted']} (probability {found['probability']:.3g})")
    _print_radius(found)
    for nearest in found["counterfactuals"]:
        nothing = f"{nearest['to']}: no such input was found"
        print_line(f"  {nearest['text'] if nearest['changes'] else nothing}")
    _print_contributions(found)


def _contributions(opened: "tables.OpenedModel", number: int) -> dict[str, Any]:
    """The contributions of the inputs under one name, or nothing."""
    found = tables.contributions_of_row(opened, number)
    return {"contributions": found} if found else {}


def _print_contributions(found: dict[str, Any]) -> None:
    """Print what each input contributes to the score of a row."""
    if "contributions" not in found:
        return
    given = found["contributions"]
    print_line(
        f"{visible(given['score'])}: {rounded(given['value'])}, and {rounded(given['base'])} on "
        "average over the table. The difference, divided among the inputs (Shapley values):"
    )
    shown = given["inputs"][:MOST_EFFECTS]
    columns = (Column(name, justify="right") for name in ("this row", "contribution"))
    lines = [
        [visible(one["input"]), _written(one["value"]), f"{one['contribution']:+.4g}"]
        for one in shown
    ]
    print_table(Table("input", *columns), lines)
    if len(given["inputs"]) > len(shown):
        others = counted(len(given["inputs"]) - len(shown), "other input")
        print_line(f"({others}; --json lists all)")


def _print_radius(found: dict[str, Any]) -> None:
    """Print how far the numeric inputs of a row can move without a change of its class."""
    if math.isinf(found["radius"]):
        print_line("No change of the numeric inputs changes the class.")
        return
    measured = f"{rounded_down(found['radius_in_inputs'])} in the units of the inputs"
    if found["units"] == "scaled":
        measured = f"{rounded_down(found['radius'])} standard deviations, or {measured},"
    print_line(f"No change smaller than {measured} changes the class.")


def _print_effects(found: dict[str, Any], as_json: bool) -> None:
    """Print the prediction of a row, and those with one input at its typical value."""
    if as_json:
        print_json(found)
        return
    predicted, chances = found["predicted"], found["probabilities"]
    chance = f"{predicted} (probability {max(chances.values(), default=0):.3g})"
    number = f"{found['output']} = {_written(predicted)}"
    print_line(f"Row {found['row']}: {chance if chances else number}")
    if len(chances) > 2:
        shown = [f"{label} {chance:.3g}" for label, chance in list(chances.items())[:MOST_CLASSES]]
        print_line(f"Probabilities: {', '.join(shown)}")
    if "radius" in found:
        _print_radius(found)
    if found["no_certificate"]:
        print_line(f"No certificate: {as_options(found['no_certificate'])}")
    print_line("If one input had its typical value, the strongest effects first:")
    effects = found["effects"][:MOST_EFFECTS]
    lines = []
    for one in effects:
        other = f", predicts {one['predicted']}" if one["predicted"] != predicted else ""
        then = f"{one['output']:.3f}{other}" if chances else _written(one["output"])
        lines.append([one["input"], _written(one["value"]), _written(one["typical"]), then])
    names = ("this row", "typical", visible(found["output"]))
    columns = (Column(name, justify="right") for name in names)
    print_table(Table("input", *columns), [[visible(cell) for cell in line] for line in lines])
    if len(found["effects"]) > len(effects):
        others = counted(len(found["effects"]) - len(effects), "other input")
        print_line(f"({others}; --json lists all)")
    _print_contributions(found)


def _written(value: Any) -> str:
    """Return a value of an input, or a predicted number, as text."""
    if value is None or value != value:
        return "missing"
    return rounded(value) if isinstance(value, float) else str(value)


def print_readable(model: Any, target: str) -> None:
    """Print the equations of a sparse model with shares and selection frequencies."""
    from quadric.explain import explain as explain_model

    found, last = explain_model(model, target=target, top=None), model[-1]
    for item in found.classes[:MOST_EQUATIONS]:
        (constant, *names), *lines = item.table()
        print_line("")
        columns = (Column(name, justify="right") for name in names)
        cells = [[visible(cell) for cell in line] for line in lines]
        print_table(Table(Column(visible(constant)), *columns, box=None), cells)
    if len(found.classes) > MOST_EQUATIONS:
        others = counted(len(found.classes) - MOST_EQUATIONS, "other equation")
        print_line(f"({others}: quadric explain MODEL --all)")
    stable = last.stability_
    print_line("")
    print_line(
        f"selected: on halves of the rows. {counted(len(stable.stable), 'term')} with at least "
        f"{stable.threshold:.0%}; at most {stable.expected_false:.2g} false ones are expected. "
        f"The equation is optimal over all {last.certificate_.n_terms} terms."
    )
