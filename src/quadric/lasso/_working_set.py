"""The groups that may be nonzero, with the columns of their terms and their second derivatives."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from quadric.checks import Array
from quadric.lasso._problem import Problem
from quadric.utils import check_limit, loop_threads

BLOCK = 256  # columns that are allocated, and whose products are computed, at once


class Columns:
    """The values of some terms for all samples, in blocks of columns, in the order of arrival."""

    def __init__(self, problem: Problem) -> None:
        self.terms = problem.terms
        self.places: dict[int, int] = {}
        self._blocks: list[Array] = []

    def __len__(self) -> int:
        return len(self.places)

    @property
    def blocks(self) -> list[tuple[slice, Array]]:
        """The positions and the values of each block."""
        ends = [min(first + BLOCK, len(self)) for first in range(0, len(self), BLOCK)]
        return [
            (slice(k * BLOCK, end), block[:, : end - k * BLOCK])
            for k, (end, block) in enumerate(zip(ends, self._blocks, strict=True))
        ]

    def add(self, terms: Iterable[int]) -> None:
        """Compute the values of the terms that are not known."""
        new = [term for term in dict.fromkeys(terms) if term not in self.places]
        needed = 8 * self.terms.n_samples * (len(self) + len(new))
        text = f"a working set of {len(self) + len(new):,} terms"
        check_limit(needed, text, "Set max_terms, or a larger alpha.")
        while new:
            first = len(self) % BLOCK
            if first == 0:
                self._blocks.append(np.empty((self.terms.n_samples, BLOCK), order="F"))
            some, new = new[: BLOCK - first], new[BLOCK - first :]
            room = self._blocks[-1][:, first : first + len(some)]
            self.terms.columns(np.array(some), out=room)
            self.places.update({term: len(self) + c for c, term in enumerate(some)})

    def times(self, table: Array) -> Array:
        """The columns times the coefficients in a table, shape (n_samples, K)."""
        found = np.zeros((self.terms.n_samples, table.shape[1]))
        for some, values in self.blocks:
            found += values @ table[some]
        return found

    def sums(self, weighted: Array) -> Array:
        """The columns, transposed, times an array of shape (n_samples, m)."""
        return np.concatenate(
            [values.T @ weighted for _, values in self.blocks] or [np.zeros((0, weighted.shape[1]))]
        )

    def at(self, places: Array) -> Array:
        """A copy of the columns at these positions."""
        found = np.empty((self.terms.n_samples, len(places)), order="F")
        for k, place in enumerate(places):
            found[:, k] = self._blocks[place // BLOCK][:, place % BLOCK]
        return found


class Curvature:
    """Second derivatives of the mean loss, by keys: pairs of a class and a column.

    They are those at some earlier point, which Newton's method needs only approximately, so that a
    new column adds its own rows and no other changes. The intercepts are eliminated:
    H - mixed' own^-1 mixed.
    """

    def __init__(self, problem: Problem, columns: Columns) -> None:
        self.problem, self.columns = problem, columns
        self.K = problem.Y.shape[1]
        self.forget(problem.Y)

    def forget(self, response: Array) -> None:
        """Start again at other predictions."""
        self.response = response
        self.keys: dict[tuple[int, int], int] = {}
        self._H, self.mixed = np.empty((0, 0)), np.empty((self.K, 0))
        weight, curvature = self.problem.terms.weight, self.problem.function.curvature
        own = [[weight @ curvature(response, k, l) for l in range(self.K)] for k in range(self.K)]
        self.inverse = np.linalg.pinv(np.array(own), hermitian=True)

    @property
    def H(self) -> Array:
        """The second derivatives; its rows may be longer than the number of keys."""
        return self._H[: len(self.keys)]

    def places(self, keys: Iterable[tuple[int, int]]) -> Array:
        """The positions of the keys, which are added if necessary."""
        keys = list(keys)
        new = [key for key in dict.fromkeys(keys) if key not in self.keys]
        self._make_room(len(self.keys) + len(new))
        for k in range(self.K):
            of_class = np.array([column for klass, column in new if klass == k], dtype=np.intp)
            for first in range(0, len(of_class), BLOCK):
                self._add(k, of_class[first : first + BLOCK])
        return np.array([self.keys[key] for key in keys], dtype=np.intp)

    def _make_room(self, size: int) -> None:
        if size <= len(self._H):
            return
        room = max(size, int(1.5 * len(self._H)) + 32)
        check_limit(8 * room**2, f"{size:,} coefficients", "Set max_terms, or a larger alpha.")
        H, mixed, old = np.empty((room, room)), np.empty((self.K, room)), len(self.keys)
        H[:old, :old], mixed[:, :old] = self._H[:old, :old], self.mixed[:, :old]
        self._H, self.mixed = H, mixed

    def _add(self, k: int, columns: Array) -> None:
        """Add keys of one class."""
        first = len(self.keys)
        new = slice(first, first + len(columns))
        self.keys.update({(k, int(c)): first + a for a, c in enumerate(columns)})
        classes, places = (np.array(part) for part in zip(*self.keys, strict=True))
        A, weight = self.columns.at(columns), self.problem.terms.weight
        for l in range(self.K):
            rows = np.flatnonzero(classes == l)
            B = (weight * self.problem.function.curvature(self.response, k, l))[:, None] * A
            self.mixed[l, new] = B.sum(axis=0)
            if len(rows):
                self._H[rows, new] = self._products(B)[places[rows]]
        end = slice(0, new.stop)
        self._H[end, new] -= self.mixed[:, end].T @ (self.inverse @ self.mixed[:, new])
        self._H[new, end] = self._H[end, new].T

    def _products(self, B: Array) -> Array:
        """The columns, transposed, times B; by several threads, because BLAS has only one."""
        with ThreadPoolExecutor(max(1, loop_threads())) as pool:
            parts = pool.map(lambda block: block[1].T @ B, self.columns.blocks)
            return np.concatenate(list(parts))


@dataclass
class WorkingSet:
    """The groups that may be nonzero, and their coordinates.

    Coordinate c belongs to class `klass[c]` and to column `column[c]`. Group g has the coordinates
    starts[g] to starts[g + 1] - 1.
    """

    groups: list[tuple[int, int]]
    columns: Columns
    klass: Array
    column: Array
    starts: Array

    @classmethod
    def of(cls, problem: Problem, groups: list[tuple[int, int]], columns: Columns) -> "WorkingSet":
        """Return the working set of these groups; columns are added if necessary."""
        members = [problem.members(group) for _, group in groups]
        every = [term for some in members for term in some]
        columns.add(every)
        sizes = [len(some) for some in members]
        return cls(
            groups,
            columns,
            np.repeat([k for k, _ in groups], sizes).astype(np.intp),
            np.array([columns.places[term] for term in every], dtype=np.intp),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
        )

    @property
    def sizes(self) -> Array:
        """The number of coordinates of each group."""
        return np.diff(self.starts)

    @property
    def keys(self) -> list[tuple[int, int]]:
        """The class and the column of each coordinate."""
        return list(zip(self.klass.tolist(), self.column.tolist(), strict=True))

    def table(self, x: Array, K: int) -> Array:
        """The coefficients of the columns, shape (columns, K), that the coordinates x add up to."""
        found = np.zeros((len(self.columns), K))
        np.add.at(found, (self.column, self.klass), x)
        return found

    def norms(self, x: Array) -> Array:
        """The norm of each group."""
        return np.sqrt(np.add.reduceat(x * x, self.starts[:-1])) if len(x) else np.zeros(0)
