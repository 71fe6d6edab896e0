"""A small sweep for tests: python -m tests.support.sweep_process STORE LOG

Every run writes a line to LOG when it starts.
"""

import os
import sys
from types import SimpleNamespace

import numpy as np

from quadric.apps.paper.sweep import (
    Environment,
    Recipe,
    Store,
    _runner as runner,
    run_sweep,
    table_tasks,
)
from tests.support.run_logs import write_line

RECIPE = Recipe(learning_rate=0.02, init_scale=0.05, epochs=(10, 20, 40))
HERE = Environment("a processor", "0", "0", "0", "0")
TASKS = table_tasks(range(2), sizes=[900, 1500], widths=[4, 12])


def images(n_train=1500, n_test=300, pixels=100, classes=5, seed=0):
    """Return mostly black images of `classes` shapes, similar enough that some are confused."""
    rng = np.random.default_rng(seed)
    shapes = rng.random((classes, pixels)) < 0.3
    n = n_train + n_test
    y = rng.integers(0, classes, n)
    seen = shapes[y] & (rng.random((n, pixels)) < 0.4) | (rng.random((n, pixels)) < 0.08)
    X = (seen * rng.integers(1, 256, (n, pixels))).astype(np.uint8)
    return SimpleNamespace(
        X_train=X[:n_train],
        y_train=y[:n_train],
        X_test=X[n_train:],
        y_test=y[n_train:],
        largest=255,
        checksum=f"images {n_train} {n_test} {pixels} {classes} {seed}",
    )


def table(runs):
    """Return the results that do not depend on where and how often a sweep or a study ran."""
    return {run.task: (run.result.accuracies, run.result.visited) for run in runs}


def end_the_worker(*arguments):
    """Kill the Dask worker instead of running a task."""
    os._exit(1)


def main(path, log):
    run_task = runner.run_task

    def logged(task, *arguments, **options):
        write_line(log, task)
        return run_task(task, *arguments, **options)

    runner.run_task = logged
    with Store(path) as store:
        run_sweep(TASKS, RECIPE, images(), store, jobs=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
