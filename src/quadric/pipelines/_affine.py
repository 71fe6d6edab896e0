"""Affine steps composed into one map, and undone: a surface restated in what came before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
)
from quadric.pipelines._table import UnknownStepError, find, operations


class NotAffineError(TypeError):
    """A step that is not of the form z = A u + t."""


@dataclass(frozen=True)
class Map:
    """z = A u + t; a vector A stands for a diagonal matrix."""

    A: Array
    t: Array

    @property
    def matrix(self) -> Array:
        return np.diag(self.A) if self.A.ndim == 1 else self.A

    def after(self, first: Map) -> Map:
        """The map that applies `first`, then this one."""
        if self.A.ndim == 1 and first.A.ndim == 1:
            return Map(self.A * first.A, self.A * first.t + self.t)
        if self.A.ndim == 1:
            return Map(self.A[:, None] * first.A, self.A * first.t + self.t)
        A = self.A * first.A if first.A.ndim == 1 else self.A @ first.A
        return Map(A, self.A @ first.t + self.t)

    def undo(self, surface: Quadric) -> Quadric:
        """The surface in u, from the one in z."""
        if self.A.ndim == 1 and self.A.all():
            return surface.transform(1 / self.A, -self.t / self.A)
        return surface.preimage(self.matrix, self.t)


@dataclass(frozen=True)
class PartlyAffine:
    """A ColumnTransformer or FeatureUnion of which some branches are affine.

    Attributes
    ----------
    map : Map
        From the coordinates to the step's outputs.
    origins : list of (source, index)
        Where each coordinate comes from: ('input', column) or ('output', column) of the step.
    """

    map: Map
    origins: list[tuple[str, int]]


def affine_map(step: Any, after: Sequence[Any] = ()) -> Map:
    """A fitted step as z = A u + t; NotAffineError if it is of another form.

    Missing values aside: an imputer leaves a complete row as it is. A column that had no values in
    `fit` leaves a scaler as missing values, whatever it holds. It is constant, of the value that
    the steps `after` this one put in the place of a missing one.
    """
    try:
        found = operations(step)
    except UnknownStepError as error:
        raise NotAffineError(error.reason) from None
    try:
        return _compose(found, n_inputs(step, found), fill_values(after) if after else None)
    except NotAffineError as error:
        name = find(step).name
        raise NotAffineError(f"{name} {error}") from None


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """The surface in the inputs of the first step, from the one in the outputs of the last."""
    for k, step in reversed(list(enumerate(steps))):
        surface = affine_map(step, steps[k + 1 :]).undo(surface)
    return surface


def partly_affine(step: Any, after: Sequence[Any] = ()) -> PartlyAffine | None:
    """The affine branches of a step that has others, too; None if there are no branches.

    `after` are the steps behind it, as for `affine_map`.
    """
    try:
        found = operations(step)
    except UnknownStepError:
        return None
    if len(found) != 1 or not isinstance(found[0], Beside):
        return None
    fill = fill_values(after) if after else np.full(found[0].width(found[0].n), np.nan)
    maps: list[Map] = []
    origins: list[tuple[str, int]] = []
    row = 0
    for branch in found[0].branches:
        m = branch.width
        try:
            inside = _compose(branch.operations, len(branch.columns), fill[row : row + m])
            maps.append(inside)
            origins += [("input", int(column)) for column in branch.columns]
        except NotAffineError:
            maps.append(_identity(m))
            origins += [("output", row + i) for i in range(m)]
        row += m
    return PartlyAffine(_block_diagonal(maps), origins)


def _compose(found: Sequence[Operation], n: int, last: Array | None = None) -> Map:
    """The operations as one map; `last` replaces missing values after them."""
    whole = _identity(n)
    for i, operation in enumerate(found):
        n = operation.width(n)
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
            raise NotAffineError("takes text")
        return _identity(len(operation.fill))
    if isinstance(operation, Beside):
        return _beside(operation.branches, operation.n, fill)
    raise NotAffineError(NOT_AFFINE[type(operation).__name__])


def _without_missing(scaling: Map, fill: Array) -> Map:
    """Rows of NaN, of columns that had no values in `fit`, as the constants in `fill`.

    Where nothing is filled in, a later step drops the column, and any constant will do.
    """
    missing = np.isnan(scaling.t)
    if not missing.any():
        return scaling
    constants = np.where(np.isnan(fill), 0.0, fill)
    return Map(np.where(missing, 0.0, scaling.A), np.where(missing, constants, scaling.t))


NOT_AFFINE = {
    "Clip": "clips its results",
    "Impute": "replaces values that are not missing ones",
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
    t = np.concatenate([part.t for part in maps])
    A = np.zeros((len(t), n))
    row = 0
    for part, branch in zip(maps, branches, strict=True):
        height = len(part.t)
        # a column may be listed twice
        np.add.at(A[row : row + height].T, np.asarray(branch.columns), part.matrix.T)
        row += height
    return Map(_diagonal_if_it_is(A), t)


def _block_diagonal(maps: Sequence[Map]) -> Map:
    t = np.concatenate([part.t for part in maps])
    if all(part.A.ndim == 1 for part in maps):
        return Map(np.concatenate([part.A for part in maps]), t)
    A = np.zeros((len(t), sum(part.A.shape[-1] for part in maps)))
    row = column = 0
    for part in maps:
        height, width = len(part.t), part.A.shape[-1]
        A[row : row + height, column : column + width] = part.matrix
        row, column = row + height, column + width
    return Map(A, t)


def _identity(n: int) -> Map:
    return Map(np.ones(n), np.zeros(n))


def _diagonal_if_it_is(A: Array) -> Array:
    if A.shape[0] == A.shape[1] and not (A - np.diag(np.diag(A))).any():
        return np.diag(A).copy()
    return A
