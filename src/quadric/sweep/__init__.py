"""Many training runs of one recipe: on all cores or a Dask cluster, resumable at any moment.

>>> from quadric.sweep import Recipe, table_tasks
>>> tasks = table_tasks(range(5), sizes=[600, 1200])
>>> len(tasks), str(tasks[0])
(150, '600 images, 10 hidden, linear, seed 0')

Then ``run_sweep(tasks, Recipe(), data, Store("mnist.sqlite"))``.
"""

from quadric.errors import StoreError
from quadric.sweep.environment import Environment, environment
from quadric.sweep.prepared import Data
from quadric.sweep.recipe import Recipe
from quadric.sweep.runner import run_sweep
from quadric.sweep.store import Row, Store
from quadric.sweep.task import ENGINE, Result, Task, run_task, table_tasks

__all__ = [
    "ENGINE",
    "Data",
    "Environment",
    "Recipe",
    "Result",
    "Row",
    "Store",
    "StoreError",
    "Task",
    "environment",
    "run_sweep",
    "run_task",
    "table_tasks",
]
