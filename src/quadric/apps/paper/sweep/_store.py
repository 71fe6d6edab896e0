"""Finished runs in an SQLite file: one transaction per run, so that none is lost or repeated."""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from quadric.apps.paper.sweep import _store_file as store_file
from quadric.apps.paper.sweep._result import Environment, Result
from quadric.apps.paper.sweep._study import StudyTask
from quadric.apps.paper.sweep._task import ENGINE, AnyTask, Method, Task
from quadric.errors import StoreError

Key = tuple[str, str, str]  # recipe or study, engine, checksum of the data

# The types of the columns of the table `runs`.
TYPES = (
    *(str, str, str),  # the key
    *(int, int, str, int),  # the task
    *(str, float, int),  # the result, with its accuracies as JSON
    *(str, str, str, str, str),  # the environment
    str,  # the time
    str,  # the digest of all other values
)


@dataclass(frozen=True)
class Run:
    """A finished run, as stored; `finished_at` is an ISO 8601 time in UTC."""

    task: AnyTask
    result: Result
    environment: Environment
    finished_at: str


class Store:
    """A file of finished runs, created if it does not exist. Also a context manager.

    Parameters
    ----------
    path : str or Path
        Links are followed, and the file itself is locked, so a store has only one writer,
        regardless of the name under which it is opened.
    read_only : bool
        Whether to open the store for reading only, as a report does. Reading does not take a lock
        or change any files, and works while another process is writing to the store.

    Raises
    ------
    StoreError
        If another process has the store open for writing, if it cannot be written, or if the file
        is damaged, is not a store or has another format. In these cases, the file is not changed.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path, self._read_only = Path(path), read_only
        with contextlib.ExitStack() as undo, store_file.explained(self.path):
            self._file = Path(os.path.realpath(path))
            if not read_only:
                store_file.create(self._file)
                store_file.check_place(self._file)
                self._lock = store_file.Lock(self._file, f"the store {self.path}")
                undo.callback(self._lock.release)
            self._runs = self._read()
            if not read_only:
                self._connection = store_file.connect(self._file)
                undo.callback(self._connection.close)
                self._connection.executescript(store_file.SETTINGS)
                self._lock.renew()
            self._close = undo.pop_all()

    def runs(self, recipe: Method, checksum: str, *, engine: str = ENGINE) -> list[Run]:
        """Return all runs of the recipe or study on this data, in the order of their tasks."""
        if self._read_only:  # another process may have added runs
            with store_file.explained(self.path):
                self._runs = self._read()
        found = (run for key, run in self._runs if key == (recipe.key(), engine, checksum))
        return sorted(found, key=lambda run: run.task)

    def _read(self) -> list[tuple[Key, Run]]:
        """Read and verify the runs of all recipes."""
        values = store_file.read_all(self._file)
        try:
            return [from_values(row) for row in values]
        except (TypeError, ValueError, LookupError, RecursionError) as error:
            raise store_file.damaged(
                self.path, f"a run differs from what was written: {error}"
            ) from None

    def add(
        self,
        recipe: Method,
        checksum: str,
        task: AnyTask,
        result: Result,
        environment: Environment,
    ) -> Run:
        """Store a run permanently; a run that is already stored is not replaced."""
        if self._read_only:
            raise StoreError(f"the store {self.path} was opened for reading only.")
        run = Run(task, result, environment, datetime.now(UTC).isoformat(timespec="microseconds"))
        values = to_values((recipe.key(), ENGINE, checksum), run)
        checked = from_values(values)  # never write what could not be read back
        if not self._lock.is_in_place():
            raise StoreError(
                f"the store {self.path} was moved, removed or replaced while it was in use. Put it "
                "back, then run the same command again."
            )
        with store_file.explained(self.path):
            # outside BEGIN and COMMIT, every statement is its own transaction
            cursor = self._connection.execute(
                f"INSERT INTO runs VALUES ({', '.join('?' * len(values))}) ON CONFLICT DO NOTHING",
                values,
            )
        if cursor.rowcount:
            self._runs.append(checked)
        return run

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def to_values(key: Key, run: Run) -> tuple[Any, ...]:
    """Return the values of a row of the table `runs`."""
    # JSON writes the shortest text that reads back as the same number
    result = (json.dumps(run.result.accuracies), float(run.result.seconds), run.result.steps)
    task = (run.task.size, run.task.hidden, run.task.kind, run.task.seed)
    values = (*key, *task, *result, *astuple(run.environment), run.finished_at)
    return (*values, digest(values))


def from_values(values: Sequence[Any]) -> tuple[Key, Run]:
    """Return the key and the run of a row; raise ValueError or TypeError for an invalid row."""
    if tuple(map(type, values)) != TYPES:
        raise ValueError("a value has the wrong type")
    if values[-1] != digest(values[:-1]):
        raise ValueError("the digest does not match")
    accuracies = json.loads(values[7])
    seconds, steps = values[8:10]
    if not isinstance(accuracies, list) or not all(
        type(number) is float and 0 <= number <= 1 for number in accuracies
    ):
        raise ValueError("accuracies must be numbers from 0 to 1")
    method = json.loads(values[0])
    expected = method["measures" if "study" in method else "epochs"]
    if len(accuracies) != len(expected):
        raise ValueError(
            f"a run must have {len(expected)} accuracies, one for each of the recipe's epochs or "
            f"the study's measures. Got {len(accuracies)}"
        )
    if not (0 <= seconds < math.inf and steps >= 0):
        raise ValueError("seconds and steps must be finite and not negative")
    datetime.fromisoformat(values[15])
    result = Result(tuple(accuracies), seconds, steps)
    task = (StudyTask if "study" in method else Task)(*values[3:7])
    return (values[0], values[1], values[2]), Run(
        task, result, Environment(*values[10:15]), finished_at=values[15]
    )


def digest(values: Sequence[Any]) -> str:
    """Return a digest that detects damage, even if all numbers are plausible, but not forgery."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
