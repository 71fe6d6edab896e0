"""`quadric reproduce`: the paper's results, each beside ours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from quadric.cli.console import writable_directory

__all__ = ["reproduce"]

reproduce = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Reproduce the paper's results, each beside ours.",
)


@reproduce.callback()
def _results() -> None:
    """A group of commands even while it has only one."""


@reproduce.command(
    epilog="Example: `quadric reproduce xor --out report` writes report/xor.png.",
)
def xor(
    out: Annotated[Path, typer.Option(help="The directory for the picture.")] = Path("report"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to train with.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """XOR with one neuron: a hyperbola from a random Q, an ellipse from Q = I."""
    out = writable_directory(out)
    from quadric.experiments import xor as experiment

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task(
            "compiling the SGD engine (once)", total=seeds * len(experiment.RECIPES)
        )
        rows = experiment.run(
            seeds, progress=lambda row: progress.update(task, advance=1, description="training")
        )
    picture = out / "xor.png"
    experiment.draw(rows).savefig(picture)

    summaries = []
    for recipe in experiment.RECIPES:
        mine = [row for row in rows if row.recipe is recipe]
        kinds = Counter(row.kind for row in mine)
        summaries.append(
            {
                "start": recipe.start,
                "stopped": "to the first 4 of 4"
                if recipe.stop_when_solved
                else f"{recipe.epochs} epochs",
                "learning_rate": recipe.learning_rate,
                "solved": sum(row.correct == 4 for row in mine),
                "seeds": len(mine),
                "epochs": sorted(row.epochs for row in mine)[len(mine) // 2],
                "kinds": dict(kinds.most_common()),
                "paper": recipe.expected,
            }
        )
    if as_json:
        typer.echo(json.dumps({"rows": summaries, "picture": str(picture)}, indent=2))
        return
    _show_xor(summaries, picture)


def _show_xor(summaries: list[dict[str, object]], picture: Path) -> None:
    console = Console()
    table = Table(
        title="XOR with one quadratic neuron, w = b = 0 at the start", title_justify="left"
    )
    for name in ("Q at the start", "trained", "4 of 4", "paper", "ours", ""):
        table.add_column(name)
    for s in summaries:
        kinds = s["kinds"]
        assert isinstance(kinds, dict)
        ours = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        verdict = "" if s["paper"] is None else "✓" if list(kinds) == [s["paper"]] else "✗"
        table.add_row(
            str(s["start"]), str(s["stopped"]), f"{s['solved']}/{s['seeds']}",
            str(s["paper"] or "-"), ours, verdict,
        )  # fmt: skip
    console.print(table)
    console.print(f"Picture: {picture}")
