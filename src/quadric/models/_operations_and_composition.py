"""Preprocessing as operations, and what composes: operations into a map, layers into a quadratic.

Operations describe every supported step, and each maps columns to columns. `width_after` returns
the number of output columns. `missing_after` and `fill_after` track missing values through them.
`composed` expresses affine operations as one map, and `compose` expresses two layers as one.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.geometry import AffineMap
from quadric.network import Network
from quadric.utils import check_limit


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


# ------------------------------------------- composition of operations into an affine map


# why an operation is not affine
NOT_AFFINE = {
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
    operations: Sequence[Operation], n: int, fill: Array | None, absolute: float | None
) -> AffineMap:
    """Compose operations on n columns into one map z = A u + t, or raise NotAffineError.

    `fill` holds the values with which the next operations replace missing values. If `absolute` is
    given, every number is replaced by its absolute value, and `absolute` is added to the inputs and
    outputs. Constants of columns without values are added to the absolute values.
    """
    whole = _compose(operations, n, fill)
    if absolute is None:
        return whole
    sizes = _compose([_size(one, absolute) for one in operations], n, fill)
    return AffineMap(np.abs(sizes.A), np.abs(sizes.t) + np.abs(whole.t))


def _compose(operations: Sequence[Operation], n: int, last: Array | None = None) -> AffineMap:
    """Compose the operations into one map; `last` holds the fill values of the following steps."""
    whole = identity(n)
    for i, operation in enumerate(operations):
        n = width_after([operation], n)
        whole = _map_of(operation, fill_after(operations[i + 1 :], n, last)).after(whole)
    return whole


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
            if operation.fill.dtype.kind == "O" and any(isinstance(v, str) for v in operation.fill):
                raise NotAffineError("imputes text")
            return identity(len(operation.fill))
        case Beside():
            maps = [
                _compose(branch.operations, len(branch.columns), part).after(
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


# ----------------------------------------------- composition of layers into a quadratic
# Successive layers are one layer as long as their composition has degree two at most: all layers
# but one are linear, and no activation comes between them.


def fold_layers(network: Network) -> Network:
    """Fold every stretch of layers whose composition has degree two at most, in float64."""
    found = stretches(network.astype(FLOAT64))
    wholes = [reduce(compose, layers) for layers, _ in found]
    folded = [layer_to_quadratic(one) if isinstance(one, Reduced) else one for one in wholes]
    return Network(folded, [activation for _, activation in found])


def stretches(network: Network) -> list[tuple[list[Layer], str]]:
    """Successive layers that are together of degree two at most, and the activation after them."""
    found: list[tuple[list[Layer], str]] = []
    for layer, activation in zip(network.layers, network.activations, strict=True):
        before, last = found[-1] if found else ([], "")
        curved = [one for one in (*before, layer) if not isinstance(one, Linear)]
        if last == "identity" and len(curved) < 2:
            found[-1] = [*before, layer], activation
        else:
            found.append(([layer], activation))
    return found


def compose(first: Layer, second: Layer) -> Layer:
    """The layer that computes second(first(x)); one of the two is linear."""
    n, m = first.n_inputs, second.n_outputs
    factored = isinstance(first, Linear) and isinstance(second, (Linear, Reduced))
    check_limit(
        3 * 8 * m * n * (1 if factored else n),
        f"{m:,} {second.kind if factored else 'quadratic'} neurons with {n:,} inputs",
        "Fold a model with fewer inputs.",
    )
    try:
        with np.errstate(all="ignore"):
            if isinstance(first, Linear):
                return _after_linear(first, second)
            assert isinstance(second, Linear)
            return _before_linear(first, second)
    except ValueError:  # a coefficient is not finite
        raise ValueError(
            "the folded layer is larger than floating-point numbers can represent. Products of the "
            "weights overflow; measure the inputs in other units."
        ) from None


def _after_linear(first: Linear, second: Layer) -> Layer:
    A, moved = first.W, second.shifted(first.b)
    if isinstance(moved, Quadratic):
        return Quadratic(moved.W @ A, moved.b, A.T @ moved.Q @ A)
    if isinstance(moved, Reduced):
        return Reduced(moved.W @ A, moved.b, moved.U @ A, moved.c)
    return Linear(moved.W @ A, moved.b)


def _before_linear(first: Layer, second: Linear) -> Quadratic:
    P, b = second.W, second.b
    if isinstance(first, Quadratic):
        return Quadratic(P @ first.W, P @ first.b + b, packed=first.packed @ P.T)
    assert isinstance(first, Reduced)
    # the neurons' own matrices are never built: there may be hundreds of them
    Q = np.stack([(first.W.T * p) @ first.U for p in P])
    W = P @ (first.c[:, None] * first.W + first.b[:, None] * first.U)
    return Quadratic(W, P @ (first.b * first.c) + b, Q)


def layer_to_quadratic(layer: Layer) -> Quadratic:
    """A copy with quadratic neurons."""
    if isinstance(layer, Quadratic):
        return layer.copy()
    if isinstance(layer, Reduced):
        W, b, U, c = layer.W, layer.b, layer.U, layer.c
        with np.errstate(all="ignore"):
            parts = c[:, None] * W + b[:, None] * U, b * c, W[:, :, None] * U[:, None, :]
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError(
                "the quadratic layer is larger than floating-point numbers can represent. Products "
                "of the weights of the reduced layer overflow."
            )
        return Quadratic(*parts)
    m, n = layer.W.shape
    return Quadratic(layer.W, layer.b, np.zeros((m, n, n), dtype=layer.dtype))


def check_matrices(m: int, n: int) -> None:
    """Check the limit before m matrices of size n x n are built and decomposed."""
    check_limit(
        (4 * m + 6) * 8 * n * n,
        f"{m:,} quadratic neurons with {n:,} inputs as matrices",
        "Use a model with fewer inputs.",
    )
