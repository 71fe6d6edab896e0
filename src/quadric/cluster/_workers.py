"""The connection to a cluster, its workers, and waiting with bounds.

Every wait ends: when the results are there, if the connection to the scheduler is lost, after
`SECONDS_WITHOUT_WORKERS` without any worker, or if no task is run any more. The scheduler itself
removes workers that do not answer.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import quadric
from quadric.utils import processor_name, require

SECONDS_TO_CONNECT = 10  # to the scheduler, at the start and after a lost connection
SECONDS_TO_FIRST_WORKER = 30
SECONDS_WITHOUT_WORKERS = 300
SECONDS_TO_ANSWER = 30  # for a question to the scheduler
SECONDS_TO_CHECK = 60  # the versions of all workers
SECONDS_TO_MOVE = 5  # the tasks of a lost worker to others
SECONDS_WITHOUT_TASKS = 300  # that run, while results are awaited; data may be sent meanwhile
SECONDS_TO_GATHER = 60  # for results that are ready
SECONDS_BETWEEN_LOOKS = 1.0  # at the cluster, while results are awaited
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
Versions = Mapping[str, str]


class LostError(Exception):
    """Raised if results were lost together with workers, so that they must be computed again."""


@contextlib.contextmanager
def connected(address: str, *, kept: str = "", default: bool = False) -> Iterator[Any]:
    """Connect to a Dask scheduler, and silence its logs: errors are reported in one line instead.

    Parameters
    ----------
    address : str
        The address that `dask scheduler` prints, such as 'tcp://10.0.0.1:8786'.
    kept : str, default=""
        A sentence about finished work, which begins the advice if the cluster is lost.
    default : bool, default=False
        Whether Dask collections use this client within the context.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ConnectionError
        If no scheduler answers at this address.

    Examples
    --------
    >>> with connected("tcp://10.0.0.1:8786", default=True):  # doctest: +SKIP
    ...     model.fit(X, y)
    """
    require("distributed", extra="dask", by="A Dask cluster")
    if not re.fullmatch(r"[a-z]+://\S+:\d+", address):
        raise ConnectionError(
            f"{address!r} is not the address of a Dask scheduler. Use the address that `dask "
            "scheduler` prints, such as 'tcp://10.0.0.1:8786'."
        )
    from distributed import Client  # imported first, because this resets the levels of the loggers

    with silent_logs():
        try:
            client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=default)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answered at {address!r} ({error}). Start one with `dask "
                "scheduler`, and use the address that it prints, such as 'tcp://10.0.0.1:8786'."
            ) from error
        client.quadric_kept = kept
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close()


@contextlib.contextmanager
def local_workers(count: int) -> Iterator[Any]:
    """Start worker processes with one thread each on this computer.

    Parameters
    ----------
    count : int
        The number of processes.

    Yields
    ------
    distributed.Client
        Dask collections use it within the context.

    Examples
    --------
    >>> with local_workers(16):  # doctest: +SKIP
    ...     model.fit(X, y)
    """
    require("distributed", extra="dask", by="local_workers")
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with (
        silent_logs(),
        LocalCluster(n_workers=count, processes=True, **options) as started,
        Client(started) as client,
    ):
        yield client


@contextlib.contextmanager
def silent_logs() -> Iterator[None]:
    """Silence the logs of Dask within the context."""
    with contextlib.ExitStack() as restore:
        for logger in map(logging.getLogger, LOGGERS):
            restore.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        yield


def address_of(client: Any) -> str:
    """The address of the scheduler."""
    return str(client.scheduler.address if client.scheduler else client._start_arg)


def advice(client: Any, text: str) -> str:
    """Return what to do next, after the sentence about finished work, if there is one."""
    kept = getattr(client, "quadric_kept", "")
    return f"{kept}{text}" if kept else text[0].upper() + text[1:]


# ---- workers ---------------------------------------------------------------------------------


def threads_of_workers(client: Any) -> dict[str, int]:
    """Return the number of threads of each worker, ordered by address."""
    try:
        found = client.sync(client.scheduler.ncores, callback_timeout=SECONDS_TO_ANSWER)
    except OSError:  # also TimeoutError
        return {}
    return dict(sorted(found.items()))


def wait_for_worker(client: Any, seconds: float | None = None) -> dict[str, int]:
    """Wait until the cluster has a worker; the scheduler may restart in the meantime.

    Return the number of threads of each worker, ordered by address.
    """
    seconds = SECONDS_WITHOUT_WORKERS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    while True:
        if client.status in ("closing", "closed"):
            raise connection_lost(client)
        if client.status == "running" and (found := threads_of_workers(client)):
            return found
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"the Dask cluster at {address_of(client)} has had no workers for {seconds:g} "
                "seconds. "
                + advice(
                    client,
                    "start workers with `dask worker ADDRESS`, then run the same command again.",
                )
            )
        time.sleep(0.2)


def connection_lost(client: Any) -> ConnectionError:
    """Return the error for a scheduler that does not answer any more."""
    return ConnectionError(
        f"the connection to the Dask scheduler at {address_of(client)} was lost. "
        + advice(
            client,
            "start a scheduler and workers, then run the same command again with the address that "
            "the scheduler prints.",
        )
    )


def versions() -> dict[str, str]:
    """Return the versions that determine the bits of a result."""
    return {"quadric": quadric.__version__, "numpy": version("numpy"), "numba": version("numba")}


def check_workers(client: Any, own: Callable[[], Versions] = versions) -> None:
    """Wait for a worker, and raise RuntimeError if a worker has other versions than this process.

    Parameters
    ----------
    client : distributed.Client
    own : callable
        A function of a module, which returns the versions that all workers must have.
    """
    try:
        wait_for_worker(client, SECONDS_TO_FIRST_WORKER)
        for worker, answer in _answers(client, own).items():
            # an OSError means that the worker has just died
            if answer != own() and not isinstance(answer, OSError):
                raise RuntimeError(mismatch(own(), worker, answer))
    except TimeoutError:  # a worker does not answer; the tasks check the versions again
        pass
    except OSError:
        raise connection_lost(client) from None


def _answers(client: Any, function: Callable[[], Any]) -> dict[str, Any]:
    """Return what the function returns on each worker, or raises there."""
    ask = client._run
    found = client.sync(ask, function, on_error="return", callback_timeout=SECONDS_TO_CHECK)
    return dict(found)


def mismatch(expected: Versions, worker: str, answer: Any) -> str:
    """Return the message for a worker whose versions differ."""
    found = (
        f"no usable quadric ({one_line(answer)})"
        if isinstance(answer, BaseException)
        else _in_words(answer)
    )
    return (
        f"all workers must have {_in_words(expected)}, like this process. Got {found} on {worker}; "
        f"install the same version there (pip install quadric=={expected['quadric']}) and restart "
        "the worker."
    )


def _in_words(given: Versions) -> str:
    return ", ".join(f"{name} {value}" for name, value in given.items())


def warn_about_processors(client: Any) -> None:
    """Warn if the workers have different processors, which may round differently."""
    with contextlib.suppress(OSError):
        answers = _answers(client, processor_name).values()
        names = sorted({answer for answer in answers if isinstance(answer, str)})
        if len(names) > 1:
            warnings.warn(
                f"the workers have different processors ({', '.join(names)}). The last digits of "
                "the result may depend on which of them compute it.",
                stacklevel=2,
            )


# ---- results ---------------------------------------------------------------------------------


def one_line(error: BaseException) -> str:
    """Describe an error in one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def wait_for(client: Any, futures: Sequence[Any], addresses: Sequence[str]) -> None:
    """Wait until the futures are finished or have failed.

    Raise LostError if they never will be, and ConnectionError or RuntimeError if the cluster or all
    of its workers are gone.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of Future
    addresses : sequence of str
        The workers that the tasks prefer.
    """
    from distributed import CancelledError, wait

    watch = Watch(client, futures, addresses)
    while True:
        try:
            wait(list(futures), timeout=SECONDS_BETWEEN_LOOKS)
            return
        except TimeoutError:
            watch.look()
        except (CancelledError, OSError, ValueError) as error:  # or the client has been closed
            raise LostError(one_line(error)) from None


