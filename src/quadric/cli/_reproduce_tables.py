"""Outcomes of experiments on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from quadric.paper.experiments._experiment import Outcome, Table


MOST_ROWS = 60  # on the terminal; the report has all


def show(console: Console, outcome: Outcome) -> None:
    """The claims with their verdicts, then the first table."""
    console.print(f"\n{outcome.title}", style="bold")
    console.print(outcome.summary)
    if outcome.claims:
        table = RichTable(show_lines=False)
        for column in ("", "statement", "the paper", "ours"):
            table.add_column(column)
        for claim in outcome.claims:
            mark = Text("✓", "green") if claim.holds else Text("✗", "red")
            table.add_row("" if claim.holds is None else mark, claim.text, claim.paper, claim.ours)
        console.print(table)
    if outcome.name == "mnist":
        console.print(_by_row(outcome.tables[0]))
        return
    if outcome.tables:
        console.print(_rich(outcome.tables[0]))


def _rich(table: Table) -> RichTable:
    rich = RichTable(title=table.title, title_justify="left")
    for column in table.columns:
        rich.add_column(column)
    for row in table.rows[:MOST_ROWS]:
        rich.add_row(*(table.text(i, value) for i, value in enumerate(row)))
    if len(table.rows) > MOST_ROWS:
        rich.caption = f"... and {len(table.rows) - MOST_ROWS} more rows in the report"
    return rich


def _by_row(table: Table) -> RichTable:
    """The MNIST table as the paper has it: the three models side by side, ours over the paper's."""
    rich = RichTable(
        title="mean of ours (the paper's), in percent; ✗ where they differ by more than 2 of its "
        "standard deviations",
        title_justify="left",
    )
    for column in ("images", "epochs", "hidden", "ANN", "QNN", "RPQNN"):
        rich.add_column(column, justify="right")
    cells: dict[tuple[object, ...], dict[str, Text]] = {}
    before = None
    for row in table.rows:
        size, epochs, hidden, model, mean, paper = row[:6]
        text = Text(f"{mean:.2f}" + ("" if paper is None else f" ({paper:.2f})"))
        if row[9] not in (True, None):
            text.append(" ✗", "red")
        cells.setdefault((size, epochs, hidden), {})[model] = text
    for (size, epochs, hidden), models in cells.items():
        if before not in (None, (size, epochs)):
            rich.add_section()
        before = (size, epochs)
        names = ("ann", "qnn", "rpqnn")
        rich.add_row(
            str(size), str(epochs), str(hidden), *(models.get(name, Text("-")) for name in names)
        )
    return rich
