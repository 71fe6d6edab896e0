"""Preprocessing as operations: each maps columns to columns, and together they describe every step.

`width_after` returns the number of output columns. `missing_after` and `fill_after` track missing
values through operations. `composed` expresses affine operations as one map.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.errors import expect
from quadric.geometry import AffineMap


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


@dataclass(frozen=True)
class Read:
    """Read the columns of a table, which become columns with these `names`, one or more for each.

    It comes first, and is not translated: other packages take the columns after it as inputs.
    """

    names: tuple[tuple[str, ...], ...]


Operation = (
    Read | Affine | Clip | Select | Impute | Indicate | OneHot | Ordinal | Bin | Power | Beside
)

# The number of input columns. Operations that are not listed accept any number.
N_INPUTS: dict[type, Callable[[Any], int]] = {
    Read: lambda operation: len(operation.names),
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
    Read: lambda operation: sum(map(len, operation.names)),
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


def kinds_of(operations: Iterable[Operation]) -> set[type[Any]]:
    """The kinds of the operations and of those in branches; branches are not a kind."""
    inner = [
        kinds_of(branch.operations)
        for one in operations
        if isinstance(one, Beside)
        for branch in one.branches
    ]
    return {type(one) for one in operations if not isinstance(one, Beside)}.union(*inner)


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
            case Read():
                missing = np.repeat(missing, list(map(len, operation.names)))
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


Codes = tuple[Array, Array] | None
"""The categories that a column stands for, and their numbers; None for other columns."""


def codes_after(operations: Sequence[Operation], codes: list[Codes]) -> list[Codes]:
    """What the columns stand for after the operations, given that for the columns before them."""
    for operation in operations:
        match operation:
            case Ordinal():
                codes = [(known.values, known.codes) for known in operation.columns]
            case Affine(A=A, t=t) if A.ndim == 1:
                codes = [
                    one and (one[0], a * one[1] + b) for one, a, b in zip(codes, A, t, strict=True)
                ]
            case Impute():
                pass
            case Select():
                codes = [codes[i] for i in operation.indices]
            case Beside():
                parts = [
                    codes_after(b.operations, [codes[i] for i in b.columns])
                    for b in operation.branches
                ]
                codes = [one for part in parts for one in part]
            case _:
                codes = [None] * width_after([operation], len(codes))
    return codes


def passes(step: Any) -> bool:
    """Whether a value stands in the place of a step that changes nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def drops(step: Any) -> bool:
    """Whether a value stands in the place of a step that returns no columns."""
    return isinstance(step, str) and step == "drop"


# ------------------------------------------------------------ operations as an affine map

# why an operation is not affine
NOT_AFFINE = {
    "Read": "reads text",
    "Clip": "clips its outputs",
    "Impute": "replaces values other than NaN",
    "Indicate": "adds columns that mark missing values",
    "OneHot": "encodes categories",
    "Ordinal": "encodes categories",
    "Bin": "sorts values into bins",
    "Power": "raises values to powers",
}


class NotAffineError(TypeError):
    """Raised for a step that is not of the form z = A u + t."""


def composed(
    operations: Sequence[Operation],
    n: int,
    last: Array | None = None,
    absolute: float | None = None,
) -> AffineMap:
    """Compose operations on n columns into one map z = A u + t, or raise NotAffineError.

    `last` holds the values with which the next operations replace missing values. If `absolute` is
    given, every number is replaced by its absolute value, and `absolute` is added to the inputs and
    outputs. Constants of columns without values are added to the absolute values.
    """
    whole = identity(n)
    for i, operation in enumerate(operations):
        width = width_after([operation], len(whole.t))
        fill = fill_after(operations[i + 1 :], width, last)
        whole = _map_of(operation, fill).after(whole)
    if absolute is None:
        return whole
    sizes = composed([_size(one, absolute) for one in operations], n, last)
    return AffineMap(np.abs(sizes.A), np.abs(sizes.t) + np.abs(whole.t))


def _map_of(operation: Operation, fill: Array) -> AffineMap:
    """One operation as a map; `fill` holds the fill values of the operations that follow."""
    match operation:
        case Affine(A=A, t=t):
            missing = np.isnan(t)  # columns without values in `fit`
            if not missing.any():
                return AffineMap(A, t)
            # if `fill` is NaN too, a later step drops the column, and the constant does not matter
            constants = np.where(np.isnan(fill), 0.0, fill)
            return AffineMap(np.where(missing, 0.0, A), np.where(missing, constants, t))
        case Select():
            return _selection(operation.indices, operation.n)
        case Impute() if is_missing(operation.missing):
            texts = operation.fill.dtype == object and any(
                isinstance(v, str) for v in operation.fill
            )
            expect(not texts, NotAffineError("imputes text"))
            return identity(len(operation.fill))
        case Beside():
            maps = [
                composed(branch.operations, len(branch.columns), part).after(
                    _selection(branch.columns, operation.n)
                )
                for branch, part in operation.split(fill)
            ]
            return AffineMap.simplest(
                np.vstack([part.matrix for part in maps]), np.concatenate([part.t for part in maps])
            )
    raise NotAffineError(NOT_AFFINE[type(operation).__name__])


def _size(operation: Operation, more: float) -> Operation:
    """The operation with the absolute values of its numbers; `more` enlarges its inputs."""
    match operation:
        case Affine(A=A, center=center, shift=shift):
            return Affine(np.abs(A), -np.abs(center) - more, np.abs(shift) + more)
        case Beside(branches=branches):
            inner = [
                replace(b, operations=tuple(_size(one, more) for one in b.operations))
                for b in branches
            ]
            return replace(operation, branches=tuple(inner))
    return operation


def identity(n: int) -> AffineMap:
    return AffineMap(np.ones(n), np.zeros(n))


def _selection(columns: Any, n: int) -> AffineMap:
    """The map from n columns to some of them."""
    A = np.equal.outer(np.asarray(columns), np.arange(n)).astype(float)
    return AffineMap(A, np.zeros(len(A)))