def cancel(client: Any, futures: Sequence[Any]) -> None:
    """Cancel tasks, so that the scheduler forgets them and all on which only they depend."""
    if futures and client.status == "running":
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.sync(client._cancel, futures, callback_timeout=SECONDS_TO_ANSWER)


class Watch:
    """Notices that the tasks of some futures are not run any more.

    If there is no worker for a moment, the scheduler keeps a task that prefers a lost worker, and
    never gives it to a new one, although it may run anywhere.
    """

    def __init__(self, client: Any, futures: Sequence[Any], addresses: Sequence[str]) -> None:
        self.client, self.futures, self.addresses = client, futures, set(addresses)
        self.seen: Any = None
        self.since = time.monotonic()

    def look(self) -> None:
        """Raise LostError if no task has been run for too long, or all workers were replaced."""
        found = wait_for_worker(self.client)
        gone = self.addresses - set(found)
        if gone and gone == self.addresses:
            raise LostError("all workers have been replaced")
        seen = (list(found), [future.status for future in self.futures])
        if seen != self.seen or self._running():
            self.seen, self.since = seen, time.monotonic()
        limit = SECONDS_TO_MOVE if gone else SECONDS_WITHOUT_TASKS
        if time.monotonic() - self.since > limit:
            raise LostError(f"no task was run for {limit:g} seconds")

    def _running(self) -> bool:
        """Whether a worker runs a task on which the futures depend."""
        keys = [future.key for future in self.futures]
        try:
            ask = self.client.scheduler.call_stack
            return bool(self.client.sync(ask, keys=keys, callback_timeout=SECONDS_TO_ANSWER))
        except Exception:  # a worker has just died, or the scheduler does not know a key
            return False


def gathered(client: Any, futures: Sequence[Any], addresses: Sequence[str]) -> list[Any]:
    """Return the results of futures; raise LostError if some are lost, or the error of a task.

    The parameters are those of `wait_for`.
    """
    from distributed import CancelledError, KilledWorker

    wait_for(client, futures, addresses)
    for future in futures:
        if future.status == "error":
            error = future.exception(timeout=SECONDS_TO_GATHER)
            if isinstance(error, (KilledWorker, CancelledError)):
                raise LostError(one_line(error))
            raise error
    canceled = (CancelledError, asyncio.CancelledError, concurrent.futures.CancelledError)
    try:
        return _fetched(client, futures, addresses)
    except (*canceled, KilledWorker, OSError, KeyError) as error:
        raise LostError(one_line(error)) from None


def _fetched(client: Any, futures: Sequence[Any], addresses: Sequence[str]) -> list[Any]:
    """Return the results; they may be computed again in the meantime, if a worker dies."""
    watch = Watch(client, futures, addresses)
    answer = asyncio.run_coroutine_threadsafe(client._gather(futures), client.loop.asyncio_loop)
    # Not canceled if it is lost: it ends when the futures are released, and canceled coroutines of
    # Dask leave errors in the log.
    while not concurrent.futures.wait([answer], SECONDS_BETWEEN_LOOKS).done:
        watch.look()
    return list(answer.result())
