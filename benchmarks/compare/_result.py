"""What a section finds: timings of contenders in cases, as plain data that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any

OURS = "quadric"


@dataclass(frozen=True)
class Timing:
    """The time of one contender in one case: the median over the rounds, and the quartiles.

    `ratio` is the median, over the rounds that both ran in, of this time / the time of quadric.
    """

    contender: str
    seconds: float
    low: float
    high: float
    ratio: float
    remark: str = ""


@dataclass(frozen=True)
class Case:
    """One task, the timings of all contenders, and who was left out for which reason."""

    name: str
    timings: list[Timing]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def peers(self) -> list[Timing]:
        """The other libraries; further ways to call quadric do not count."""
        return [timing for timing in self.timings if not timing.contender.startswith(OURS)]

    @property
    def faster(self) -> list[Timing]:
        """The peers that are faster than quadric, the fastest first."""
        ahead = [timing for timing in self.peers if timing.ratio < 1]
        return sorted(ahead, key=lambda timing: timing.ratio)

    @property
    def strongest(self) -> Timing | None:
        """The fastest peer."""
        return min(self.peers, key=lambda timing: timing.ratio, default=None)

    def verdict(self) -> str:
        """Say in words whether quadric is first."""
        if not self.peers:
            return "no peer"
        if not self.faster:
            return "first"
        ahead = ", ".join(f"{t.contender} takes {t.ratio:.2f}×" for t in self.faster)
        return f"{1 + len(self.faster)} of {1 + len(self.peers)}: {ahead}"


def strongest_rivals(cases: Sequence[Case]) -> str:
    """Name the fastest peer of all cases, and say how fast those of the other cases are."""
    found = [
        (rival.ratio, rival.contender, case.name) for case in cases if (rival := case.strongest)
    ]
    if not found:
        return "No peer was measured."
    (ratio, name, where), *others = sorted(found)
    text = f'Strongest rival: {name}, {ratio:.2f} times as long as quadric in the case "{where}".'
    if len(others) == 1:
        ratio, name, where = others[0]
        text += f' In the case "{where}", it is {name}: {ratio:.2f} times as long.'
    elif others:
        low, high = others[0][0], others[-1][0]
        text += (
            f" In the other cases, the fastest rival takes {low:.2f} to {high:.2f} times as long."
        )
    return text


def case_of(
    name: str,
    rounds: Mapping[str, Sequence[float]],
    *,
    units: Mapping[str, int] | None = None,
    remarks: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> Case:
    """Summarize the seconds per call in every round; `units` is the number of steps of a call."""
    each = {
        who: [s / (units[who] if units else 1) for s in seconds] for who, seconds in rounds.items()
    }
    timings = []
    for who, seconds in each.items():
        low, _, high = quantiles(seconds, n=4, method="inclusive")
        ratio = median(s / o for s, o in zip(seconds, each[OURS], strict=False))
        remark = (remarks or {}).get(who, "")
        timings.append(Timing(who, median(seconds), low, high, ratio, remark))
    return Case(name, timings, dict(left_out or {}))


def to_json(cases: Sequence[Case]) -> list[dict[str, Any]]:
    return [asdict(case) for case in cases]


def from_json(cases: Sequence[Mapping[str, Any]]) -> list[Case]:
    return [
        Case(case["name"], [Timing(**t) for t in case["timings"]], case["left_out"])
        for case in cases
    ]
