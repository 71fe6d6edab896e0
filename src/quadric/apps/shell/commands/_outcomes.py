"""The outcome of an experiment: shown on the terminal, and as JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from quadric.apps.shell.commands._console import print_table

if TYPE_CHECKING:
    from quadric.apps.paper import Outcome, Table as ResultTable

MOST_ROWS = 60  # shown on the terminal; the report has all rows


def plain(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as JSON values."""
    from quadric.apps.paper import statements

    return {
        "name": outcome.name,
        "title": outcome.title,
        "summary": outcome.summary,
        "claims": [
            {"text": statements()[claim.id].claim, **asdict(claim)} for claim in outcome.claims
        ],
        "findings": outcome.findings,
        "citation": outcome.citation,
        "tables": {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in outcome.tables
        },
        "facts": outcome.facts,
    }


def show(console: Console, outcome: Outcome) -> None:
    """Print the claims with their verdicts, then the first table."""
    from quadric.apps.paper import Verdict, statements

    console.print(f"\n{outcome.title}", style="bold")
    console.print(outcome.summary)
    for finding in outcome.findings:
        console.print(f"- {finding}")
    if outcome.claims:
        styles = {
            Verdict.HOLDS: "green",
            Verdict.CONDITIONALLY: "yellow",
            Verdict.FAILS: "red",
            Verdict.UNKNOWN: "dim",
        }
        print_table(
            Table("verdict", "claim", "paper", "ours"),
            (
                [
                    Text(one.verdict.value, styles[one.verdict]),
                    statements()[one.id].claim,
                    one.paper,
                    one.ours,
                ]
                for one in outcome.claims
            ),
        )
    if outcome.tables:
        make_table = _mnist_table if outcome.name == "mnist" else _plain_table
        console.print(make_table(outcome.tables[0]))


def _plain_table(results: ResultTable) -> Table:
    table = Table(*results.columns, title=results.title, title_justify="left")
    for row in results.rows[:MOST_ROWS]:
        table.add_row(*(results.text(i, value) for i, value in enumerate(row)))
    if len(results.rows) > MOST_ROWS:
        table.caption = f"... and {len(results.rows) - MOST_ROWS} more rows in the report"
    return table


def _mnist_table(results: ResultTable) -> Table:
    """Arrange the cells as in the paper, with the three models side by side."""
    headings = ("images", "epochs", "hidden", "ANN", "QNN", "RPQNN")
    table = Table(
        *(Column(name, justify="right") for name in headings),
        title="our mean (the paper's mean), in percent; ✗ if they differ by more than 2 standard "
        "errors",
        title_justify="left",
    )
    cells: dict[tuple[object, ...], dict[int, dict[str, Text]]] = {}
    for row in results.rows:
        size, epochs, hidden, model, mean, *_ = row
        named = dict(zip(results.columns, row, strict=True))
        number, is_within = f"{mean:.2f}", named["within 2 standard errors"]
        if named["paper mean"] is not None:
            number += f" ({named['paper mean']:.2f})"
        text = Text.assemble(number, (" ✗" if is_within is False else "", "red"))
        cells.setdefault((size, epochs), {}).setdefault(hidden, {})[model] = text
    for (size, epochs), by_hidden in cells.items():
        for hidden, models in by_hidden.items():
            found = (models.get(name, Text("-")) for name in ("ann", "qnn", "rpqnn"))
            table.add_row(str(size), str(epochs), str(hidden), *found)
        table.add_section()
    return table
