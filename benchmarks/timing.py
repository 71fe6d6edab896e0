"""Timing on a noisy machine: the contenders take turns, so that other load affects all alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

Contenders = dict[str, Callable[[], object]]
Clock = Callable[[], float]
LONG = 1.0  # seconds; a longer call need not be repeated to estimate its time


def best_seconds(contenders: Contenders, *, rounds: int, at_least: float = 0.0) -> dict[str, float]:
    """Return the shortest time of each contender; all of them run in every round."""
    found = seconds_by_round(contenders, rounds=rounds, at_least=at_least)
    return {name: min(seconds) for name, seconds in found.items()}


def seconds_by_round(
    contenders: Contenders,
    *,
    rounds: int,
    at_least: float = 0.0,
    budget: float = math.inf,
    fewest: int = 3,
    clock: Clock | None = None,
) -> dict[str, list[float]]:
    """Return the seconds per call of each contender in every round.

    A short call is repeated for `at_least` seconds per round. A contender that would need more than
    its share of `budget` seconds runs only in the first rounds, but at least in the `fewest`.
    `clock` is `time.perf_counter` by default; `time.process_time` measures the time of the CPU.
    """
    calls, rounds_of = {}, {}
    for name, run in contenders.items():
        once = seconds_per_call(run, clock=clock)  # compiles and fills the caches
        if once < LONG or at_least:  # the first call may have been long because it compiled
            once = seconds_per_call(run, clock=clock)
        # the first calls take longer than later ones, so they alone would suggest too few calls
        count = 1
        while once * count < at_least:
            count *= 2
            once = seconds_per_call(run, count, clock)
        calls[name] = max(1, round(at_least / once))
        affordable = budget / len(contenders) / (once * calls[name])
        rounds_of[name] = int(min(rounds, max(fewest, affordable)))
    found: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for turn in range(max(rounds_of.values())):
        for name in order:
            if turn < rounds_of[name]:
                found[name].append(seconds_per_call(contenders[name], calls[name], clock))
        order.append(order.pop(0))  # another contender begins
    return found


def seconds_per_call(
    run: Callable[[], object], calls: int = 1, clock: Clock | None = None
) -> float:
    """Return the mean time of some calls, one after the other."""
    now = clock or time.perf_counter
    start = now()
    for _ in range(calls):
        run()
    return (now() - start) / calls
