"""Bilinear MLPs on small images: python -m tests.support.bilinear_process STORE LOG JOBS

The command trains the four variants on one data set. Every run writes a line to LOG when it starts.
"""

import sys
from dataclasses import dataclass, replace

from quadric import datasets
from quadric.apps.paper import Context, _bilinear as reproduction
from quadric.apps.paper.sweep import Store
from tests.support.run_logs import write_line

SMALL = {"epochs": 2, "batch": 128, "certified": 20, "ranks": [1, 5], "distances": [0.0, 0.5]}


def images():
    """Return two data sets of 8 x 8 images with the names of the real ones."""
    digits = datasets.digits()
    first = replace(
        digits, name="mnist", X_train=digits.X_train[:500], y_train=digits.y_train[:500]
    )
    last = {"X_train": digits.X_train[-500:], "y_train": digits.y_train[-500:]}
    return first, replace(digits, name="fashion_mnist", **last)


def context(store, **options):
    first, second = images()
    return Context(**{"images": first, "fashion": second, "jobs": 1, "store": store} | options)


@dataclass
class Logged:
    """The training function with a log; other processes can import it."""

    log: str

    def __call__(self, task, settings, data):
        write_line(self.log, f"{data.name} {task.kind}")
        return train(task, settings, data)


train = reproduction.train


def main(path, log, jobs):
    reproduction.SETTINGS.update(SMALL)
    reproduction.WIDTH = 16
    reproduction.train = Logged(log)
    with Store(path) as store:
        reproduction.run(context(store, fashion=None, jobs=int(jobs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
