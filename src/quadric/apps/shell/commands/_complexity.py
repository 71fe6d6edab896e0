"""`quadric complexity`: print a network's parameters, multiplications, memory and time.

With --inputs and --neurons, it prints the paper's tables of multiplications and memory for a layer.
"""

import textwrap
from typing import Annotated

import typer
from rich.table import Column, Table

from quadric.apps import paper
from quadric.apps.shell.commands._console import (
    check_options,
    comma_separated,
    print_json,
    print_line,
    print_table,
)
from quadric.utils import readable

KINDS = ("linear", "quadratic", "reduced")


def complexity(
    sizes: Annotated[
        list[int] | None,
        typer.Argument(
            min=1, help="Number of inputs, then the number of neurons in each layer: 784 30 10."
        ),
    ] = None,
    inputs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Instead of sizes: print the paper's Tables I and II for one layer with this many "
            "inputs, as printed and as counted. Needs --neurons.",
        ),
    ] = None,
    neurons: Annotated[
        int | None, typer.Option(min=1, help="The number of neurons of this layer.")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="One kind for all layers, or one kind per layer, such as linear,quadratic "
            "[default: linear, and quadratic for the last layer]."
        ),
    ] = None,
    nonzero: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of non-zero inputs, which affects the time: about 0.19 for MNIST.",
        ),
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Count a network's parameters, multiplications and bytes, and measure the time per step."""
    check_options(
        {
            "--inputs and --neurons belong together. Give both.": (inputs is None)
            != (neurons is None),
            "--inputs and --neurons cannot be combined with sizes, --kinds or --nonzero: the "
            "tables are for one layer of each model.": inputs is not None
            and (sizes or kinds or nonzero != 1),
        }
    )
    if inputs is not None and neurons is not None:
        _print_tables(inputs, neurons, as_json)
        return
    sizes = sizes or []
    layers = len(sizes) - 1
    chosen = comma_separated(kinds) or ["linear"] * (layers - 1) + ["quadratic"]
    chosen = chosen * layers if len(chosen) == 1 else chosen
    check_options(
        {
            "give the number of inputs and at least one layer size, such as 784 10, or --inputs "
            "and --neurons.": layers < 1,
            f"--kinds must be one of {', '.join(KINDS)}, or {layers} of them, separated by commas. "
            f"Got {kinds!r}.": len(chosen) != layers or not set(chosen) <= set(KINDS),
        }
    )
    rows = paper.cost(sizes, chosen, nonzero=nonzero)
    if as_json:
        print_json(
            {
                "layers": [
                    {
                        "kind": row.kind,
                        "inputs": row.inputs,
                        "neurons": row.neurons,
                        "parameters": row.parameters,
                        "multiplications_forward": row.forward,
                        "multiplications_step": row.multiplications,
                        "bytes": {"float32": 4 * row.parameters, "float64": 8 * row.parameters},
                        "seconds_step_estimated": row.seconds,
                    }
                    for row in rows
                ]
            }
        )
        return
    lines = (
        ("parameters", [row.parameters for row in rows], "{:,}".format),
        ("multiplications, forward", [row.forward for row in rows], "{:,}".format),
        ("multiplications, one step", [row.multiplications for row in rows], "{:,}".format),
        ("memory, float32", [4 * row.parameters for row in rows], readable),
        ("memory, float64", [8 * row.parameters for row in rows], readable),
        ("time of one step (estimate)", [row.seconds for row in rows], _time),
    )
    headings = [f"{row.inputs} -> {row.neurons}\n{row.kind}" for row in rows]
    print_table(
        Table("", *(Column(name, justify="right") for name in [*headings, "\ntotal"])),
        ([name, *map(show, values), show(sum(values))] for name, values, show in lines),
    )
    print_line(
        "One step is a forward pass, a backward pass and an update for one sample. The first layer "
        "has no backward pass. Q is stored as a triangle. The time is that of the compiled SGD "
        f"loop on this machine, in float32 with {100 * nonzero:.3g} % non-zero inputs. It is "
        "divided among the layers in proportion to their multiplications."
    )


def _print_tables(inputs: int, neurons: int, as_json: bool) -> None:
    """Print the paper's Tables I and II for a layer, as printed and as counted."""
    from quadric.reference import STEPS, compare_counts

    lines = compare_counts(neurons, inputs)
    if as_json:
        rows = [
            line._asdict() | {"differs": line.printed != line.counted, "why": line.why or None}
            for line in lines
        ]
        print_json({"inputs": inputs, "neurons": neurons, "counts": rows})
        return
    print_line(f"One layer of m = {_spaced(neurons)} neurons with n = {_spaced(inputs)} inputs.")
    tables = (
        ("Multiplications for one sample (Table I)", "step", True),
        ("Numbers beyond those of the ANN (Table II and text)", "quantity", False),
    )
    for title, heading, of_steps in tables:
        columns = [Column(name, justify="right") for name in ("printed", "counted", "difference")]
        typer.echo(f"\n{title}")
        print_table(
            Table("model", heading, *columns),
            (
                [
                    line.kind.upper(),
                    line.quantity.removeprefix("extra "),
                    _spaced(line.printed),
                    _spaced(line.counted),
                    f"≠ {_spaced(line.printed - line.counted)}" * (line.printed != line.counted),
                ]
                for line in lines
                if (line.quantity in STEPS) == of_steps
            ),
        )
    notes = [
        f"{line.kind.upper()} {line.quantity}: {line.why}."
        for line in lines
        if line.printed != line.counted
    ]
    for note in (
        "Printed multiplications are those of the ANN in section V plus the extra ones of Table I. "
        "Counted are those of the algorithms, line by line, without g, g' and the loss.",
        *notes,
    ):
        typer.echo(textwrap.fill(note, 80))


def _spaced(number: int) -> str:
    """Return a whole number with spaces between thousands: 57 540."""
    return f"{number:,}".replace(",", " ")


def _time(seconds: float) -> str:
    for unit, factor in (("ns", 1e9), ("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
