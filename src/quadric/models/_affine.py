"""Composition of affine steps into one map, and surfaces expressed in the steps' inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from quadric.checks import Array
from quadric.geometry import AffineMap, Quadric
from quadric.models._operations import (
    Affine,
    Beside,
    Impute,
    Operation,
    Select,
    fill_after,
    is_missing,
    width_after,
)
from quadric.models._table import UnknownStepError, find, operations

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


@dataclass(frozen=True)
class PartlyAffine:
    """A ColumnTransformer or FeatureUnion with affine and non-affine branches.

    Attributes
    ----------
    map : AffineMap
        The map from the coordinates to the step's outputs.
    origins : list of (source, index)
        The source of each coordinate: ('input', column) or ('output', column) of the step.
    """

    map: AffineMap
    origins: list[tuple[str, int]]


def affine_map(step: Any, after: Sequence[Any] = (), *, absolute: float | None = None) -> AffineMap:
    """Return a fitted step as a map z = A u + t.

    Raises NotAffineError if the step is not of this form. The map is valid for rows without missing
    values, which an imputer does not change. A scaler returns missing values for a column that had
    no values in `fit`. The map treats such a column as a constant: the value with which the next
    steps, `after`, replace missing values. If `absolute` is given, every number in the step is
    replaced by its absolute value, and `absolute` is added to its inputs and outputs. This map
    bounds rounding errors.
    """
    try:
        found = operations(step)
        n, fill = _n_inputs(step, found), fill_values(after) if after else None
        return _sized(found, n, fill, absolute)
    except UnknownStepError as error:
        raise NotAffineError(error.reason) from None
    except NotAffineError as error:
        raise NotAffineError(f"{find(step).name} {error}") from None


def partly_affine(
    step: Any, after: Sequence[Any] = (), *, absolute: float | None = None
) -> PartlyAffine | None:
    """Return the affine branches of a step; None if the step has no branches.

    The step may also have branches that are not affine. `after` and `absolute` have the same
    meaning as in `affine_map`.
    """
    try:
        inside = operations(step)
    except UnknownStepError:
        return None
    if len(inside) != 1 or not isinstance(inside[0], Beside):
        return None
    whole = inside[0]
    width = width_after([whole], whole.n)
    fills = fill_values(after) if after else np.full(width, np.nan)
    maps: list[AffineMap] = []
    origins: list[tuple[str, int]] = []
    for (branch, outputs), (_, fill) in zip(
        whole.split(range(width)), whole.split(fills), strict=True
    ):
        try:
            found, n = branch.operations, len(branch.columns)
            maps.append(_sized(found, n, fill, absolute))
            origins += [("input", int(column)) for column in branch.columns]
        except NotAffineError:
            maps.append(_identity(branch.width))
            origins += [("output", column) for column in outputs]
    A = block_diag(*[part.matrix for part in maps])
    return PartlyAffine(AffineMap.simplest(A, np.concatenate([part.t for part in maps])), origins)


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """Express a surface in the outputs of the last step as a surface in the inputs of the first."""
    for k, step in reversed(list(enumerate(steps))):
        change = affine_map(step, steps[k + 1 :])
        surface = surface.preimage(change.A, change.t)
    return surface


def fill_values(steps: Sequence[Any]) -> Array:
    """The values with which the steps replace missing values in each column, or NaN."""
    found = [operations(step) for step in steps]
    every = [operation for inside in found for operation in inside]
    return fill_after(every, _n_inputs(steps[0], found[0]))


def _n_inputs(step: Any, found: Sequence[Operation]) -> int:
    """The number of input columns; a FeatureUnion may have no `n_features_in_`."""
    first = next(iter(found), None)
    return first.n if isinstance(first, Beside) else int(getattr(step, "n_features_in_", 0))


def _compose(found: Sequence[Operation], n: int, last: Array | None = None) -> AffineMap:
    """Compose the operations into one map; `last` holds the fill values of the following steps."""
    whole = _identity(n)
    for i, operation in enumerate(found):
        n = width_after([operation], n)
        whole = _map_of(operation, fill_after(found[i + 1 :], n, last)).after(whole)
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
            return _identity(len(operation.fill))
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


def _sizes(found: Sequence[Operation], more: float) -> list[Operation]:
    """The operations with the absolute values of their numbers; `more` enlarges their inputs."""
    sizes: list[Operation] = []
    for operation in found:
        match operation:
            case Affine(A=A, center=center, shift=shift):
                sizes.append(Affine(np.abs(A), -np.abs(center) - more, np.abs(shift) + more))
            case Beside(branches=branches):
                inner = [replace(b, operations=tuple(_sizes(b.operations, more))) for b in branches]
                sizes.append(replace(operation, branches=tuple(inner)))
            case _:
                sizes.append(operation)
    return sizes


def _sized(
    found: Sequence[Operation], n: int, fill: Array | None, absolute: float | None
) -> AffineMap:
    """The composition of the operations, or of their absolute values (see `affine_map`).

    Constants of columns without values are added to the absolute values.
    """
    whole = _compose(found, n, fill)
    if absolute is None:
        return whole
    sizes = _compose(_sizes(found, absolute), n, fill)
    return AffineMap(np.abs(sizes.A), np.abs(sizes.t) + np.abs(whole.t))


def _identity(n: int) -> AffineMap:
    return AffineMap(np.ones(n), np.zeros(n))


def _selection(columns: Any, n: int) -> AffineMap:
    """The map from n columns to some of them."""
    k = len(columns)
    A = np.zeros((k, n))
    A[np.arange(k), np.asarray(columns)] = 1.0
    return AffineMap(A, np.zeros(k))
