"""A sweep: the tasks that are not in the store yet are run, and each result stored at once."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from quadric._utils import checks
from quadric._utils.blas_threads import one_blas_thread
from quadric.paper.sweep._environment import Environment, environment
from quadric.paper.sweep._prepared import Data
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._row import Row
from quadric.paper.sweep._store import Store
from quadric.paper.sweep._task import FAILED, CancelledError, Result, Task, run_task

Finished = tuple[Task, Result, Environment]


def run_sweep(
    tasks: Iterable[Task],
    recipe: Recipe,
    data: Data,
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    on_result: Callable[[Row, int, int], object] | None = None,
) -> list[Row]:
    """Run the tasks that the store does not have; returns the rows of all, in the tasks' order.

    Parameters
    ----------
    tasks : iterable of Task
    recipe : Recipe
    data : Data
        Held once, whatever the number of jobs.
    store : Store
        Written by this process alone, a run as soon as it has finished. Whatever ends the sweep
        early (Ctrl-C, an error, kill -9), the next one goes on from there.
    jobs : int, optional
        Threads; by default as many as this process may use cores. The results do not depend on it.
    dask : str, optional
        The address of a Dask scheduler, such as 'tcp://10.0.0.1:8786': its workers run the tasks,
        and `jobs` is not used.
    on_result : callable(row, done, total), optional
        Called for every newly finished run; `done` counts those found in the store, too.
    """
    wanted = list(dict.fromkeys(tasks))
    if jobs is not None:
        jobs = checks.check_integer("jobs", jobs, at_least=1)
    largest = max((task.size for task in wanted), default=0)
    if largest > len(data.X_train):
        raise ValueError(
            f"tasks must ask for at most {len(data.X_train)} training images, as many as there "
            f"are. Got {largest} instead."
        )
    stored = {row.task: row for row in store.rows(recipe, data.checksum)}
    rows = {task: stored[task] for task in wanted if task in stored}
    # the longest first, so that at the end no core waits for a long one begun late
    missing = sorted(set(wanted) - set(rows), key=lambda task: (-task.cost, task))
    if missing:
        # closed at once, whatever happens here: nothing goes on running behind our back
        with contextlib.closing(_finished(missing, recipe, data, jobs, dask)) as finished:
            for task, result, where in finished:
                rows[task] = store.add(recipe, data.checksum, task, result, where)
                if on_result is not None:
                    on_result(rows[task], len(rows), len(wanted))
    return [rows[task] for task in wanted]


def _finished(
    tasks: Sequence[Task], recipe: Recipe, data: Data, jobs: int | None, dask: str | None
) -> Any:  # a generator of Finished
    if dask is None:
        return _in_threads(tasks, recipe, data, jobs)
    from quadric.paper.sweep._cluster import on_cluster

    return on_cluster(tasks, recipe, data, dask)


def _in_threads(
    tasks: Sequence[Task], recipe: Recipe, data: Data, jobs: int | None
) -> Iterator[Finished]:
    """The results as they come. Threads will do: the compiled loop lets others run."""
    from joblib import Parallel, cpu_count, delayed

    stop = threading.Event()

    def run(task: Task) -> tuple[Task, Result | Exception]:
        try:
            return task, run_task(task, recipe, data, cancelled=stop.is_set)
        except Exception as error:  # a result, too: raised, it would take those before it along
            return task, error

    parallel = Parallel(
        n_jobs=jobs or cpu_count(), prefer="threads", return_as="generator_unordered"
    )
    failure: Exception | None = None
    with one_blas_thread():  # for all runs: its threads turn idly whenever the number changes
        results = parallel(delayed(run)(task) for task in tasks)
        try:
            for task, outcome in results:
                if isinstance(outcome, Result):
                    yield task, outcome, environment()
                elif failure is None:
                    outcome.add_note(FAILED.format(task))
                    failure = outcome
                    stop.set()
        finally:
            stop.set()  # what still runs ends with its epoch
            with contextlib.suppress(CancelledError):
                results.throw(CancelledError)  # not `close`, which warns of the runs not made
    if failure is not None:
        raise failure
