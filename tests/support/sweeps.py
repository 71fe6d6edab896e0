"""A small sweep, a small study and bilinear MLPs on small images, also in other processes.

    python -m tests.support.sweeps sweep|study|bilinear STORE LOG JOBS

Every run of this command writes a line to LOG when it starts.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from quadric import datasets
from quadric.apps.paper import Context, Verdict, _bilinear as reproduction
from quadric.apps.paper.sweep import (
    Environment,
    Recipe,
    Store,
    Study,
    StudyTask,
    _runner as runner,
    run_sweep,
    table_tasks,
)

RECIPE = Recipe(learning_rate=0.02, init_scale=0.05, epochs=(10, 20, 40))
HERE = Environment("a processor", "0", "0", "0", "0")
TASKS = table_tasks(range(2), sizes=[900, 1500], widths=[4, 12])
STUDY_TASKS = [
    StudyTask(size, width, kind, seed)
    for size in (5, 9)
    for width in (1, 2)
    for kind in ("one model", "another")
    for seed in range(3)
]
SMALL = {"epochs": 2, "batch": 128, "certified": 20, "ranks": [1, 5], "distances": [0.0, 0.5]}


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


def digits():
    """Return two data sets of 8 x 8 images with the names of the real ones."""
    data, parts = datasets.digits(), {"mnist": slice(500), "fashion_mnist": slice(-500, None)}
    return [
        replace(data, name=name, X_train=data.X_train[rows], y_train=data.y_train[rows])
        for name, rows in parts.items()
    ]


def context(store, **options):
    first, second = digits()
    return Context(**{"images": first, "fashion": second, "jobs": 1, "store": store} | options)


def table(runs):
    """Return the results that do not depend on where and how often a sweep or a study ran."""
    return {run.task: (run.result.accuracies, run.result.visited) for run in runs}


def train(task, settings, data):
    """Return two numbers that depend on the task."""
    rng = np.random.default_rng([task.seed, task.size, task.hidden, len(task.kind)])
    return tuple(rng.random(2)), task.size


def fails(task, settings, data):
    raise ArithmeticError("no result")


study = partial(Study, "a study", ("first", "second"))


def end_the_worker(*arguments):
    """Kill the Dask worker instead of running a task."""
    os._exit(1)


# ---- in another process --------------------------------------------------------------------


@dataclass
class Logged:
    """A function that writes its first argument to a log; other processes can import it."""

    function: Callable[..., Any]
    log: str
    seconds: float = 0.0  # to wait

    def __call__(self, task, *arguments, **options):
        with Path(self.log).open("a") as file:
            file.write(f"{task}\n")
        time.sleep(self.seconds)
        return self.function(task, *arguments, **options)


def lines(log):
    """Return the lines that have been written so far."""
    return log.read_text().splitlines() if log.exists() else []


def wait_for_lines(process, log, count, timeout=60):
    """Wait until as many runs have started, or the process has ended."""
    deadline = time.monotonic() + timeout
    while len(lines(log)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def main(kind, path, log, jobs):
    with Store(path) as store:
        if kind == "sweep":
            runner.run_task = Logged(runner.run_task, log)
            run_sweep(TASKS, RECIPE, images(), store, jobs=int(jobs))
        elif kind == "study":
            slow = study(Logged(train, log, seconds=0.1))
            run_sweep(STUDY_TASKS, slow, None, store, jobs=int(jobs))
        else:
            reproduction.SETTINGS.update(SMALL)
            reproduction.WIDTH = 16
            reproduction.train = Logged(reproduction.train, log)
            reproduction.run(context(store, fashion=None, jobs=int(jobs)))


# ---- outcomes ----------------------------------------------------------------------------


def check_presentation(outcome):
    """Check the main result, the findings and the descriptions of the figures."""
    main = outcome.headline
    assert 0 < len(main.what) <= 34, main.what
    assert 0 < len(main.paper) <= 16, main.paper
    assert 0 < len(main.ours) <= 16, main.ours
    verdicts = {claim.id: claim.verdict for claim in outcome.claims}
    if main.claim:
        assert main.verdict is verdicts.get(main.claim, Verdict.UNKNOWN)
    assert outcome.findings
    assert all(finding.endswith(".") for finding in outcome.findings)
    for name in outcome.figures:  # the caption describes what is drawn, not what is seen
        described = outcome.descriptions.get(name, "")
        assert described != outcome.captions[name]
        assert len(described) > 80 or name.startswith("bilinear_eigenvectors"), name


if __name__ == "__main__":
    main(*sys.argv[1:])
