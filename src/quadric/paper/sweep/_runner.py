"""Run the tasks of a sweep that are not in the store, and store each result immediately."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from quadric._utils import checks
from quadric._utils.blas_threads import one_blas_thread
from quadric.datasets import ImageData
from quadric.paper.sweep._dask import on_cluster
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._store import Run, Store
from quadric.paper.sweep._task import FAILED, Finished, Task, environment, run_task


def run_sweep(
    tasks: Iterable[Task],
    recipe: Recipe,
    data: ImageData,
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    on_result: Callable[[Run, int, int], object] | None = None,
) -> list[Run]:
    """Run the tasks that are not in the store, and return all runs in the order of the tasks.

    Parameters
    ----------
    tasks : iterable of Task
    recipe : Recipe
    data : ImageData
        Only one copy is held in memory, regardless of the number of jobs.
    store : Store
        Only this process writes to it. Each run is stored as soon as it is finished. If the sweep
        ends early (Ctrl-C, an error or kill -9), the next sweep resumes from there.
    jobs : int, optional
        Number of threads; by default one per core. The results do not depend on it.
    dask : str, optional
        The address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'. Its workers run the tasks,
        and `jobs` is ignored.
    on_result : callable(run, done, total), optional
        Called for every newly finished run. `done` includes the runs found in the store.
    """
    wanted = list(dict.fromkeys(tasks))
    if jobs is not None:
        jobs = checks.check_integer("jobs", jobs, at_least=1)
    largest = max((task.size for task in wanted), default=0)
    if largest > len(data.X_train):
        raise ValueError(
            f"tasks must use at most {len(data.X_train)} training images, the number available. "
            f"Got {largest} instead."
        )
    stored = {run.task: run for run in store.runs(recipe, data.checksum)}
    runs = {task: stored[task] for task in wanted if task in stored}
    # longest first, so that no core is idle at the end while a long run that started late finishes
    missing = sorted(set(wanted) - set(runs), key=lambda task: (-task.cost, task))
    if missing:
        results: Any = (  # a generator
            _in_threads(missing, recipe, data, jobs)
            if dask is None
            else on_cluster(missing, recipe, data, dask)
        )
        with contextlib.closing(results):  # stops the other runs if anything is raised here
            for task, result, where in results:
                runs[task] = store.add(recipe, data.checksum, task, result, where)
                if on_result is not None:
                    on_result(runs[task], len(runs), len(wanted))
    return [runs[task] for task in wanted]


def _in_threads(
    tasks: Sequence[Task], recipe: Recipe, data: ImageData, jobs: int | None
) -> Iterator[Finished]:
    """Yield results as runs finish. Threads suffice, because the compiled loop releases the GIL."""
    from joblib import cpu_count

    stop = threading.Event()
    failure: BaseException | None = None
    # set once for all runs, because changing the number of threads makes BLAS threads spin
    with one_blas_thread(), ThreadPoolExecutor(jobs or cpu_count()) as pool:
        runs = {
            pool.submit(run_task, task, recipe, data, cancelled=stop.is_set): task for task in tasks
        }
        try:
            for run in as_completed(runs):
                error = run.exception()
                if error is None:
                    yield runs[run], run.result(), environment()
                elif failure is None:
                    error.add_note(FAILED.format(runs[run]))
                    failure = error
                    stop.set()
        finally:
            stop.set()  # running tasks stop at the end of their epoch
            pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure
