"""Run the sections, print their tables, and write everything to a JSON file.

python -m benchmarks compare --quick
python -m benchmarks compare sgd layers --out results/comparison
python -m benchmarks compare --resume        the sections that results/comparison lacks

Each section is written as soon as it is measured, so a run that is interrupted can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.compare._machine import description
from benchmarks.compare._process import measure
from benchmarks.compare._sections import SECTIONS
from benchmarks.compare._tables import section_tables

COMMITTED = Path("results") / "comparison"


def file_name(*, quick: bool) -> str:
    return "quick.json" if quick else "full.json"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds, no accuracy: under 6 minutes"
    )
    parser.add_argument("--out", type=Path, help="write quick.json or full.json to this directory")
    parser.add_argument(
        "--resume",
        action="store_true",
        help=f"run only sections that were not measured at this commit; writes to {COMMITTED}, "
        "unless --out names another directory",
    )
    options = parser.parse_args(arguments)
    names = wanted(options.sections, quick=options.quick)
    directory = options.out or (COMMITTED if options.resume else None)
    console, about = Console(), description()
    console.print(f"{about['machine']}, Python {about['python']}, commit {about['commit']}\n")
    if directory is None:
        compare(names, quick=options.quick, console=console, about=about)
        return
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / file_name(quick=options.quick)
    kept = read(path) if path.exists() else {}
    if options.resume:
        done = [name for name in names if name in kept and at_commit(kept[name], about)]
        names = [name for name in names if name not in done]
        console.print(f"measured before: {', '.join(done) or 'none'}")
        console.print(f"to be measured: {', '.join(names) or 'none'}, about {minutes(names)}\n")
    for name, found in measured(names, quick=options.quick, console=console, about=about):
        kept = merge(kept, {name: found})
        write(path, kept)
        console.print(f"{path}\n")


def wanted(names: Sequence[str], *, quick: bool) -> list[str]:
    """Return the sections to run; raise SystemExit for a name that cannot run."""
    for name in names:
        if name not in SECTIONS:
            raise SystemExit(f"there is no section {name!r}; choose from {', '.join(SECTIONS)}")
        if quick and not SECTIONS[name].quick:
            raise SystemExit(f"the section {name!r} needs a full run; leave out --quick")
    return list(names) or [name for name in SECTIONS if SECTIONS[name].quick or not quick]


def minutes(names: Sequence[str]) -> str:
    return f"{sum(SECTIONS[name].minutes for name in names):.0f} minutes in a full run"


def at_commit(found: dict[str, Any], about: dict[str, Any]) -> bool:
    """Whether a section was measured at the commit of `about`, without other changes."""
    commit = found["about"]["commit"]
    return commit == about["commit"] and " " not in commit


def compare(
    names: Sequence[str], *, quick: bool, console: Console, about: dict[str, Any]
) -> dict[str, Any]:
    """Measure the sections one after the other and print their tables; return everything."""
    found = dict(measured(names, quick=quick, console=console, about=about))
    total = sum(section["seconds"] for section in found.values())
    console.print(f"{len(found)} sections in {total:.0f} s")
    return found


def measured(
    names: Sequence[str], *, quick: bool, console: Console, about: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each section when it has been measured, with the facts about the run."""
    for name in names:
        console.print(f"[bold]{name}[/bold] ...")
        start = time.perf_counter()
        found = measure(name, quick=quick)
        found |= {"about": about, "seconds": time.perf_counter() - start}
        for table in section_tables(SECTIONS[name].load(), found):
            console.print(f"{table.title}: see the page" if table.wide else table.rich())
        console.print(f"{found['seconds']:.0f} s\n")
        yield name, found


def write(path: Path, sections: dict[str, Any]) -> None:
    """Replace the file as a whole, so that an interrupted run keeps the sections before."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(sections, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def merge(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Replace the sections that were measured again, and keep the order of SECTIONS."""
    sections = before | found
    return {name: sections[name] for name in SECTIONS if name in sections}
