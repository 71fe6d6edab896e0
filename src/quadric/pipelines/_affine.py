"""Composition of affine steps to one map, and surfaces in the inputs of these steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from quadric._utils.arrays import Array
from quadric.geometry import Quadric
from quadric.pipelines._missing_values import fill_after, fill_values, n_inputs
from quadric.pipelines._operations import (
    Affine,
    Beside,
    Branch,
    Impute,
    Operation,
    Select,
    is_missing,
    width_after,
)
from quadric.pipelines._table import UnknownStepError, find, operations


class NotAffineError(TypeError):
    """Raised for a step that is not of the form z = A u + t."""


@dataclass(frozen=True)
class Map:
    """z = A u + t; a vector A stands for a diagonal matrix."""

    A: Array
    t: Array

    @property
    def matrix(self) -> Array:
        return np.diag(self.A) if self.A.ndim == 1 else self.A

    def after(self, first: Map) -> Map:
        """Compose: apply `first`, then this map."""
        if self.A.ndim == 1 and first.A.ndim == 1:
            return Map(self.A * first.A, self.A * first.t + self.t)
        if self.A.ndim == 1:
            return Map(self.A[:, None] * first.A, self.A * first.t + self.t)
        A = self.A * first.A if first.A.ndim == 1 else self.A @ first.A
        return Map(A, self.A @ first.t + self.t)

    def undo(self, surface: Quadric) -> Quadric:
        """Express a surface in z as a surface in u."""
        if self.A.ndim == 1 and self.A.all():
            return surface.transform(1 / self.A, -self.t / self.A)
        return surface.preimage(self.matrix, self.t)


@dataclass(frozen=True)
class PartlyAffine:
    """A ColumnTransformer or FeatureUnion with affine and other branches.

    Attributes
    ----------
    map : Map
        From the coordinates to the step's outputs.
    origins : list of (source, index)
        The source of each coordinate: ('input', column) or ('output', column) of the step.
    """

    map: Map
    origins: list[tuple[str, int]]


def affine_map(step: Any, after: Sequence[Any] = ()) -> Map:
    """Return a fitted step as a map z = A u + t.

    Raises NotAffineError if the step is not of this form. The map is valid for rows without missing
    values, which an imputer does not change. A scaler returns missing values for a column that had
    no values in `fit`. The map treats such a column as a constant: the value with which the next
    steps, `after`, replace missing values.
    """
    try:
        found = operations(step)
        return _compose(found, n_inputs(step, found), fill_values(after) if after else None)
    except UnknownStepError as error:
        raise NotAffineError(error.reason) from None
    except NotAffineError as error:
        raise NotAffineError(f"{find(step).name} {error}") from None


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """Express a surface in the outputs of the last step as a surface in the inputs of the first."""
    for k, step in reversed(list(enumerate(steps))):
        surface = affine_map(step, steps[k + 1 :]).undo(surface)
    return surface


def partly_affine(step: Any, after: Sequence[Any] = ()) -> PartlyAffine | None:
    """Return the affine branches of a step; None if the step has no branches.

    The step may also have branches that are not affine. `after` has the same meaning as in
    `affine_map`.
    """
    try:
        found = operations(step)
    except UnknownStepError:
        return None
    if len(found) != 1 or not isinstance(found[0], Beside):
        return None
    fill = fill_values(after) if after else np.full(width_after(found, found[0].n), np.nan)
    maps: list[Map] = []
    origins: list[tuple[str, int]] = []
    row = 0
    for branch in found[0].branches:
        end = row + branch.width
        try:
            maps.append(_compose(branch.operations, len(branch.columns), fill[row:end]))
            origins += [("input", int(column)) for column in branch.columns]
        except NotAffineError:
            maps.append(_identity(branch.width))
            origins += [("output", column) for column in range(row, end)]
        row = end
    t = np.concatenate([part.t for part in maps])
    if all(part.A.ndim == 1 for part in maps):
        return PartlyAffine(Map(np.concatenate([part.A for part in maps]), t), origins)
    return PartlyAffine(Map(block_diag(*[part.matrix for part in maps]), t), origins)


def _compose(found: Sequence[Operation], n: int, last: Array | None = None) -> Map:
    """Compose the operations into one map; `last` replaces missing values after them."""
    whole = _identity(n)
    for i, operation in enumerate(found):
        n = width_after([operation], n)
        whole = _map_of(operation, fill_after(found[i + 1 :], n, last)).after(whole)
    return whole


def _map_of(operation: Operation, fill: Array) -> Map:
    """One operation as a map; `fill` replaces missing values after it."""
    if isinstance(operation, Affine):
        return _without_missing(Map(operation.A, operation.t), fill)
    if isinstance(operation, Select):
        k = len(operation.indices)
        A = np.zeros((k, operation.n))
        A[np.arange(k), operation.indices] = 1.0
        return Map(A, np.zeros(k))
    if isinstance(operation, Impute) and is_missing(operation.missing):
        if operation.fill.dtype.kind == "O" and any(isinstance(v, str) for v in operation.fill):
            raise NotAffineError("imputes text")
        return _identity(len(operation.fill))
    if isinstance(operation, Beside):
        return _beside(operation.branches, operation.n, fill)
    raise NotAffineError(NOT_AFFINE[type(operation).__name__])


def _without_missing(scaling: Map, fill: Array) -> Map:
    """Replace rows of NaN, from columns without values in `fit`, by the constants in `fill`.

    If `fill` is NaN, a later step drops the column, and the constant does not matter.
    """
    missing = np.isnan(scaling.t)
    if not missing.any():
        return scaling
    constants = np.where(np.isnan(fill), 0.0, fill)
    return Map(np.where(missing, 0.0, scaling.A), np.where(missing, constants, scaling.t))


NOT_AFFINE = {
    "Clip": "clips its outputs",
    "Impute": "replaces values other than NaN",
    "Indicate": "adds columns that mark missing values",
    "OneHot": "encodes categories",
    "Ordinal": "encodes categories",
    "Bin": "sorts values into bins",
    "Power": "raises values to powers",
}


def _beside(branches: Sequence[Branch], n: int, fill: Array) -> Map:
    ends = np.cumsum([branch.width for branch in branches])[:-1]
    maps = [
        _compose(branch.operations, len(branch.columns), part)
        for branch, part in zip(branches, np.split(fill, ends), strict=True)
    ]
    A = np.vstack([_spread(m.matrix, b.columns, n) for m, b in zip(maps, branches, strict=True)])
    return Map(_diagonal_if_it_is(A), np.concatenate([part.t for part in maps]))


def _spread(matrix: Array, columns: Any, n: int) -> Array:
    """Extend the matrix of a branch to all n columns."""
    A = np.zeros((len(matrix), n))
    np.add.at(A.T, np.asarray(columns), matrix.T)  # a column may be listed twice
    return A


def _identity(n: int) -> Map:
    return Map(np.ones(n), np.zeros(n))


def _diagonal_if_it_is(A: Array) -> Array:
    is_diagonal = A.shape[0] == A.shape[1] and not (A - np.diag(np.diag(A))).any()
    return np.diag(A).copy() if is_diagonal else A
