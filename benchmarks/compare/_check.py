"""Compare the ratios with the committed ones: `python -m benchmarks check`.

A peer's ratio is its time divided by that of quadric in the same run, so it does not depend on how
fast the machine is. The command measures again and exits with 1 if the ratios of a case have fallen
by more than 25 %, that is, if quadric has become slower in comparison.

Other load changes ratios even if the code is the same, in three ways that the check allows for.
Load only adds time, so the ratio is that of the lower quartiles. If quadric is slower, the ratios
of all peers of a case fall alike, so a case is judged by the median of its peers: a single peer
that had a good day does not count. And a case that has fallen is measured up to three times, and
its highest ratios count. The command is not part of the tests, because a machine that is busy all
the time changes the ratios even so.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.compare._command import COMMITTED, compare, file_name, read
from benchmarks.compare._machine import description
from benchmarks.compare._result import OURS, from_json
from benchmarks.compare._tables import Table

ALLOWED = 0.25
REPEATS = 2
TIMED = ("sgd", "layers", "layers-2-threads", "fits", "deployment")
RUNS = [COMMITTED / file_name(quick=quick) for quick in (True, False)]
Key = tuple[str, str]  # section and case
Ratios = dict[Key, dict[str, float]]  # by peer


class Change(NamedTuple):
    """The ratios of one case, now / committed: the median, the lowest and the highest peer's."""

    key: Key
    change: float
    lowest: float
    highest: float

    @property
    def fall(self) -> float:
        """By which share the ratios have fallen."""
        return 1 - self.change


def ratios(sections: dict[str, Any]) -> Ratios:
    """Return the ratio of every peer in every case, from the lower quartiles of the times."""
    found: Ratios = {}
    for name, section in sections.items():
        for case in from_json(section.get("cases", [])):
            ours = next(timing.low for timing in case.timings if timing.contender == OURS)
            found[name, case.name] = {peer.contender: peer.low / ours for peer in case.peers}
    return found


def highest(one: Ratios, other: Ratios) -> Ratios:
    """Return the higher ratio of each peer."""
    return {
        key: {peer: max(value, other.get(key, {}).get(peer, 0.0)) for peer, value in peers.items()}
        for key, peers in one.items()
    }


def changes(before: Ratios, now: Ratios) -> list[Change]:
    """Compare the cases and peers that both runs have, the largest fall first."""
    found = []
    for key in before.keys() & now.keys():
        both = before[key].keys() & now[key].keys()
        if each := [now[key][peer] / before[key][peer] for peer in both]:
            found.append(Change(key, median(each), min(each), max(each)))
    return sorted(found, key=lambda change: (-change.fall, change.key))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks check", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", default=TIMED, metavar="section", help=", ".join(TIMED)
    )
    parser.add_argument(
        "--committed",
        type=Path,
        nargs="+",
        default=[path for path in RUNS if path.exists()],
        help="files of results; of a section in several, the last counts (default: the runs in "
        f"{COMMITTED})",
    )
    options = parser.parse_args(arguments)
    committed: dict[str, Any] = {}
    for path in options.committed:
        committed |= read(path)
    console, before, about = Console(), ratios(committed), description()

    def measure(names: Sequence[str]) -> Ratios:
        return ratios(compare(names, quick=True, console=console, about=about))

    now = measure(options.sections)
    for _ in range(REPEATS):
        suspects = {change.key[0] for change in changes(before, now) if change.fall > ALLOWED}
        if suspects:
            now = highest(now, measure(sorted(suspects)))
    found = changes(before, now)
    if not found:
        raise SystemExit("the committed results have no ratio that was measured now")
    rows = [
        [": ".join(c.key), f"{c.change:.2f}", f"{c.lowest:.2f} to {c.highest:.2f}"] for c in found
    ]
    columns = ["case", "median of the peers", "lowest and highest peer"]
    console.print(Table("Time of others / quadric, now / committed", columns, rows).rich())
    slower = [change for change in found if change.fall > ALLOWED]
    if slower:
        raise SystemExit(f"{len(slower)} of {len(found)} cases fell by more than {ALLOWED:.0%}")
    console.print(f"none of {len(found)} cases fell by more than {ALLOWED:.0%}")
