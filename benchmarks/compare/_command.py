"""Run the sections, print their tables, and write everything to a JSON file.

python -m benchmarks compare --quick
python -m benchmarks compare sgd layers --out results/comparison
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
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
        "--quick", action="store_true", help="fewer rounds and data sets: under 6 minutes"
    )
    parser.add_argument("--out", type=Path, help="write quick.json or full.json to this directory")
    options = parser.parse_args(arguments)
    console = Console()
    found = compare(options.sections or list(SECTIONS), quick=options.quick, console=console)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / file_name(quick=options.quick)
        merged = merge(read(path) if path.exists() else {}, found)
        path.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        console.print(str(path))


def compare(names: Sequence[str], *, quick: bool, console: Console) -> dict[str, Any]:
    """Measure the sections one after the other and print their tables; return everything."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"there is no section {unknown[0]!r}; choose from {', '.join(SECTIONS)}")
    about = description()
    console.print(f"{about['machine']}, Python {about['python']}, commit {about['commit']}\n")
    found = {}
    for name in names:
        console.print(f"[bold]{name}[/bold] ...")
        start = time.perf_counter()
        found[name] = measure(name, quick=quick)
        found[name] |= {"about": about, "seconds": time.perf_counter() - start}
        for table in section_tables(SECTIONS[name].load(), found[name]):
            console.print(f"{table.title}: see the page" if table.wide else table.rich())
        console.print(f"{found[name]['seconds']:.0f} s\n")
    total = sum(section["seconds"] for section in found.values())
    console.print(f"{len(found)} sections in {total:.0f} s")
    return found


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def merge(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Replace the sections that were measured again, and keep the order of SECTIONS."""
    sections = before | found
    return {name: sections[name] for name in SECTIONS if name in sections}
