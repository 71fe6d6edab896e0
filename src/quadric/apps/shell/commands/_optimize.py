"""`quadric optimize`: the settings of the inputs with the best prediction, with a proven gap."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    check_options,
    errors_as_one_line,
    print_json,
    print_line,
    print_notes,
    print_table,
)
from quadric.apps.shell.commands._inputs import (
    JsonOption,
    ModelArgument,
    TableArgument,
    TableFormat,
    open_model,
)
from quadric.utils import rounded, visible


def optimize(
    model: ModelArgument,
    data: TableArgument,
    maximize: Annotated[
        bool, typer.Option("--maximize/--minimize", help="Find the largest or smallest score.")
    ] = True,
    of: Annotated[
        str | None,
        typer.Option("--class", help="The class whose score is optimized; needed for classifiers."),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(help="Hold an input at a value, such as temperature=80; may be repeated."),
    ] = None,
    within: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            help="A table with the columns input, low and high: limits for some of the inputs.",
        ),
    ] = None,
    extrapolate: Annotated[
        bool,
        typer.Option("--extrapolate", help="Allow limits outside the range of the table."),
    ] = False,
    *,
    table_format: TableFormat,
    as_json: JsonOption = False,
) -> None:
    """Find the settings of the inputs with the best prediction.

    The inputs stay within the range of the table. The result is the global optimum of the model up
    to the printed gap, which is proven. Every combination of categories is tried.
    """
    pairs = [one.partition("=") for one in fixed or ()]
    check_options(
        {f"--fixed needs INPUT=VALUE. Got {one!r}.": "=" not in one for one in fixed or ()}
    )
    with errors_as_one_line(ValueError, TypeError):
        opened = open_model(model, data, table_format)
        labels = {str(label): label for label in opened.view.labels.tolist()}
        chooses = opened.view.classes is not None
        check_options(
            {
                f"--class must be one of {', '.join(labels)}. Got {of!r}.": (
                    chooses and of not in labels
                ),
                "--class needs a classifier, but this model predicts numbers.": (
                    not chooses and of is not None
                ),
            }
        )
        found = tables.optimum(
            opened,
            sense="maximum" if maximize else "minimum",
            of=None if of is None else labels[of],
            fixed={name: value for name, _, value in pairs},
            within=within,
            extrapolate=extrapolate,
        )
    if as_json:
        print_json(found | {"notes": opened.notes})
        return
    print_notes(opened.notes)
    print_line(
        f"{found['sense'].capitalize()} of {visible(found['score'])}: {rounded(found['value'])}. "
        f"Proven: the optimum within the limits is {rounded(found['bound'], 7)} or closer to this "
        f"value (gap {found['gap']:.0e})."
    )
    columns = (Column(name, justify="right") for name in ("best", "from", "to"))
    lines = []
    for name, value in found["settings"].items():
        limits = found["limits"][name]
        if isinstance(value, float):
            lines.append([visible(name), rounded(value, 6), rounded(limits[0]), rounded(limits[1])])
        else:
            lines.append([visible(name), visible(str(value)), "", ""])
    print_table(Table("input", *columns), lines)
