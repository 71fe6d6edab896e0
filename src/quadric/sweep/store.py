"""The finished runs of sweeps, in an SQLite file: each one transaction, none lost or done twice.

WAL mode, so that a report can be read while a sweep writes. With ``synchronous = FULL`` a run
that was stored also survives a loss of power. NORMAL would survive a killed process only, and
what it saves (0.06 against 0.23 ms a row where it was measured) is nothing beside a run.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from quadric.errors import StoreError
from quadric.sweep import store_file
from quadric.sweep.environment import Environment
from quadric.sweep.lock import Lock
from quadric.sweep.recipe import Recipe
from quadric.sweep.store_file import explained
from quadric.sweep.task import ENGINE, Result, Task

__all__ = ["Row", "Store"]


@dataclass(frozen=True)
class Row:
    """A finished run as it is stored; `finished_at` is in UTC, as ISO 8601 writes it."""

    task: Task
    result: Result
    environment: Environment
    finished_at: str


class Store:
    """A file of finished runs; made where there is none. Also a context manager.

    Parameters
    ----------
    path : str or Path
    read_only : bool
        For reports: takes no lock, writes nothing, and works while another process writes.

    Raises
    ------
    StoreError
        When another process has it open for writing, when the file is something else or of
        another format (it is left as it is), or when it cannot be written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        with contextlib.ExitStack() as undo, explained(self.path):
            if not read_only:
                beside = self.path.with_name(self.path.name + ".lock")
                lock = Lock(beside, f"the store {self.path}")
                undo.callback(lock.release)
                if not self.path.exists():
                    store_file.create(self.path)
            store_file.check_header(self.path)
            self._connection = store_file.connect(self.path, read_only)
            undo.callback(self._connection.close)
            store_file.check_contents(self.path, self._connection)
            if not read_only:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            self._close = undo.pop_all()

    def rows(self, recipe: Recipe, checksum: str, *, engine: str = ENGINE) -> list[Row]:
        """All runs of that recipe on those data, in the order of their tasks."""
        with explained(self.path):
            found = self._connection.execute(
                "SELECT size, hidden, kind, seed, accuracies, seconds, steps, cpu, quadric, numpy, "
                "numba, python, finished_at FROM runs WHERE recipe = ? AND engine = ? AND data = ? "
                "ORDER BY size, hidden, kind, seed",
                (recipe.key(), engine, checksum),
            ).fetchall()
        try:
            return [
                Row(
                    Task(*values[:4]),
                    Result(tuple(json.loads(values[4])), *values[5:7]),
                    Environment(*values[7:12]),
                    values[12],
                )
                for values in found
            ]
        except (TypeError, ValueError):
            raise StoreError(
                f"{self.path} is damaged: a run in it is not what was written. Give another file, "
                "or delete this one to begin anew."
            ) from None

    def add(
        self, recipe: Recipe, checksum: str, task: Task, result: Result, environment: Environment
    ) -> Row:
        """Store a run, for good when this returns; one that is there already stays as it is."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        key = (recipe.key(), ENGINE, checksum, *astuple(task))
        # JSON writes the shortest text that reads back as the same number
        values = (json.dumps(result.accuracies), result.seconds, result.steps)
        row = (*key, *values, *astuple(environment), now)
        with explained(self.path):
            # without an open transaction a statement is one
            self._connection.execute(
                f"INSERT INTO runs VALUES ({', '.join('?' * len(row))}) ON CONFLICT DO NOTHING", row
            )
        return Row(task, result, environment, now)

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
