"""What `quadric reproduce` prints: live lines while it runs, and one screen at the end.

The screen has at most 45 lines of 80 characters. `--details` prints all claims and tables before
it, and the report contains everything.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from quadric.apps import paper
from quadric.apps.shell.commands._console import make_console, print_table
from quadric.utils import counted, visible

WIDTH = 80
MOST_SHOWN = 60  # rows on the terminal; the report has all rows
MOST_LISTED = 4  # results that do not hold
MOST_LINES = 5  # of claims with the same recorded verdict
FEW = 4  # outcomes whose findings are printed in sentences
# by verdict: a short word, and a style
WORDS = {
    "holds": ("holds", "green"),
    "holds with a condition": ("conditional", "yellow"),
    "does not hold": ("fails", "red"),
    "cannot be judged": ("not judged", "dim"),
}
# by kind of claim: the word with which claims are counted
KINDS = {
    "experiment": "result",
    "misprint": "misprint",
    "count": "count",
    "mathematics": "derivation",
    "question": "own question",
}


# ---- while it runs -------------------------------------------------------------------------------


class LiveLines:
    """A line for each experiment on stderr, with progress and time left.

    If stderr is not a terminal, one plain line is printed when an experiment starts.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.console = make_console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            TextColumn(
                "{task.fields[text]}",
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self.tasks: dict[str, TaskID] = {
            name: self.bars.add_task(name, start=False, total=1, text=f"about {time:.0f} s")
            for name, time in seconds.items()
        }

    @contextmanager
    def running(self, name: str) -> Iterator[Callable[[float, float, str], None]]:
        """Start the line of an experiment, yield the function that updates it, and finish it."""
        if not self.console.is_terminal:
            self.console.print(f"{name} ...")
        task = self.tasks[name]
        self.bars.start_task(task)
        yield lambda done, total, text: self.bars.update(
            task, completed=done, total=total, text=text.removeprefix(f"{name}: ")
        )
        self.bars.update(task, completed=1, total=1, text="done")


# ---- at the end ----------------------------------------------------------------------------------


def print_screen(
    outcomes: Sequence[paper.Outcome], statements: Sequence[paper.Statement], page: Path, about: str
) -> None:
    """Print the results on one screen.

    Parameters
    ----------
    outcomes : sequence of Outcome
    statements : sequence of Statement
        All statements of the paper with the findings of this run.
    page : Path
        The report.
    about : str
        What was run, in a line.
    """
    console = make_console()
    console.print(about)
    for line in _lines(outcomes, statements):
        console.print(line)
    console.print(f"Report: {visible(str(page))}")


def _lines(
    outcomes: Sequence[paper.Outcome], statements: Sequence[paper.Statement]
) -> Iterator[str | Text]:
    by_id = {statement.id: statement for statement in statements}
    yield from _headlines(outcomes, by_id)
    if len(outcomes) <= FEW:
        for outcome in outcomes:
            for finding in outcome.findings:
                yield from textwrap.wrap(f"- {finding}", WIDTH, subsequent_indent="  ")
    for table in (table for outcome in outcomes for table in outcome.tables):
        if table.name.endswith("_summary"):
            yield from _blocks(table)
    judged = [by_id[claim.id] for outcome in outcomes for claim in outcome.claims]
    is_complete = len(outcomes) == len(paper.EXPERIMENTS)
    yield from _failures(judged, statements if is_complete else ())
    yield from _unjudged(judged)
    if is_complete:
        studies = _by_recorded(one for one in statements if one.study)
        counts = ", ".join(f"{len(ids)} {word}" for word, ids in studies.items())
        yield f"Not run: the studies (--studies); recorded: {counts}"


def _headlines(
    outcomes: Sequence[paper.Outcome], by_id: Mapping[str, paper.Statement]
) -> Iterator[Text | str]:
    """Return a line for each outcome; a star marks a verdict that this run did not reach."""
    headlines = [outcome.headline for outcome in outcomes if outcome.headline]
    if not headlines:
        return
    cells = [("", "paper", "ours"), *((one.what, one.paper, one.ours) for one in headlines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    yield Text(f"{lines[0]} verdict", "bold")
    any_recorded = False
    for one, line in zip(headlines, lines[1:], strict=True):
        word, style = WORDS[one.verdict]
        recorded = by_id[one.claim].recorded if one.claim else None
        if recorded is not None and word == "not judged":
            word = WORDS[recorded.verdict][0]
        star = " " if word == WORDS[one.verdict][0] else "*"
        any_recorded |= star == "*"
        yield Text.assemble(line, star, (word, style))
    if any_recorded:
        yield "* recorded from the committed full run, not judged by this run"


def _blocks(table: paper.Table) -> Iterator[Text | str]:
    """Return the MNIST table condensed: a line for each number of images and epochs."""
    name = table.name.removesuffix("_summary")
    title = "Table IV" if name == "mnist" else f"The grid of Table IV with {name}"
    yield Text(f"{title}: mean accuracy over the widths, in percent", "bold")
    yield "images epochs    ANN  paper     QNN  paper   RPQNN  paper   cells that agree"
    for row in table.rows:
        size, epochs, *means, cells, within = row
        numbers = ["-" if mean is None else f"{mean:.2f}" for mean in means]
        pairs = "  ".join(
            f"{ours:>6} {printed:>6}"
            for ours, printed in zip(numbers[::2], numbers[1::2], strict=True)
        )
        agree = "-" if within is None else f"{within} of {cells}"
        yield f"{size:>6} {epochs:>6} {pairs}   {agree}"


def _failures(
    judged: Sequence[paper.Statement], others: Sequence[paper.Statement]
) -> Iterator[Text | str]:
    """Return the claims that do not hold: results of this run, and numbers of the others."""
    fails = [one for one in judged if one.finding.verdict == "does not hold"]
    if fails or others:
        yield Text("Does not hold", "bold")
    shown = [one for one in fails if one.kind == "experiment"][:MOST_LISTED]
    for one in shown:
        yield from textwrap.wrap(f"- {one.claim}", WIDTH, subsequent_indent="  ")
    kinds = [
        one.kind
        for one in others or fails
        if one.finding.verdict == "does not hold" and one not in shown
    ]
    if kinds:
        counts = ", ".join(counted(kinds.count(kind), KINDS[kind]) for kind in dict.fromkeys(kinds))
        yield from textwrap.wrap(
            f"- also {counts}: see --details", WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )


def _unjudged(judged: Sequence[paper.Statement]) -> Iterator[Text | str]:
    """Return what this run cannot judge, by reason and by the recorded verdict."""
    unknown = [one for one in judged if one.finding.verdict == "cannot be judged"]
    for reason, group in groupby(sorted(unknown, key=_reason), _reason):
        yield Text(f"{reason}; verdicts recorded from the committed full run:", "bold")
        for word, ids in _by_recorded(group).items():
            yield from textwrap.wrap(
                f"{word + ':':<12} {', '.join(ids)}",
                WIDTH,
                subsequent_indent=" " * 13,
                break_on_hyphens=False,
                max_lines=MOST_LINES,
                placeholder=" ...",
            )


def _reason(statement: paper.Statement) -> str:
    found = statement.finding.ours
    if "not MNIST" in found:
        return "Needs MNIST"
    return "Needs --full" if "needs --full" in found else "Undecided"


def _by_recorded(statements: Iterable[paper.Statement]) -> dict[str, list[str]]:
    """Return ids by the word of the recorded verdict."""
    found: dict[str, list[str]] = {word: [] for word, _ in WORDS.values()}
    for one in statements:
        found[WORDS[one.recorded.verdict if one.recorded else "cannot be judged"][0]].append(one.id)
    return {word: ids for word, ids in found.items() if ids}


# ---- details -------------------------------------------------------------------------------------


def print_details(outcomes: Sequence[paper.Outcome], statements: Sequence[paper.Statement]) -> None:
    """Print all claims and the first table of every outcome, and the other claims that fail."""
    console = make_console()
    texts = {statement.id: statement.claim for statement in statements}
    for outcome in outcomes:
        console.print(f"\n{outcome.title}", style="bold")
        console.print(outcome.summary)
        for finding in outcome.findings:
            console.print(f"- {finding}")
        if outcome.claims:
            print_table(
                Table("verdict", "claim", "paper", "ours"),
                (
                    [Text(one.verdict, WORDS[one.verdict][1]), texts[one.id], one.paper, one.ours]
                    for one in outcome.claims
                ),
            )
        if outcome.tables:
            first = outcome.tables[0]
            is_mnist = first.name == "mnist_comparison"
            console.print(_mnist_table(first) if is_mnist else plain_table(first))
            console.print()
    shown = {claim.id for outcome in outcomes for claim in outcome.claims}
    console.print("\nOther claims of the paper that do not hold", style="bold")
    print_table(
        Table("kind", "claim", "found"),
        (
            [one.kind, one.claim, one.finding.ours]
            for one in statements
            if one.finding.verdict == "does not hold" and one.id not in shown
        ),
    )


def plain_table(results: paper.Table) -> Table:
    """Return a table for the terminal, with its first rows."""
    table = Table(*results.columns, title=results.title, title_justify="left")
    for row in results.rows[:MOST_SHOWN]:
        table.add_row(*(results.text(i, value) for i, value in enumerate(row)))
    if len(results.rows) > MOST_SHOWN:
        table.caption = f"... and {len(results.rows) - MOST_SHOWN} more rows in the report"
    return table


def _mnist_table(results: paper.Table) -> Table:
    """Arrange the cells as in the paper, with the three models side by side."""
    table = Table(
        *(
            Column(name, justify="right")
            for name in ("images", "epochs", "hidden", "ANN", "QNN", "RPQNN")
        ),
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
