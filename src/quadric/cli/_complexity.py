"""`quadric complexity`: what a network costs."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from quadric.cli._console import make_console, names

KINDS = ("linear", "quadratic", "reduced")


def complexity(
    sizes: Annotated[
        list[int], typer.Argument(min=1, help="Inputs, then the neurons of each layer: 784 30 10.")
    ],
    kinds: Annotated[
        str | None,
        typer.Option(
            help="One kind for all layers, or one each, as linear,quadratic "
            "[default: linear, the last one quadratic]."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Count parameters, multiplications and bytes of a network, and estimate a step's time."""
    layers = len(sizes) - 1
    if layers < 1:
        raise typer.BadParameter("give the inputs and the neurons of at least one layer: 784 10.")
    chosen = names(kinds) or ["linear"] * (layers - 1) + ["quadratic"]
    if len(chosen) == 1:
        chosen = chosen * layers
    if len(chosen) != layers or not set(chosen) <= set(KINDS):
        raise typer.BadParameter(
            f"--kinds takes one of {', '.join(KINDS)}, or {layers} of them. Got {kinds!r}."
        )
    from quadric.paper.experiments._cost import cost

    rows = cost(sizes, chosen)
    if as_json:
        found = [
            {
                "kind": row.kind, "inputs": row.inputs, "neurons": row.neurons,
                "parameters": row.parameters, "multiplications_forward": row.forward,
                "multiplications_step": row.multiplications,
                "bytes": {"float32": 4 * row.parameters, "float64": 8 * row.parameters},
                "seconds_step_estimated": row.seconds,
            }
            for row in rows
        ]  # fmt: skip
        typer.echo(json.dumps({"layers": found}, indent=2))
        return
    from quadric._utils.memory import readable

    def line(name: str, values: list[Any], show: Callable[[Any], str]) -> None:
        table.add_row(name, *map(show, values), show(sum(values)))

    table = Table()
    table.add_column("")
    for row in rows:
        table.add_column(f"{row.inputs} -> {row.neurons}\n{row.kind}", justify="right")
    table.add_column("\ntotal", justify="right")
    line("parameters", [row.parameters for row in rows], "{:,}".format)
    line("multiplications: forward", [row.forward for row in rows], "{:,}".format)
    line("multiplications: a step", [row.multiplications for row in rows], "{:,}".format)
    for dtype, size in (("float32", 4), ("float64", 8)):
        line(dtype, [size * row.parameters for row in rows], readable)
    line("a step takes about", [row.seconds for row in rows], _time)
    console = make_console()
    console.print(table)
    console.print(
        "A step is forward, backward and update for one sample. Q is held as its triangle. The "
        "time is an estimate: the count over the rate at which this machine trains a small layer "
        "in mini-batches."
    )


def _time(seconds: float) -> str:
    for unit, factor in (("ns", 1e9), ("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
