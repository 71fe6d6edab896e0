"""Sweeps: resumable sets of training runs with one recipe, on all cores or on a Dask cluster.

The runs of a study, which has its own training function, use the same store.

The package imports `network`, `datasets` and `cluster`. Start with
`_runner.py`, which runs the tasks (`_task.py`) that are not in the store (`_store.py`).

>>> from quadric.apps.paper.sweep import Recipe, table_tasks
>>> tasks = table_tasks(range(5), sizes=[600, 1200])
>>> len(tasks), str(tasks[0])
(150, '600 images, 10 hidden, linear, seed 0')

Run them with ``run_sweep(tasks, Recipe(), data, Store("mnist.sqlite"))``.
"""

from quadric.apps.paper.sweep._runner import run_sweep
from quadric.apps.paper.sweep._store import Run, Store
from quadric.apps.paper.sweep._task import (
    ENGINE,
    RECIPES,
    SIZES,
    WIDTHS,
    Environment,
    Measured,
    Recipe,
    Result,
    Study,
    StudyTask,
    Task,
    environment,
    fit_network,
    initial_network,
    prepare,
    run_task,
    table_tasks,
)
from quadric.errors import StoreError

__all__ = [
    "ENGINE",
    "RECIPES",
    "SIZES",
    "WIDTHS",
    "Environment",
    "Measured",
    "Recipe",
    "Result",
    "Run",
    "Store",
    "StoreError",
    "Study",
    "StudyTask",
    "Task",
    "environment",
    "fit_network",
    "initial_network",
    "prepare",
    "run_sweep",
    "run_task",
    "table_tasks",
]
