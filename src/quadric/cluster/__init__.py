"""Fits and predictions on Dask collections; the only package of the library that imports Dask.

`_rows` puts the rows of a user's collections into canonical blocks on the workers, and sums over
them with one task per worker. `_parts` is what runs on the workers. `_workers` connects to a
cluster, checks its workers, and waits for results with bounds on time and on repetitions;
`_tasks` runs independent tasks and repeats those that were lost. `_predictions` maps predictions
to the parts of a collection.
"""

from quadric.cluster._collections import (
    check_absent as check_absent,
    is_collection as is_collection,
)
from quadric.cluster._parts import (
    odd_values as odd_values,
    weights_by_class as weights_by_class,
)
from quadric.cluster._predictions import lazily
from quadric.cluster._progress import Checkpoint as Checkpoint, checkpoint, current as current
from quadric.cluster._rows import Rows as Rows
from quadric.cluster._tasks import run_tasks
from quadric.cluster._workers import connected, local_workers

__all__ = ["checkpoint", "connected", "lazily", "local_workers", "run_tasks"]
