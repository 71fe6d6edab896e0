"""Compare the ratios with the committed ones: `python -m benchmarks check`.

A peer's ratio is its time divided by that of quadric in the same run, so it does not depend on how
fast the machine is. The command measures again and exits with 1 if a ratio has fallen by more than
25 %, that is, if quadric has become slower in comparison. Ratios vary from run to run, so the
sections with such a ratio are measured up to three times, and the highest ratio counts. The command
is not part of the tests, because a busy machine changes the ratios even so.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.compare._command import COMMITTED, compare, file_name, read
from benchmarks.compare._result import from_json
from benchmarks.compare._tables import Table

ALLOWED = 0.25
REPEATS = 2
TIMED = ("sgd", "layers", "layers-2-threads", "fits", "deployment")
Key = tuple[str, str, str]  # section, case and peer


class Change(NamedTuple):
    """The ratio of one peer, committed and measured now."""

    key: Key
    before: float
    now: float

    @property
    def fall(self) -> float:
        """By which share the ratio has fallen."""
        return 1 - self.now / self.before


def ratios(sections: dict[str, Any]) -> dict[Key, float]:
    """Return the ratio of every peer in every case."""
    return {
        (name, case.name, timing.contender): timing.ratio
        for name, found in sections.items()
        for case in from_json(found.get("cases", []))
        for timing in case.peers
    }


def changes(before: dict[Key, float], now: dict[Key, float]) -> list[Change]:
    """Compare the peers that both runs have, the largest fall first."""
    found = [Change(key, before[key], now[key]) for key in before if key in now]
    return sorted(found, key=lambda change: -change.fall)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks check", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", default=TIMED, metavar="section", help=", ".join(TIMED)
    )
    parser.add_argument("--committed", type=Path, default=COMMITTED / file_name(quick=True))
    options = parser.parse_args(arguments)
    console, before = Console(), ratios(read(options.committed))
    now = ratios(compare(options.sections, quick=True, console=console))
    for _ in range(REPEATS):
        suspects = {change.key[0] for change in changes(before, now) if change.fall > ALLOWED}
        if suspects:
            again = ratios(compare(sorted(suspects), quick=True, console=console))
            now |= {key: max(ratio, now[key]) for key, ratio in again.items()}
    found = changes(before, now)
    if not found:
        raise SystemExit(f"{options.committed} has no ratio that was measured now")
    rows = [[": ".join(c.key), f"{c.before:.3g}", f"{c.now:.3g}", f"{-c.fall:+.0%}"] for c in found]
    columns = ["peer", "committed", "now", "change"]
    console.print(Table("Time of others / quadric", columns, rows).rich())
    slower = [change for change in found if change.fall > ALLOWED]
    if slower:
        raise SystemExit(f"{len(slower)} of {len(found)} ratios fell by more than {ALLOWED:.0%}")
    console.print(f"none of {len(found)} ratios fell by more than {ALLOWED:.0%}")
