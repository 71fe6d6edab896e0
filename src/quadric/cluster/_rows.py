"""The rows of Dask collections as canonical blocks on the workers, and sums over them."""

import time
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.cluster import _workers as workers
from quadric.cluster._collections import (
    column_names,
    dtype_of,
    is_collection,
    n_columns,
    parts_of,
)
from quadric.cluster._parts import (
    Facts,
    as_column,
    as_given,
    as_numbers,
    combined_in,
    cut,
    facts_of,
    joined,
    nodes_in,
    range_of,
    taken,
)
from quadric.training import BLOCK_ROWS, divide, total_of

ATTEMPTS = 5  # at the same step, without any result,
SECONDS_OF_ATTEMPTS = 60  # and at least this long


class _Here:
    """Dask's own scheduler, in this process."""

    shares = (1,)

    def begin(self) -> None:
        pass

    def changed(self) -> bool:
        return False

    def read(self, parts: Sequence[Any]) -> list[Any]:
        from dask import base

        compute: Any = base.compute
        return list(compute(*parts))

    def submit(self, function: Callable[..., Any], *arguments: Any, at: int | None = None) -> Any:
        return function(*arguments)

    def results(self, values: Sequence[Any]) -> list[Any]:
        return list(values)

    def wait(self, values: Sequence[Any]) -> None:
        pass

    def recover(self) -> None:
        raise AssertionError("nothing is lost in a single process")


