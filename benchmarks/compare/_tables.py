"""Tables of text, shown in the terminal by Rich and on the site as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.compare._result import OURS, Case, Timing, from_json


class Table(NamedTuple):
    """A title, the names of the columns, and rows of text; `wide` ones are not for a terminal."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: bool = False

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def rich(self) -> Any:
        from rich.table import Table as RichTable

        table = RichTable(*self.columns, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*row)
        return table


def timing_table(title: str, unit: str, per_second: float, cases: Sequence[Case]) -> Table:
    """Return the times in a table of cases and contenders; the longer list becomes the rows."""
    names = list(dict.fromkeys(t.contender for case in cases for t in case.timings))
    grid = [["", *names, "place of quadric"]]
    for case in cases:
        cells = dict.fromkeys(names, "–") | case.left_out
        cells |= {t.contender: _cell(t, per_second) for t in case.timings}
        grid.append([case.name, *(cells[name] for name in names), case.verdict()])
    if len(grid[0]) > len(grid):
        grid = [list(column) for column in zip(*grid, strict=True)]
    return Table(f"{title}, {unit}", grid[0], grid[1:])


def _cell(timing: Timing, per_second: float) -> str:
    """The median, half of the interquartile range, the ratio to quadric, and the remark."""
    spread = (timing.high - timing.low) / (2 * timing.seconds)
    ratio = "" if timing.contender == OURS else f", {number(timing.ratio)}×"
    remark = f"; {timing.remark}" if timing.remark else ""
    return f"{number(per_second * timing.seconds)} ± {spread:.0%}{ratio}{remark}"


def section_tables(module: Any, found: dict[str, Any]) -> list[Table]:
    """Return the tables of a section, and one with the peers and data that are missing."""
    if "cases" in found:
        cases = from_json(found["cases"])
        tables = [timing_table(module.TITLE, module.UNIT, module.PER_SECOND, cases)]
    else:
        tables = module.tables(found)
    if found.get("skipped"):
        rows = [[name, command] for name, command in found["skipped"].items()]
        columns = ["peer or data set", "command that installs it"]
        tables.append(Table("Skipped: not on this machine", columns, rows))
    return tables


def number(value: float) -> str:
    """Three significant digits, without an exponent unless the number is tiny."""
    if 0 < value < 1e-3:
        return f"{value:.1e}"
    if value == 0 or value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    digits = 1 if value >= 10 else 2
    while value < 10 ** (2 - digits) and digits < 5:
        digits += 1
    return f"{value:.{digits}f}"
