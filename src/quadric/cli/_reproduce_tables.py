"""Tables that `quadric reproduce` prints: claims with verdicts, and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from quadric.paper.experiments._experiment import Outcome, Table

MOST_ROWS = 60  # on the terminal; the report has all of them


def show(console: Console, outcome: Outcome) -> None:
    """Print the claims with their verdicts, then the first table."""
    console.print(f"\n{outcome.title}", style="bold")
    console.print(outcome.summary)
    if outcome.claims:
        table = RichTable("", "statement", "paper", "ours")
        for claim in outcome.claims:
            mark = Text("✓", "green") if claim.holds else Text("✗", "red")
            table.add_row("" if claim.holds is None else mark, claim.text, claim.paper, claim.ours)
        console.print(table)
    if outcome.tables:
        make_table = _mnist_table if outcome.name == "mnist" else _plain_table
        console.print(make_table(outcome.tables[0]))


def _plain_table(table: Table) -> RichTable:
    rich = RichTable(*table.columns, title=table.title, title_justify="left")
    for row in table.rows[:MOST_ROWS]:
        rich.add_row(*(table.text(i, value) for i, value in enumerate(row)))
    if len(table.rows) > MOST_ROWS:
        rich.caption = f"... and {len(table.rows) - MOST_ROWS} more rows in the report"
    return rich


def _mnist_table(table: Table) -> RichTable:
    """Arrange the cells as in the paper: the three models side by side."""
    rich = RichTable(
        title="our mean (the paper's mean), in percent; ✗ if they differ by more than 2 of the "
        "paper's standard deviations",
        title_justify="left",
    )
    for column in ("images", "epochs", "hidden", "ANN", "QNN", "RPQNN"):
        rich.add_column(column, justify="right")
    cells: dict[tuple[object, ...], dict[str, Text]] = {}
    for size, epochs, hidden, model, mean, paper, *rest in table.rows:
        text = Text(f"{mean:.2f}" + ("" if paper is None else f" ({paper:.2f})"))
        if rest[3] not in (True, None):
            text.append(" ✗", "red")
        cells.setdefault((size, epochs, hidden), {})[model] = text
    before = None
    for (size, epochs, hidden), models in cells.items():
        if before not in (None, (size, epochs)):
            rich.add_section()
        before = (size, epochs)
        found = (models.get(name, Text("-")) for name in ("ann", "qnn", "rpqnn"))
        rich.add_row(str(size), str(epochs), str(hidden), *found)
    return rich
