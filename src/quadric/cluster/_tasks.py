"""Independent tasks on the workers of a cluster, repeated until every one has a result.

Tasks are submitted in rounds. If a worker dies, the scheduler moves its tasks to workers that have
the data. Tasks are lost if the last worker with the data dies, if several workers die during one
task, or if the scheduler restarts. The next round sends the data again and resubmits the lost
tasks.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from quadric.cluster._workers import (
    SECONDS_TO_GATHER,
    LostError,
    Versions,
    Watch,
    address_of,
    advice,
    check_workers,
    mismatch,
    one_line,
    versions,
    wait_for_worker,
)

ROUNDS_WITHOUT_RESULT = 5  # maximum number of such rounds in a row
SECONDS_TO_LOOK = 10.0  # at the cluster, while tasks are awaited
RETRIES = 3  # for a task that raises an error; the scheduler itself moves runs of a dead worker


def run_tasks(
    client: Any,
    function: Callable[[Any, Any], Any],
    tasks: Sequence[Any],
    shared: Any = None,
    *,
    own: Callable[[], Versions] = versions,
    note: Callable[[Any], str] = str,
) -> Generator[Any, None, None]:
    """Yield `function(task, shared)` of each task, as the tasks finish.

    Parameters
    ----------
    client : distributed.Client
        See `connected`.
    function : callable(task, shared)
        A function of a module that the workers can import.
    tasks : sequence
        Hashable values.
    shared : object
        Sent to each worker once, and again if it is lost.
    own : callable
        Returns the versions that all workers must have in common with this process; by default,
        those of quadric, NumPy and numba.
    note : callable(task)
        Returns the note that is added to the error of a task.

    Yields
    ------
    object
        The result of a task.

    Raises
    ------
    RuntimeError
        If a worker has other versions, if no task finishes any more, or if there are no workers for
        five minutes.
    ConnectionError
        If the scheduler is gone.

    Examples
    --------
    >>> with connected("tcp://10.0.0.1:8786") as client:  # doctest: +SKIP
    ...     results = list(run_tasks(client, simulate, range(100), data))
    """
    check_workers(client, own)
    left, rounds = list(tasks), 0
    while left:
        lost: list[Any] = []
        reason = yield from _round(client, function, left, shared, lost, own, note)
        rounds = rounds + 1 if len(lost) == len(left) else 0
        if lost:
            time.sleep(0.5)  # the scheduler may not have noticed yet that a worker is gone
            wait_for_worker(client)
        if rounds == ROUNDS_WITHOUT_RESULT:
            raise RuntimeError(
                f"the Dask cluster at {address_of(client)} finished none of {len(left)} tasks in "
                f"{rounds} attempts ({reason}). "
                + advice(client, "check its workers, then run the same command again.")
            )
        left = lost


def _round(
    client: Any,
    function: Callable[[Any, Any], Any],
    tasks: Sequence[Any],
    shared: Any,
    lost: list[Any],
    own: Callable[[], Versions],
    note: Callable[[Any], str],
) -> Generator[Any, None, str]:
    """Submit the tasks and yield results; append lost tasks to `lost` and return the reason."""
    from distributed import KilledWorker

    try:
        # To one worker; the others fetch a copy when they first need it. `broadcast=True` can wait
        # forever if a worker dies meanwhile, and `hash=True` would read all of the data once more.
        sent = client.scatter(shared, hash=False)
        futures = {
            client.submit(
                run_checked, function, task, sent, own, own(), pure=False, retries=RETRIES
            ): task
            for task in tasks
        }
    except Exception as error:  # workers or the scheduler died in the meantime
        lost.extend(tasks)
        return one_line(error)
    reason, failures, left = "", [], dict(futures)
    try:
        for future in _finished(client, list(futures)):
            task = left.pop(future)
            raised = future.exception() if future.status == "error" else None
            if raised is None or isinstance(raised, KilledWorker):
                try:
                    result = future.result(timeout=SECONDS_TO_GATHER)
                except Exception as error:  # canceled, or lost before it arrived
                    lost.append(task)
                    reason = one_line(error)
                else:
                    yield result
            else:
                raised.add_note(note(task))
                failures.append(raised)
                _cancel(client, futures)
    except LostError as error:
        lost.extend(left.values())
        reason = one_line(error)
    finally:
        _cancel(client, futures)
    if failures:
        raise failures[0]
    return reason


def _finished(client: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """Yield the futures as they finish; raise LostError if no task is run any more."""
    from distributed import as_completed

    left, watch = dict.fromkeys(futures), Watch(client, futures, ())
    while left:
        try:
            for future in as_completed(list(left), loop=client.loop, timeout=SECONDS_TO_LOOK):
                del left[future]
                yield future
        except TimeoutError:
            watch.look()


def _cancel(client: Any, futures: dict[Any, Any]) -> None:
    """Cancel runs that have not started. A run in progress continues; its result is discarded."""
    if client.status == "running":
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.cancel([future for future in futures if not future.done()])


def run_checked(
    function: Callable[[Any, Any], Any],
    task: Any,
    shared: Any,
    own: Callable[[], Versions],
    expected: Versions,
) -> Any:
    """Run a task on a worker, which may have joined after the versions were checked."""
    if own() != expected:
        raise RuntimeError(mismatch(expected, "a worker that joined later", own()))
    return function(task, shared)
