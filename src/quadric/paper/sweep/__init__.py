"""Many training runs of one recipe: on all cores or a Dask cluster, resumable at any moment.

>>> from quadric.paper.sweep import Recipe, table_tasks
>>> tasks = table_tasks(range(5), sizes=[600, 1200])
>>> len(tasks), str(tasks[0])
(150, '600 images, 10 hidden, linear, seed 0')

Then ``run_sweep(tasks, Recipe(), data, Store("mnist.sqlite"))``.
"""

from quadric.errors import StoreError
from quadric.paper.sweep._environment import Environment, environment
from quadric.paper.sweep._prepared import Data
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._row import Row
from quadric.paper.sweep._runner import run_sweep
from quadric.paper.sweep._store import Store
from quadric.paper.sweep._task import ENGINE, Result, Task, run_task, table_tasks

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
