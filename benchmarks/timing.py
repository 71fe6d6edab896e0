"""Timing that can be trusted on a noisy machine: take turns, keep the best."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(contenders: dict[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The least time of each over all rounds; all of them run in every round."""
    best = dict.fromkeys(contenders, float("inf"))
    for run in contenders.values():  # compile, fill caches
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
