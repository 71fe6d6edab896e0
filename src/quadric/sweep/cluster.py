"""A sweep on the workers of a Dask cluster; the only importer of `distributed`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import quadric
from quadric.sweep.environment import Environment, environment
from quadric.sweep.prepared import Data
from quadric.sweep.recipe import Recipe
from quadric.sweep.task import ENGINE, FAILED, Result, Task, run_task

__all__ = ["on_cluster"]

SECONDS_TO_CONNECT = 10
RETRIES = 3  # of a task that fails; those of a worker that dies are moved by the scheduler


def on_cluster(
    tasks: Sequence[Task], recipe: Recipe, data: Data, address: str
) -> Iterator[tuple[Task, Result, Environment]]:
    """The results as they come. The data travel once to every worker."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError(
            'a Dask cluster needs the package distributed: pip install "quadric[dask]"'
        ) from None
    with _connected(Client, address) as client:
        expected = versions()
        _check_workers(client, expected)
        # not `hash`: it would read all of the data once more
        shared = client.scatter(data, broadcast=True, hash=False)
        futures = {
            client.submit(run_remotely, task, recipe, shared, expected, pure=False,
                          retries=RETRIES): task
            for task in tasks
        }  # fmt: skip
        failure = None
        try:
            for future in as_completed(list(futures), loop=client.loop):
                if future.cancelled():
                    continue
                error = future.exception()
                if error is None:
                    yield futures[future], *future.result()
                elif failure is None:
                    error.add_note(FAILED.format(futures[future]))
                    failure = error
                    client.cancel([other for other in futures if not other.done()])
        finally:
            # a run that is under way ends by itself; its result is dropped
            client.cancel([other for other in futures if not other.done()])
        if failure is not None:
            raise failure


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


def _connected(client_class: Any, address: str) -> Any:
    if not re.fullmatch(r"[a-z]+://\S+:\d+", address):
        raise ConnectionError(
            f"{address!r} is no address of a Dask scheduler: give what `dask scheduler` prints, "
            "such as 'tcp://10.0.0.1:8786'."
        )
    try:
        return client_class(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answered at {address!r} ({error}). Start one with `dask "
            "scheduler`, and give the address that it prints, such as 'tcp://10.0.0.1:8786'."
        ) from error


def _check_workers(client: Any, expected: tuple[str, str]) -> None:
    found = client.run(versions, on_error="return")
    if not found:
        raise RuntimeError(
            "the Dask cluster has no workers. Start some with `dask worker ADDRESS`, then run the "
            "same command again."
        )
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
