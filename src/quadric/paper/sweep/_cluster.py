"""A sweep on the workers of a Dask cluster; the only importer of `distributed`.

Runs are submitted in rounds. The scheduler itself moves the runs of a worker that dies to others,
as long as one of them has the data. It cancels runs when the data are lost with the last worker
that had them, gives a run up when several workers died in it, and forgets everything when it ends
and is started again. All of these are lost runs: the next round sends the data once more, and
submits them again.
"""

import contextlib
import logging
import re
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import quadric
from quadric.paper.sweep._environment import Environment, environment
from quadric.paper.sweep._prepared import Data
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._task import ENGINE, FAILED, Result, Task, run_task

SECONDS_TO_CONNECT = 10  # to the scheduler, also when the connection was lost
SECONDS_TO_FIRST_WORKER = 30
SECONDS_WITHOUT_WORKERS = 300
SECONDS_TO_GATHER = 30  # a result of some hundred bytes
ROUNDS_WITHOUT_RESULT = 5  # in a row
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
RETRIES = 3  # of a task that fails; those of a worker that dies are moved by the scheduler

Finished = tuple[Task, Result, Environment]


def on_cluster(
    tasks: Sequence[Task], recipe: Recipe, data: Data, address: str
) -> Iterator[Finished]:
    """The results as they come. The data travel once to every worker, unless they are lost."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            'a Dask cluster needs the package distributed: pip install "quadric[dask]"'
        ) from None
    with _quiet(), _connected(Client, address) as client:
        expected = versions()
        try:
            _check_workers(client, address, expected)
        except OSError:
            raise _gone(address) from None
        left, rounds = list(tasks), 0
        while left:
            lost: list[Task] = []
            reason = yield from _round(client, left, (recipe, data, expected), lost)
            rounds = rounds + 1 if len(lost) == len(left) else 0
            if lost:
                time.sleep(0.5)  # for the scheduler to notice that a worker is gone
                _wait_for_worker(client, address, SECONDS_WITHOUT_WORKERS)
            if rounds == ROUNDS_WITHOUT_RESULT:
                raise RuntimeError(
                    f"the Dask cluster at {address} finished none of {len(left)} runs in {rounds} "
                    f"attempts ({reason}). The runs that had finished are stored; see to its "
                    "workers, then run the same command again."
                )
            left = lost


def _round(
    client: Any, tasks: Sequence[Task], arguments: tuple[Recipe, Data, tuple[str, str]],
    lost: list[Task],
) -> Generator[Finished, None, str]:  # fmt: skip
    """Submit the tasks, and give what is finished; returns why others, put into `lost`, are not."""
    from distributed import KilledWorker, as_completed

    recipe, data, expected = arguments
    reason, failure = "", None
    futures: dict[Any, Task] = {}
    try:
        try:
            # not `hash`: it would read all of the data once more
            shared = client.scatter(data, broadcast=True, hash=False)
            for task in tasks:
                future = client.submit(
                    run_remotely, task, recipe, shared, expected, pure=False, retries=RETRIES
                )
                futures[future] = task
        except Exception as error:  # workers or the scheduler died meanwhile
            lost.extend(tasks)
            return _named(error)
        for future in as_completed(list(futures), loop=client.loop):
            task = futures[future]
            raised = future.exception() if future.status == "error" else None
            if raised is None or isinstance(raised, KilledWorker):
                try:
                    result = future.result(timeout=SECONDS_TO_GATHER)
                except Exception as error:  # cancelled, or the result was lost before it was here
                    lost.append(task)
                    reason = _named(error)
                else:
                    yield task, *result
            elif failure is None:
                raised.add_note(FAILED.format(task))
                failure = raised
                _cancel(client, futures)
    finally:
        _cancel(client, futures)
    if failure is not None:
        raise failure
    return reason


def _cancel(client: Any, futures: dict[Any, Task]) -> None:
    """Cancel what has not begun. A run that is under way ends by itself; its result is dropped."""
    if client.status == "running":
        with contextlib.suppress(Exception):  # without a scheduler there is nothing to be cancelled
            client.cancel([future for future in futures if not future.done()])


def _wait_for_worker(client: Any, address: str, seconds: float) -> None:
    """Return when the cluster has a worker; the scheduler may be started anew meanwhile."""
    deadline = time.monotonic() + seconds
    while True:
        if client.status in ("closing", "closed"):
            raise _gone(address)
        if client.status == "running":
            with contextlib.suppress(OSError):
                if client.nthreads():
                    return
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"the Dask cluster at {address} has had no workers for {seconds:g} seconds. The "
                "runs that had finished are stored; start workers with `dask worker ADDRESS`, then "
                "run the same command again."
            )
        time.sleep(0.2)


def _gone(address: str) -> ConnectionError:
    return ConnectionError(
        f"the connection to the Dask scheduler at {address} was lost. The runs that had finished "
        "are stored; start a scheduler and workers, then run the same command again with the "
        "address that the scheduler prints."
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep distributed from logging at length what is said here in one line."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _named(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def run_remotely(
    task: Task, recipe: Recipe, data: Data, expected: tuple[str, str]
) -> tuple[Result, Environment]:
    """`run_task` on a worker. It may have joined after the others were asked for their versions."""
    if versions() != expected:
        raise RuntimeError(_mismatch(expected, {"a worker that joined later": versions()}))
    return run_task(task, recipe, data), environment()


def versions() -> tuple[str, str]:
    """What must be the same everywhere, so that a table has one origin."""
    return quadric.__version__, ENGINE


@contextlib.contextmanager
def _connected(client_class: Any, address: str) -> Iterator[Any]:
    if not re.fullmatch(r"[a-z]+://\S+:\d+", address):
        raise ConnectionError(
            f"{address!r} is no address of a Dask scheduler: give what `dask scheduler` prints, "
            "such as 'tcp://10.0.0.1:8786'."
        )
    try:
        client = client_class(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answered at {address!r} ({error}). Start one with `dask "
            "scheduler`, and give the address that it prints, such as 'tcp://10.0.0.1:8786'."
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # there may be nobody to take leave of
            client.close()


def _check_workers(client: Any, address: str, expected: tuple[str, str]) -> None:
    found: dict[str, Any] = {}
    for _ in range(ROUNDS_WITHOUT_RESULT):
        _wait_for_worker(client, address, SECONDS_TO_FIRST_WORKER)
        answers = client.run(versions, on_error="return")
        # of a worker that dies at this moment the answer is an OSError
        found = {name: told for name, told in answers.items() if not isinstance(told, OSError)}
        if found:
            break
        time.sleep(0.5)
    others = {worker: answer for worker, answer in found.items() if answer != expected}
    if others:
        raise RuntimeError(_mismatch(expected, others))


def _mismatch(expected: tuple[str, str], others: dict[str, Any]) -> str:
    def named(answer: Any) -> str:
        if isinstance(answer, BaseException):
            return f"no usable quadric ({type(answer).__name__}: {answer})"
        return f"quadric {answer[0]}, engine {answer[1]}"

    worker, answer = next(iter(others.items()))
    return (
        f"all workers must have quadric {expected[0]}, engine {expected[1]}, as here. Got "
        f"{named(answer)} on {worker}; install the same version there and start it again."
    )
