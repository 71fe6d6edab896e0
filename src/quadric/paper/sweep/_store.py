"""The finished runs of sweeps, in an SQLite file: each one transaction, none lost or done twice."""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from quadric.errors import StoreError
from quadric.paper.sweep import _store_file as store_file
from quadric.paper.sweep import _store_place as store_place
from quadric.paper.sweep._environment import Environment
from quadric.paper.sweep._lock import Lock
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._row import Key, Row, check_whole, from_values, to_values
from quadric.paper.sweep._store_errors import damaged, explained
from quadric.paper.sweep._task import ENGINE, Result, Task


class Store:
    """A file of finished runs; made where there is none. Also a context manager.

    Parameters
    ----------
    path : str or Path
        A link is followed, and the file that it leads to locked: a store has one writer, whatever
        name it is given by.
    read_only : bool
        For reports: takes no lock, changes nothing, and works while another process writes.

    Raises
    ------
    StoreError
        When another process has it open for writing, when the file is damaged, something else or
        of another format (it is left as it is), or when it cannot be written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._read_only = read_only
        with contextlib.ExitStack() as undo, explained(self.path):
            self._file = Path(os.path.realpath(path))
            if not read_only:
                if not os.path.lexists(self._file):
                    store_file.create(self._file)
                store_place.remove_unfinished_stores(self._file)
                store_place.check_place(self._file)
                self._lock = Lock(self._file, f"the store {self.path}")
                undo.callback(self._lock.release)
            self._all()
            if not read_only:
                self._connection = store_file.connect(self._file)
                undo.callback(self._connection.close)
                self._lock.renew()
            self._close = undo.pop_all()

    def rows(self, recipe: Recipe, checksum: str, *, engine: str = ENGINE) -> list[Row]:
        """All runs of that recipe on those data, in the order of their tasks."""
        with explained(self.path):
            found = [row for key, row in self._all() if key == (recipe.key(), engine, checksum)]
        try:
            for row in found:
                check_whole(row, recipe)
        except ValueError as error:
            raise damaged(self.path, error) from None
        return sorted(found, key=lambda row: row.task)

    def _all(self) -> list[tuple[Key, Row]]:
        """Every run, whatever its recipe; all of them have been checked."""
        values = store_file.read_all(self._file)
        try:
            return [from_values(row) for row in values]
        except (TypeError, ValueError, RecursionError) as error:
            raise damaged(self.path, f"a run in it is not what was written: {error}") from None

    def add(
        self, recipe: Recipe, checksum: str, task: Task, result: Result, environment: Environment
    ) -> Row:
        """Store a run, for good when this returns; one that is there already stays as it is."""
        if self._read_only:
            raise StoreError(f"the store {self.path} was opened for reading only.")
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        row = Row(task, result, environment, now)
        values = to_values((recipe.key(), ENGINE, checksum), row)
        from_values(values)  # nothing is written that could not be read
        check_whole(row, recipe)
        if not self._lock.is_in_place():
            raise StoreError(
                f"the store {self.path} was moved, removed or replaced while it was in use. Put it "
                "back, then run the same command again."
            )
        with explained(self.path):
            # without an open transaction a statement is one
            self._connection.execute(
                f"INSERT INTO runs VALUES ({', '.join('?' * len(values))}) ON CONFLICT DO NOTHING",
                values,
            )
        return row

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