class _Cluster:
    """The workers of the client's cluster. Values are futures, which survive dead workers."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.shares: tuple[int, ...] = ()
        self.addresses: list[str] = []
        self.made: weakref.WeakSet[Any] = weakref.WeakSet()
        workers.check_workers(client)
        workers.warn_about_processors(client)

    def begin(self) -> None:
        """Note the workers among which the blocks are divided.

        Older tasks are canceled. Otherwise the scheduler may keep tasks of the user's collection
        for a lost worker, and the new ones would wait for them.
        """
        workers.cancel(self.client, list(self.made))
        self.made.clear()
        found = workers.wait_for_worker(self.client)
        self.addresses, self.shares = list(found), tuple(found.values())

    def changed(self) -> bool:
        """Whether there are other workers than at `begin`."""
        found = workers.threads_of_workers(self.client)
        return bool(found) and list(found) != self.addresses

    def read(self, parts: Sequence[Any]) -> list[Any]:
        """Begin to compute delayed parts, neighbors on the same worker."""
        futures: list[Any] = []
        limits = divide(len(parts), self.shares)
        for address, (start, stop) in zip(self.addresses, pairwise(limits), strict=True):
            if start < stop:
                some = list(parts[start:stop])
                futures += self.client.compute(some, workers=[address], allow_other_workers=True)
        self.made.update(futures)
        return futures

    def submit(self, function: Callable[..., Any], *arguments: Any, at: int | None = None) -> Any:
        where = {} if at is None else {"workers": [self.addresses[at]], "allow_other_workers": True}
        future = self.client.submit(function, *arguments, pure=False, **where)
        self.made.add(future)
        return future

    def results(self, futures: Sequence[Any]) -> list[Any]:
        return workers.gathered(self.client, futures, self.addresses)

    def wait(self, futures: Sequence[Any]) -> None:
        workers.wait_for(self.client, futures, self.addresses)

    def recover(self) -> None:
        """Wait until the scheduler has noticed lost workers, and until there is one."""
        time.sleep(0.5)
        workers.wait_for_worker(self.client)


def _place() -> Any:
    """Return the cluster of the default client, or else this process."""
    from distributed import default_client

    try:
        return _Cluster(default_client())
    except ValueError:
        return _Here()


class Rows:
    """The rows of X, with targets and weights, in blocks that stay in the memory of the workers.

    Parameters
    ----------
    X : Dask array or dataframe
    y, weight : Dask array, series or dataframe, or array, optional
    classify : bool
        Whether the targets are classes, which are stored as codes.
    numbers : bool
        Whether X is converted to an array of numbers, or kept as it is.

    Attributes
    ----------
    n_rows, n_columns : int
    columns : list of str or None
    dtype : dtype
        The dtype of X as numbers.
    classes : array or None
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Any = None,
        *,
        classify: bool = False,
        numbers: bool = True,
    ) -> None:
        is_collection(X)  # or the extra is missing
        self.given = {"X": X, "y": y, "sample_weight": weight}
        self.n_columns, self.columns = n_columns(X), column_names(X)
        self.dtype = dtype_of(X) if numbers else None
        self.classify, self.numbers = classify, numbers
        self.classes: Array | None = None
        self.target_shape: tuple[int, ...] = ()
        self.n_rows = -1
        self.place = _place()
        self.ranges: list[Any] = []
        self._repeated(lambda: None)

    # ---- sums --------------------------------------------------------------------------------

    def total(self, function: Callable[..., Array], *arguments: Any) -> Array:
        """Return the sum over all blocks; see `quadric.training.Total`.

        There is one task per worker, which receives the arguments once.
        """

        def evaluate() -> Array:
            tasks = [self.place.submit(nodes_in, one, function, arguments) for one in self.ranges]
            return total_of(self.place.results(tasks))

        return self._repeated(evaluate)

    def combined(
        self,
        function: Callable[..., Any],
        combine: Callable[[Sequence[Any]], Any],
        *arguments: Any,
    ) -> Any:
        """Return what `combine` makes of `function(block, *arguments)` of all blocks.

        The result must not depend on the order, as that of a minimum or of a set.
        """

        def evaluate() -> Any:
            tasks = [
                self.place.submit(combined_in, one, function, combine, arguments)
                for one in self.ranges
            ]
            return combine(self.place.results(tasks))

        return self._repeated(evaluate)

    def take(self, numbers: Array) -> tuple[Any, Array | None, Array | None]:
        """Return the rows with these numbers, in increasing order: X, y and weights."""

        def pick() -> Any:
            tasks = [self.place.submit(taken, one, np.sort(numbers)) for one in self.ranges]
            return [part for part in self.place.results(tasks) if part is not None]

        found = self._repeated(pick)
        X, y, weight = ([part[k] for part in found] for k in range(3))
        return joined(X), *(None if p[0] is None else np.concatenate(p) for p in (y, weight))

    def _repeated(self, step: Callable[[], Any]) -> Any:
        """Return the result of a step, which is repeated if workers die meanwhile."""
        start, attempts = time.monotonic(), 0
        while True:
            try:
                if attempts:
                    self.place.recover()
                if not self.ranges or self.place.changed():
                    self._divide()
                return step()
            except workers.LostError as error:
                self.ranges = []
                attempts += 1
                if attempts >= ATTEMPTS and time.monotonic() - start > SECONDS_OF_ATTEMPTS:
                    raise RuntimeError(
                        f"the Dask cluster lost its workers {attempts} times during the same step "
                        f"({error}). Check their memory and their logs, then start again."
                    ) from None

    # ---- blocks ------------------------------------------------------------------------------

    def _divide(self) -> None:
        """Read the collections, and divide their blocks among the workers."""
        self.ranges = []  # release the old ones first
        self.place.begin()
        values = {role: self._read(role) for role in self.given if self.given[role] is not None}
        facts = {role: self._facts(role, values[role]) for role in values}
        self._check(facts)
        n_blocks = -(-self.n_rows // BLOCK_ROWS)
        limits = divide(n_blocks, self.place.shares)
        ranges, own = [], workers.versions()
        for k, (first, last) in enumerate(pairwise(limits)):
            if first == last:
                continue
            start, stop = first * BLOCK_ROWS, min(last * BLOCK_ROWS, self.n_rows)
            parts = [
                self._between(values[role], facts[role], start, stop) if role in values else []
                for role in self.given
            ]
            classes = self.classes if self.classify else None
            ranges.append(self.place.submit(range_of, first, *parts, classes, own, at=k))
        self.place.wait(ranges)
        self.ranges = ranges

    def _read(self, role: str) -> list[Any]:
        """Begin to read the parts of a collection."""
        from dask.delayed import delayed

        convert: Any = as_column
        columns = None
        dtype: Any = None if role == "y" else np.float64
        if role == "X":
            convert, columns = (as_numbers if self.numbers else as_given), self.columns
            dtype = self.dtype
        read = delayed(convert, pure=False)
        return self.place.read([read(part, columns, dtype) for part in parts_of(self.given[role])])

    def _facts(self, role: str, values: Sequence[Any]) -> list[Facts]:
        """Return the facts about each part; an error names the part that cannot be read."""
        distinct = role == "y" and self.classify
        found = [self.place.submit(facts_of, value, distinct) for value in values]
        try:
            return self.place.results(found)
        except (workers.LostError, ConnectionError):
            raise
        except Exception as error:
            number = self._failed(values)
            if number is None:  # it is not about a part
                raise
            raise type(error)(f"part {number} of {role} cannot be used: {error}") from error

    @staticmethod
    def _failed(values: Sequence[Any]) -> Any:
        return next(
            (k for k, one in enumerate(values) if getattr(one, "status", "") == "error"), None
        )

    def _check(self, facts: dict[str, list[Facts]]) -> None:
        """Set the number of rows and the classes, or check that they are those of the last time."""
        counts = {role: sum(one.rows for one in some) for role, some in facts.items()}
        n_rows = counts["X"]
        for role, count in counts.items():
            if count != n_rows:
                raise ValueError(
                    f"X and {role} must have the same number of rows. Got {n_rows:,} and {count:,}."
                )
        if n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if self.n_rows not in (-1, n_rows):
            raise ValueError(
                f"the collection had {self.n_rows:,} rows and now has {n_rows:,}. Do not change "
                "its files during a fit."
            )
        self.n_rows = n_rows
        for k, part in enumerate(facts["X"]):
            if len(part.shape) != 2 or part.shape[1] != self.n_columns:
                raise ValueError(
                    f"part {k} of X has shape {part.shape}, but X has {self.n_columns} columns."
                )
        if "y" in facts:
            shapes = {one.shape[1:] for one in facts["y"] if one.rows}
            if len(shapes) > 1:
                raise ValueError(f"the parts of y have different shapes: {sorted(shapes)}.")
            self.target_shape = shapes.pop()
        if self.classify:
            values = [one.values for one in facts["y"] if one.values is not None and one.rows]
            if not values:
                raise ValueError(
                    "y must have one column of classes on a Dask collection. Got shape "
                    f"(n_samples, {self.target_shape[0]}). Fit one classifier per column."
                )
            self.classes = np.unique(np.concatenate(values))

    def _between(self, values: list[Any], facts: list[Facts], start: int, stop: int) -> list[Any]:
        """Return the values for the rows from `start` to `stop`; parts at the ends are cut."""
        found, before = [], 0
        for value, one in zip(values, facts, strict=True):
            low, high = max(start, before), min(stop, before + one.rows)
            if low < high:
                whole = high - low == one.rows
                found.append(
                    value if whole else self.place.submit(cut, value, low - before, high - before)
                )
            before += one.rows
        return found
