"""Run the sections, print their tables, and write everything to a JSON file.

python -m benchmarks compare --quick
python -m benchmarks compare sgd layers --out results/comparison
python -m benchmarks compare --resume        the sections that results/comparison lacks
python -m benchmarks compare --resume --minutes 5

Each section, and each data set of the accuracy, is written as soon as it is measured, so a run that
is interrupted can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.compare._machine import description
from benchmarks.compare._process import measure
from benchmarks.compare._sections import SECTIONS
from benchmarks.compare._tables import section_tables

COMMITTED = Path("results") / "comparison"
Sections = dict[str, dict[str, Any]]
Piece = tuple[str, str | None]  # a section, and one of its pieces or all of it


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
    parser.add_argument(
        "--minutes", type=float, help="begin no section and no data set after this time"
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
    work = pieces_of(names)
    if options.resume:
        done = [piece for piece in work if is_measured(piece, kept, about)]
        work = [piece for piece in work if piece not in done]
        console.print(f"measured before: {listed(done)}\nto be measured: {listed(work)}\n")
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    for place, piece in enumerate(work):
        if place and time.monotonic() > end:
            console.print(f"still to be measured: {listed(work[place:])}")
            return
        one = measured(piece, quick=options.quick, console=console, about=about)
        kept = merge(kept, one, about)
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


def pieces_of(names: Sequence[str]) -> list[Piece]:
    return [(name, piece) for name in names for piece in SECTIONS[name].pieces()]


def listed(work: Sequence[Piece]) -> str:
    """The pieces in words, and the time that a full run takes for them."""
    counts = Counter(name for name, _ in work)
    minutes = sum(
        SECTIONS[name].minutes * count / len(SECTIONS[name].pieces())
        for name, count in counts.items()
    )
    texts = [
        name if count == 1 else f"{name} ({count} data sets)" for name, count in counts.items()
    ]
    return f"{', '.join(texts)}, about {minutes:.0f} minutes in a full run" if texts else "none"


def is_measured(piece: Piece, kept: Sections, about: dict[str, Any]) -> bool:
    name, part = piece
    return name in kept and at_commit(kept[name], about) and part in kept[name]["pieces"]


def at_commit(found: dict[str, Any], about: dict[str, Any]) -> bool:
    """Whether a section was measured at the commit of `about`, without other changes."""
    commit = found["about"]["commit"]
    return commit == about["commit"] and " " not in commit


def compare(
    names: Sequence[str], *, quick: bool, console: Console, about: dict[str, Any]
) -> Sections:
    """Measure the sections one after the other and print their tables; return everything."""
    found: Sections = {}
    for piece in pieces_of(names):
        found = merge(found, measured(piece, quick=quick, console=console, about=about), about)
    total = sum(section["seconds"] for section in found.values())
    console.print(f"{len(found)} sections in {total:.0f} s")
    return found


def measured(piece: Piece, *, quick: bool, console: Console, about: dict[str, Any]) -> Sections:
    """Measure a section or a piece of it and print its tables; add the facts about the run."""
    name, part = piece
    console.print(f"[bold]{name}[/bold]{f', {part}' if part else ''} ...")
    start = time.perf_counter()
    found = measure(name, quick=quick, piece=part)
    found |= {"about": about, "seconds": time.perf_counter() - start, "pieces": [part]}
    found["missing"] = [other for other in SECTIONS[name].pieces() if other != part]
    if part is None:
        for table in section_tables(SECTIONS[name].load(), found):
            console.print(f"{table.title}: see the page" if table.wide else table.rich())
    console.print(f"{found['seconds']:.0f} s\n")
    return {name: found}


def write(path: Path, sections: dict[str, Any]) -> None:
    """Replace the file as a whole, so that an interrupted run keeps the sections before."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(sections, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def merge(before: Sections, found: Sections, about: dict[str, Any]) -> Sections:
    """Add what was measured: pieces to those of the same commit; other sections are replaced."""
    sections = dict(before)
    for name, new in found.items():
        old = before.get(name)
        if old and new["pieces"] != [None] and at_commit(old, about):
            new = joined(old, new, SECTIONS[name].pieces())
        sections[name] = new
    return {name: sections[name] for name in SECTIONS if name in sections}


def joined(old: dict[str, Any], new: dict[str, Any], order: Sequence[str | None]) -> dict[str, Any]:
    """Return a section with the rows of both, in the order of its pieces."""
    rows = [row for row in old["rows"] if row["data"] not in new["pieces"]] + new["rows"]
    pieces = {*old["pieces"], *new["pieces"]}
    return new | {
        "rows": sorted(rows, key=lambda row: order.index(row["data"])),
        "seconds": old["seconds"] + new["seconds"],
        "pieces": [piece for piece in order if piece in pieces],
        "missing": [piece for piece in order if piece not in pieces],
    }
