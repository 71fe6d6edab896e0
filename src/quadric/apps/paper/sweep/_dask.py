"""Sweeps on the workers of a Dask cluster; the only module that imports `distributed`.

Runs are submitted in rounds. If a worker dies, the scheduler moves its runs to workers that have
the data. Runs are lost if the last worker with the data dies, if several workers die during one
run, or if the scheduler restarts. The next round sends the data again and resubmits the lost runs.
"""

import contextlib
import logging
import re
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from quadric.apps.paper.sweep._task import (
    ENGINE,
    FAILED,
    AnyTask,
    Finished,
    Method,
    environment,
    run_task,
)
from quadric.datasets import ImageData
from quadric.utils import require

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
