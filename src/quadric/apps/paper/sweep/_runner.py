"""Run the tasks of a sweep that are not in the store, and store each result immediately.

The tasks run in threads or processes, or on the workers of a Dask cluster (`quadric.cluster`),
where lost runs are repeated.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import Any

from joblib import Parallel, cpu_count, delayed

from quadric import Network
from quadric.apps.paper.sweep._store import Run, Store
from quadric.apps.paper.sweep._task import (
    ENGINE,
    FAILED,
    AnyTask,
    Finished,
    Method,
    Study,
    environment,
    run_task,
)
from quadric.checks import check_integer
from quadric.cluster import connected, run_tasks
from quadric.datasets import ImageData
from quadric.utils import one_blas_thread

SECONDS_IDLE = 10  # after which a process without work ends
NO_DATA = "none"  # instead of a checksum, in the key of runs that use no images


def run_sweep(
    tasks: Iterable[AnyTask],
    recipe: Method,
    data: ImageData | None,
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    on_result: Callable[[Run, int, int], object] = lambda run, done, total: None,
    on_model: Callable[[AnyTask, Network], object] | None = None,
) -> list[Run]:
    """Run the tasks that are not in the store, and return all runs in the order of the tasks.

    Parameters
    ----------
    tasks : iterable of Task, or of StudyTask
    recipe : Recipe, or Study
    data : ImageData or None
        Only one copy is held in memory, regardless of the number of jobs. None for a study that
        does not need images.
    store : Store
        Only this process writes to it. Each run is stored as soon as it is finished. If the sweep
        ends early (Ctrl-C, an error or kill -9), the next sweep resumes from there.
    jobs : int, optional
        Number of threads or, for a study, processes; by default one per core. The results do not
        depend on it.
    dask : str, optional
        The address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'. Its workers run the tasks,
        and `jobs` is ignored.
    on_result : callable(run, done, total), optional
        Called for every newly finished run. `done` includes the runs found in the store.
    on_model : callable(task, network), optional
        Called with the network of every newly finished run that returns one, before the run is
        stored, so that the network of a stored run has always been passed on.
    """
    wanted = dict.fromkeys(tasks)
    if jobs is not None:
        jobs = check_integer("jobs", jobs, at_least=1)
    largest = max((task.size for task in wanted), default=0)
    if data is not None and largest > len(data.X_train):
        raise ValueError(
            f"tasks must use at most {len(data.X_train)} training images, the number available. "
            f"Got {largest} instead."
        )
    checksum = NO_DATA if data is None else data.checksum
    runs = {run.task: run for run in store.runs(recipe, checksum) if run.task in wanted}
    # longest first, so that no core is idle at the end while a long run that started late finishes
    missing = sorted(wanted.keys() - runs.keys(), key=lambda task: (-task.cost, task))
    if missing:
        if dask is not None:
            results = on_cluster(missing, recipe, data, dask)
        elif isinstance(recipe, Study):
            results = _in_processes(missing, recipe, data, jobs)
        else:
            results = _in_threads(missing, recipe, data, jobs)
        with contextlib.closing(results):  # stops the other runs if anything is raised here
            for task, result, where in results:
                if result.model is not None and on_model is not None:
                    on_model(task, result.model)
                runs[task] = store.add(recipe, checksum, task, replace(result, model=None), where)
                on_result(runs[task], len(runs), len(wanted))
    return [runs[task] for task in wanted]


def _in_threads(
    tasks: Sequence[AnyTask], recipe: Method, data: ImageData | None, jobs: int | None
) -> Generator[Finished, None, None]:
    """Yield results as runs finish. Threads suffice, because the compiled loop releases the GIL."""
    stop = threading.Event()
    failures = []
    # set once for all runs, because changing the number of threads makes BLAS threads spin
    with one_blas_thread(), ThreadPoolExecutor(jobs or cpu_count()) as pool:
        runs = [pool.submit(_noted, task, recipe, data, cancelled=stop.is_set) for task in tasks]
        try:
            for run in as_completed(runs):
                if error := run.exception():
                    stop.set()  # the others then fail, too, and the first error is the cause
                    failures.append(error)
                else:
                    yield run.result()
        finally:
            stop.set()  # running tasks stop at the end of their epoch
            pool.shutdown(cancel_futures=True)
    if failures:
        raise failures[0]


def _in_processes(
    tasks: Sequence[AnyTask], study: Study, data: ImageData | None, jobs: int | None
) -> Generator[Finished, None, None]:
    """Yield results as runs finish. Studies spend much of their time in Python, under the GIL."""
    # One job runs in this process. For more, joblib maps large arrays into memory, so that the
    # processes share one copy of the data.
    parallel = Parallel(
        n_jobs=min(jobs or cpu_count(), len(tasks)),
        backend="loky",
        return_as="generator_unordered",
        idle_worker_timeout=SECONDS_IDLE,
        initializer=_end_with,
        initargs=(os.getpid(),),
    )
    yield from parallel(delayed(_noted)(task, study, data) for task in tasks)


def _end_with(parent: int) -> None:
    """End this process soon after its parent; without this, it could outlive a killed parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _noted(task: AnyTask, recipe: Method, data: ImageData | None, **options: Any) -> Finished:
    """Run a task; if it fails, a note on the error names it."""
    try:
        return task, run_task(task, recipe, data, **options), environment()
    except Exception as error:
        error.add_note(FAILED.format(task))
        raise


# ---- the workers of a Dask cluster -------------------------------------------------------


KEPT = "Finished runs are stored; "


def on_cluster(
    tasks: Sequence[AnyTask], recipe: Method, data: ImageData | None, address: str
) -> Generator[Finished, None, None]:
    """Yield results as runs finish. Each worker gets the data once; lost data are sent again."""
    with connected(address, kept=KEPT) as client:
        run = partial(run_remotely, recipe)
        yield from run_tasks(client, run, tasks, data, own=versions, note=FAILED.format)


def run_remotely(recipe: Method, task: AnyTask, data: ImageData | None) -> Finished:
    """Run a task on a worker."""
    return task, run_task(task, recipe, data), environment()


def versions() -> dict[str, str]:
    """Return the versions that all workers of a sweep must have in common."""
    return {"quadric": environment().quadric, "engine": ENGINE}
