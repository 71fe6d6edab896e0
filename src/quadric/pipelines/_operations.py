"""What preprocessing does to a table, as data: the operations that every step is made of.

Each operation maps columns to columns. `width(n)` is the number of columns that it returns for n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils.arrays import Array


@dataclass(frozen=True)
class Affine:
    """z = A (u - center) + shift; a vector A stands for a diagonal matrix.

    The center is kept apart: in float32, subtracting it first loses no digits.
    """

    A: Array
    center: Array
    shift: Array

    @property
    def t(self) -> Array:
        """The constant term: z = A u + t."""
        product = self.A * self.center if self.A.ndim == 1 else self.A @ self.center
        return self.shift - product

    def width(self, n: int) -> int:
        _expect(n, len(self.center))
        return len(self.shift)


@dataclass(frozen=True)
class Clip:
    """Values below `low` or above `high` are moved to these."""

    low: float
    high: float

    def width(self, n: int) -> int:
        return n


@dataclass(frozen=True)
class Select:
    """The columns at these indices, of n columns."""

    indices: Array
    n: int

    def width(self, n: int) -> int:
        _expect(n, self.n)
        return len(self.indices)


@dataclass(frozen=True)
class Impute:
    """In each column, missing values are replaced by `fill`."""

    missing: Any
    fill: Array

    def width(self, n: int) -> int:
        _expect(n, len(self.fill))
        return n


@dataclass(frozen=True)
class Indicate:
    """1 where a value is missing, else 0."""

    missing: Any

    def width(self, n: int) -> int:
        return n


@dataclass(frozen=True)
class Categories:
    """The categories of one column, and what each becomes.

    Attributes
    ----------
    values : array
    codes : array
        Of each category. For `OneHot` the index of its output column, or -1 for none; several
        categories may share one. For `Ordinal` the number that replaces it.
    unknown : number or None
        The code of a value that is not among the categories; None if such a value is an error.
    width : int
        The number of output columns.
    """

    values: Array
    codes: Array
    unknown: float | None
    width: int = 1


@dataclass(frozen=True)
class OneHot:
    """For each column, 1 in the output column of its category and 0 in the others."""

    columns: tuple[Categories, ...]

    def width(self, n: int) -> int:
        _expect(n, len(self.columns))
        return sum(column.width for column in self.columns)


@dataclass(frozen=True)
class Ordinal:
    """For each column, the code of its category."""

    columns: tuple[Categories, ...]

    def width(self, n: int) -> int:
        _expect(n, len(self.columns))
        return n


@dataclass(frozen=True)
class Bin:
    """For each column, how many of its inner `edges` are not above the value.

    With a `dtype` the value is rounded to this type first.
    """

    edges: tuple[Array, ...]
    dtype: Any = None

    def width(self, n: int) -> int:
        _expect(n, len(self.edges))
        return n


@dataclass(frozen=True)
class Power:
    """A power of each column, 'yeo-johnson' or 'box-cox', with exponents `lambdas`."""

    method: str
    lambdas: Array

    def width(self, n: int) -> int:
        _expect(n, len(self.lambdas))
        return n


@dataclass(frozen=True)
class Branch:
    """Operations on the columns at some indices."""

    columns: Sequence[int] | Array
    operations: tuple[Operation, ...]

    @property
    def width(self) -> int:
        return width_after(self.operations, len(self.columns))


@dataclass(frozen=True)
class Beside:
    """Branches applied to the same n columns, their outputs side by side."""

    branches: tuple[Branch, ...]
    n: int

    def width(self, n: int) -> int:
        _expect(n, self.n)
        return sum(branch.width for branch in self.branches)


Operation = Affine | Clip | Select | Impute | Indicate | OneHot | Ordinal | Bin | Power | Beside


def width_after(operations: Sequence[Operation], n: int) -> int:
    """The number of columns that the operations make of n; ValueError if they do not fit."""
    for operation in operations:
        n = operation.width(n)
    return n


def is_missing(value: Any) -> bool:
    """Whether a value is None, or not equal to itself as NaN and pandas' NaT are."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True


def identity(n: int) -> Affine:
    """The affine map that changes nothing."""
    return Affine(np.ones(n), np.zeros(n), np.zeros(n))


def _expect(n: int, expected: int) -> None:
    if n != expected:
        raise ValueError(f"a step takes {expected} columns and is given {n}")
