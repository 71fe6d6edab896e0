"""Timing on a noisy machine: alternate between the contenders and keep the best time of each."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(contenders: dict[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Return the shortest time of each contender; all of them run once in every round."""
    best = dict.fromkeys(contenders, float("inf"))
    for run in contenders.values():  # compile and fill the caches
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
