"""The connection to a cluster, its workers, and waiting with bounds.

Every wait ends: when the results are there, if the connection to the scheduler is lost, or after
`SECONDS_WITHOUT_WORKERS` without any worker. The scheduler itself removes workers that do not
answer.
"""

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
        return dict(sorted(client.nthreads().items()))
    except OSError:
        return {}


def wait_for_worker(client: Any, seconds: float | None = None) -> None:
    """Wait until the cluster has a worker; the scheduler may restart in the meantime."""
    seconds = SECONDS_WITHOUT_WORKERS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    while True:
        if client.status in ("closing", "closed"):
            raise connection_lost(client)
        if client.status == "running" and threads_of_workers(client):
            return
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
        for worker, answer in client.run(own, on_error="return").items():
            # an OSError means that the worker has just died
            if answer != own() and not isinstance(answer, OSError):
                raise RuntimeError(mismatch(own(), worker, answer))
    except OSError:
        raise connection_lost(client) from None


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
        answers = client.run(processor_name, on_error="return").values()
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

    Raise LostError if some were canceled or if none of the workers at `addresses` is left, and
    ConnectionError or RuntimeError if the cluster or all of its workers are gone.
    """
    from distributed import CancelledError, wait

    while True:
        try:
            wait(list(futures), timeout=SECONDS_BETWEEN_LOOKS)
            return
        except TimeoutError:
            wait_for_worker(client)
            # The scheduler does not give a task to a new worker if it prefers an old one and if
            # there was no worker for a moment.
            if not set(addresses) & set(threads_of_workers(client)):
                raise LostError("all workers have been replaced") from None
        except (CancelledError, OSError, ValueError) as error:  # or the client has been closed
            raise LostError(one_line(error)) from None


def gathered(client: Any, futures: Sequence[Any], addresses: Sequence[str]) -> list[Any]:
    """Return the results of futures; raise LostError if some are lost, or the error of a task."""
    from distributed import CancelledError, KilledWorker

    wait_for(client, futures, addresses)
    for future in futures:
        if future.status == "error":
            error = future.exception(timeout=SECONDS_TO_GATHER)
            if isinstance(error, (KilledWorker, CancelledError)):
                raise LostError(one_line(error))
            raise error
    try:
        return list(client.sync(client._gather, futures, callback_timeout=SECONDS_TO_GATHER))
    except (CancelledError, KilledWorker, OSError, KeyError) as error:
        raise LostError(one_line(error)) from None
