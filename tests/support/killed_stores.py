"""Kill processes while they create a store or store runs in it.

    python -m tests.support.processes killed_stores COUNT SEED

This command prints, as JSON, how many were killed before and after the store existed, and how many
files of unfinished stores remain. After each kill, there must be either no store or a complete
store with every run that was reported as stored.
"""

import os
import random
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from quadric.apps.paper.sweep import Result, Store, Task
from tests.support.killing import FORK, killed
from tests.support.sweep_process import HERE, RECIPE

RESULT = Result((0.25, 0.5, 0.75), 1.5, 600)


def seeds(path):
    with Store(path, read_only=True) as opened:
        return [row.task.seed for row in opened.runs(RECIPE, "data")]


def store_runs(path, told):
    """Store runs, and count in shared memory those that were reported as stored."""
    while True:  # opened and closed often, so that some kills occur at these moments
        with Store(path) as opened:
            first = len(opened.runs(RECIPE, "data"))
            for seed in range(first, first + 3):
                opened.add(RECIPE, "data", Task(600, 10, "linear", seed), RESULT, HERE)
                told.value += 1


def run(count, seed):
    rng, outcomes = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as directory:
        path, told = Path(directory) / "0.sqlite", FORK.RawValue("l", 0)
        for number in range(count):
            if rng.random() < 0.3:
                path, told.value = Path(directory) / f"{number}.sqlite", 0
            seconds = rng.choice((0.003, 0.01, 0.05)) * rng.random() * 2
            killed(partial(store_runs, path, told), partial(time.sleep, seconds))
            found = seeds(path) if path.exists() else []
            # the last run may have been stored but not reported
            assert found == list(range(len(found)))
            assert told.value <= len(found) <= told.value + 1, (told.value, len(found))
            told.value = len(found)
            outcomes["after" if path.exists() else "before"] += 1
        outcomes["left"] = len([name for name in os.listdir(directory) if ".new" in name])
    return outcomes
