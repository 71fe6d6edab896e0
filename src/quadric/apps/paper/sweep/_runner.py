"""Run the tasks of a sweep that are not in the store, and store each result immediately.

The tasks run in threads or processes, or on the workers of a Dask cluster; this is the only module
that imports `distributed`. There, runs are submitted in rounds. If a worker dies, the scheduler
moves its runs to workers that have the data. Runs are lost if the last worker with the data dies,
if several workers die during one run, or if the scheduler restarts. The next round sends the data
again and resubmits the lost runs.
"""

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
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
from quadric.datasets import ImageData
from quadric.utils import one_blas_thread, require

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


SECONDS_TO_CONNECT = 10  # to the scheduler, at the start and after a lost connection
SECONDS_TO_FIRST_WORKER = 30
SECONDS_WITHOUT_WORKERS = 300
SECONDS_TO_GATHER = 30  # for one result of a few hundred bytes
ROUNDS_WITHOUT_RESULT = 5  # maximum number of such rounds in a row
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
RETRIES = 3  # for a task that raises an error; the scheduler itself moves runs of a dead worker


def on_cluster(
    tasks: Sequence[AnyTask], recipe: Method, data: ImageData | None, address: str
) -> Generator[Finished, None, None]:
    """Yield results as runs finish. Each worker gets the data once; lost data are sent again."""
    with _connected(address) as client:
        try:
            _wait_for_worker(client, address, SECONDS_TO_FIRST_WORKER)
            for worker, answer in client.run(versions, on_error="return").items():
                # an OSError means that the worker has just died
                if answer != versions() and not isinstance(answer, OSError):
                    raise RuntimeError(_mismatch(versions(), worker, answer))
        except OSError:
            raise _connection_lost(address) from None
        left, rounds = list(tasks), 0
        while left:
            lost: list[AnyTask] = []
            reason = yield from _round(client, left, recipe, data, lost)
            rounds = rounds + 1 if len(lost) == len(left) else 0
            if lost:
                time.sleep(0.5)  # the scheduler may not have noticed yet that a worker is gone
                _wait_for_worker(client, address, SECONDS_WITHOUT_WORKERS)
            if rounds == ROUNDS_WITHOUT_RESULT:
                raise RuntimeError(
                    f"the Dask cluster at {address} finished none of {len(left)} runs in {rounds} "
                    f"attempts ({reason}). Finished runs are stored; check its workers, then run "
                    "the same command again."
                )
            left = lost


def _round(
    client: Any,
    tasks: Sequence[AnyTask],
    recipe: Method,
    data: ImageData | None,
    lost: list[AnyTask],
) -> Generator[Finished, None, str]:
    """Submit the tasks and yield results; append lost tasks to `lost` and return the reason."""
    from distributed import KilledWorker, as_completed

    try:
        # To one worker; the others fetch a copy when they first need it. `broadcast=True` can wait
        # forever if a worker dies meanwhile, and `hash=True` would read all of the data once more.
        shared = client.scatter(data, hash=False)
        futures = {
            client.submit(
                run_remotely, task, recipe, shared, versions(), pure=False, retries=RETRIES
            ): task
            for task in tasks
        }
    except Exception as error:  # workers or the scheduler died in the meantime
        lost.extend(tasks)
        return _one_line(error)
    reason, failures = "", []
    try:
        for future in as_completed(list(futures), loop=client.loop):
            raised = future.exception() if future.status == "error" else None
            if raised is None or isinstance(raised, KilledWorker):
                try:
                    result = future.result(timeout=SECONDS_TO_GATHER)
                except Exception as error:  # canceled, or lost before it arrived
                    lost.append(futures[future])
                    reason = _one_line(error)
                else:
                    yield result
            else:
                raised.add_note(FAILED.format(futures[future]))
                failures.append(raised)
                _cancel(client, futures)
    finally:
        _cancel(client, futures)
    if failures:
        raise failures[0]
    return reason


def _cancel(client: Any, futures: dict[Any, AnyTask]) -> None:
    """Cancel runs that have not started. A run in progress continues; its result is discarded."""
    if client.status == "running":
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel([future for future in futures if not future.done()])


def _wait_for_worker(client: Any, address: str, seconds: float) -> None:
    """Wait until the cluster has a worker; the scheduler may restart in the meantime."""
    deadline = time.monotonic() + seconds
    while True:
        if client.status in ("closing", "closed"):
            raise _connection_lost(address)
        with contextlib.suppress(OSError):
            if client.status == "running" and client.nthreads():
                return
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"the Dask cluster at {address} has had no workers for {seconds:g} seconds. "
                "Finished runs are stored; start workers with `dask worker ADDRESS`, then run the "
                "same command again."
            )
        time.sleep(0.2)


def _connection_lost(address: str) -> ConnectionError:
    return ConnectionError(
        f"the connection to the Dask scheduler at {address} was lost. Finished runs are stored; "
        "start a scheduler and workers, then run the same command again with the address that the "
        "scheduler prints."
    )


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def run_remotely(
    task: AnyTask, recipe: Method, data: ImageData | None, expected: tuple[str, str]
) -> Finished:
    """Run a task on a worker, which may have joined after the versions were checked."""
    if versions() != expected:
        raise RuntimeError(_mismatch(expected, "a worker that joined later", versions()))
    return task, run_task(task, recipe, data), environment()


def versions() -> tuple[str, str]:
    """Return the versions that all workers of a sweep must have in common."""
    return environment().quadric, ENGINE


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler, and silence its logs: errors are reported in one line instead."""
    require("distributed", extra="dask", by="A Dask cluster")
    if not re.fullmatch(r"[a-z]+://\S+:\d+", address):
        raise ConnectionError(
            f"{address!r} is not the address of a Dask scheduler. Use the address that `dask "
            "scheduler` prints, such as 'tcp://10.0.0.1:8786'."
        )
    from distributed import Client  # imported first, because this resets the levels of the loggers

    with contextlib.ExitStack() as restore:
        for logger in map(logging.getLogger, LOGGERS):
            restore.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        try:
            client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answered at {address!r} ({error}). Start one with `dask "
                "scheduler`, and use the address that it prints, such as 'tcp://10.0.0.1:8786'."
            ) from error
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close()


def _mismatch(expected: tuple[str, str], worker: str, answer: Any) -> str:
    found = (
        f"no usable quadric ({_one_line(answer)})"
        if isinstance(answer, BaseException)
        else f"quadric {answer[0]}, engine {answer[1]}"
    )
    return (
        f"all workers must have quadric {expected[0]}, engine {expected[1]}, like this process. "
        f"Got {found} on {worker}; install the same version there and restart the worker."
    )
