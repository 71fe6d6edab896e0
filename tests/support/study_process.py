"""A small study for tests: python -m tests.support.study_process STORE LOG JOBS

Every run writes a line to LOG when it starts.
"""

import functools
import sys
import time

import numpy as np

from quadric.apps.paper.sweep import Store, Study, StudyTask, run_sweep
from tests.support.run_logs import write_line

TASKS = [
    StudyTask(size, width, kind, seed)
    for size in (5, 9)
    for width in (1, 2)
    for kind in ("one model", "another")
    for seed in range(3)
]


def train(task, settings, data):
    """Return two numbers that depend on the task; take a moment."""
    if log := settings.get("log"):
        write_line(log, task)
        time.sleep(0.1)
    rng = np.random.default_rng([task.seed, task.size, task.hidden, len(task.kind)])
    return tuple(rng.random(2)), task.size


def fails(task, settings, data):
    raise ArithmeticError("no result")


study = functools.partial(Study, "a study", ("first", "second"))


def logged(log):
    """Return the study with a log. All logs have the same key, so that runs resume."""
    made = study(train, {"log": str(log)})
    object.__setattr__(made, "key", study(train).key)
    return made


def main(path, log, jobs):
    with Store(path) as store:
        run_sweep(TASKS, logged(log), None, store, jobs=int(jobs))


if __name__ == "__main__":
    main(*sys.argv[1:])
