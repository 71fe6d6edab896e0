"""Preprocessing as operations: each maps columns to columns, and together they describe every step.

`width_after` returns the number of output columns. `missing_after` and `fill_after` track missing
values through operations. `_composition` expresses affine operations as one map.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from quadric.checks import Array


@dataclass(frozen=True)
class Affine:
    """z = A (u - center) + shift; a vector A stands for a diagonal matrix.

    The center is a separate field, because subtracting it first preserves precision in float32.
    """

    A: Array
    center: Array
    shift: Array

    @property
    def t(self) -> Array:
        """The constant term: z = A u + t."""
        return self.shift - (self.A * self.center if self.A.ndim == 1 else self.A @ self.center)


@dataclass(frozen=True)
class Clip:
    """Limit every value to the interval [low, high]."""

    low: float
    high: float


@dataclass(frozen=True)
class Select:
    """Keep some of n columns, given by increasing `indices`."""

    indices: Array
    n: int


@dataclass(frozen=True)
class Impute:
    """Replace missing values with the column's entry in `fill`.

    `missing` is the value that counts as missing. It can be NaN, None, a number or a string. If it
    is not NaN or None, a NaN in the input is left unchanged.
    """

    missing: Any
    fill: Array


@dataclass(frozen=True)
class Indicate:
    """1 where a value is missing, and 0 elsewhere."""

    missing: Any


@dataclass(frozen=True)
class Categories:
    """The categories of one column and their codes.

    For `OneHot`, a code is the index of the category's output column, or -1 for none; categories
    may share an output column. For `Ordinal`, it is the number that replaces the category.
    """

    values: Array
    codes: Array
    unknown: float | None  # the code of any other value; None if other values are an error
    width: int = 1  # the number of output columns
    grouped: bool = False  # whether infrequent categories share an output column


@dataclass(frozen=True)
class OneHot:
    """For each column, 1 in the output column of its category and 0 in the others."""

    columns: tuple[Categories, ...]


@dataclass(frozen=True)
class Ordinal:
    """Replace every value with the code of its category.

    The output of each column is one number.
    """

    columns: tuple[Categories, ...]


@dataclass(frozen=True)
class Bin:
    """Replace every value with the number of inner `edges` of its column that do not exceed it.

    If `dtype` is given, the value is rounded to it first.
    """

    edges: tuple[Array, ...]
    dtype: Any = None


@dataclass(frozen=True)
class Power:
    """A power transform.

    The method is 'yeo-johnson' or 'box-cox'. `lambdas` holds the exponent of each column, as in
    scikit-learn's PowerTransformer. The standardization that may follow is a separate `Affine`.
    """

    method: str
    lambdas: Array


@dataclass(frozen=True)
class Branch:
    """Operations on the columns at the given indices.

    The names of the outputs are `longer` by this number of characters than without the branch.
    """

    columns: Sequence[int] | Array
    operations: "tuple[Operation, ...]"
    longer: int = 0

    @property
    def width(self) -> int:
        return width_after(self.operations, len(self.columns))

    def part_of(self, values: Array) -> Array:
        """The entries of this branch's columns; a range is all columns and needs no memory."""
        return values if isinstance(self.columns, range) else values[np.asarray(self.columns)]


@dataclass(frozen=True)
class Beside:
    """Apply branches to the same n columns and concatenate their outputs."""

    branches: tuple[Branch, ...]
    n: int

    def split(self, values: Any) -> list[tuple[Branch, Any]]:
        """The branches, each with its share of the values (one value per output column)."""
        ends = accumulate(branch.width for branch in self.branches)
        return [
            (b, values[end - b.width : end]) for b, end in zip(self.branches, ends, strict=True)
        ]


Operation = Affine | Clip | Select | Impute | Indicate | OneHot | Ordinal | Bin | Power | Beside

# The number of input columns. Operations that are not listed accept any number.
N_INPUTS: dict[type, Callable[[Any], int]] = {
    Affine: lambda operation: len(operation.center),
    Select: lambda operation: operation.n,
    Impute: lambda operation: len(operation.fill),
    OneHot: lambda operation: len(operation.columns),
    Ordinal: lambda operation: len(operation.columns),
    Bin: lambda operation: len(operation.edges),
    Power: lambda operation: len(operation.lambdas),
    Beside: lambda operation: operation.n,
}
# The number of output columns. Operations that are not listed return as many as they receive.
N_OUTPUTS: dict[type, Callable[[Any], int]] = {
    Affine: lambda operation: len(operation.shift),
    Select: lambda operation: len(operation.indices),
    OneHot: lambda operation: sum(column.width for column in operation.columns),
    Beside: lambda operation: sum(branch.width for branch in operation.branches),
}


def width_after(operations: Sequence[Operation], n: int) -> int:
    """Return the number of output columns for n input columns.

    Raises ValueError if an operation expects a different number of columns.
    """
    for operation in operations:
        kind = type(operation)
        if kind in N_INPUTS and N_INPUTS[kind](operation) != n:
            raise ValueError(
                f"a step expects {N_INPUTS[kind](operation)} columns, but the input has {n}"
            )
        n = N_OUTPUTS[kind](operation) if kind in N_OUTPUTS else n
    return n


def is_missing(value: Any) -> bool:
    """Whether a value is None or, like NaN and pandas' NaT, not equal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True


def missing_after(operations: Sequence[Operation], missing: Array) -> Array:
    """For each column after the operations, whether all its values are missing.

    `missing` is the corresponding mask for the columns before the operations. A column without
    values in `fit` is missing after a scaler; an imputer fills or drops it.
    """
    for operation in operations:
        match operation:
            case Affine():
                lost = missing if operation.A.ndim == 1 else missing.any()
                missing = np.isnan(operation.t) | lost
            case Select():
                missing = missing[operation.indices]
            case Impute() if is_missing(operation.missing):
                missing = missing & np.array([is_missing(v) for v in operation.fill], dtype=bool)
            case Bin() | Indicate() | OneHot() | Ordinal():  # their outputs are never missing
                missing = np.zeros(width_after([operation], len(missing)), dtype=bool)
            case Beside():
                missing = np.concatenate(
                    [missing_after(b.operations, b.part_of(missing)) for b in operation.branches]
                )
    return missing


def fill_after(operations: Sequence[Operation], n: int, last: Array | None = None) -> Array:
    """The values with which the operations replace missing values in each of n columns.

    `last` holds the values that replace any values still missing after the operations.
    """
    fill = np.full(n, np.nan)
    match operations:
        case [] | ():
            return fill if last is None else last
        case [Impute() as first, *_] if is_missing(first.missing):
            with contextlib.suppress(TypeError, ValueError):  # text
                fill = first.fill.astype(float)
        case [Select() as first, *after]:
            fill[first.indices] = fill_after(after, len(first.indices), last)
        case [Affine() as first, *after] if first.A.ndim == 1:
            with np.errstate(divide="ignore", invalid="ignore"):  # a weight may be zero
                fill = (fill_after(after, n, last) - first.t) / first.A
        case [Beside() as first, *after]:
            for branch, part in first.split(fill_after(after, width_after([first], n), last)):
                columns = np.asarray(branch.columns)
                inside, before = fill_after(branch.operations, len(columns), part), fill[columns]
                agree = np.isnan(before) | (before == inside)
                fill[columns] = np.where(agree, inside, np.where(np.isnan(inside), before, np.nan))
    return fill


def passes(step: Any) -> bool:
    """Whether a value stands in the place of a step that changes nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def drops(step: Any) -> bool:
    """Whether a value stands in the place of a step that returns no columns."""
    return isinstance(step, str) and step == "drop"
