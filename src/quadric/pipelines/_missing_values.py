"""Missing values followed through the operations of a pipeline."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._operations import (
    NEVER_MISSING,
    Affine,
    Beside,
    Impute,
    Operation,
    Select,
    is_missing,
    width_after,
)
from quadric.pipelines._table import operations


def missing_after(found: Sequence[Operation], missing: Array) -> Array:
    """For each column after the operations, whether all its values are missing.

    `missing` is the same mask for the columns before them. A column without values in `fit` is
    missing after a scaler; an imputer fills or drops it.
    """
    for operation in found:
        missing = _after(operation, missing)
    return missing


def _after(operation: Operation, missing: Array) -> Array:
    if isinstance(operation, Affine):
        lost = missing if operation.A.ndim == 1 else missing.any()
        return np.isnan(operation.t) | lost
    if isinstance(operation, Select):
        return missing[operation.indices]
    if isinstance(operation, Impute) and is_missing(operation.missing):
        return missing & np.array([is_missing(value) for value in operation.fill], dtype=bool)
    if isinstance(operation, NEVER_MISSING):
        return np.zeros(width_after([operation], len(missing)), dtype=bool)
    if isinstance(operation, Beside):
        return np.concatenate(
            [
                missing_after(branch.operations, missing[np.asarray(branch.columns)])
                for branch in operation.branches
            ]
        )
    return missing


def fill_values(steps: Sequence[Any]) -> Array:
    """The values that replace missing values of each column in the steps; NaN for none."""
    found = [operations(step) for step in steps]
    n = n_inputs(steps[0], found[0])
    return fill_after([operation for inside in found for operation in inside], n)


def n_inputs(step: Any, found: Sequence[Operation]) -> int:
    """The number of input columns; a FeatureUnion may have no `n_features_in_`."""
    if found and isinstance(found[0], Beside):
        return found[0].n
    return int(getattr(step, "n_features_in_", 0))


def fill_after(found: Sequence[Operation], n: int, last: Array | None = None) -> Array:
    """The values that replace missing values of each of n columns in the operations.

    `last` has the values that replace those still missing after the operations.
    """
    fill = np.full(n, np.nan)
    if not found:
        return fill if last is None else last
    first, *after = found
    if isinstance(first, Impute) and is_missing(first.missing):
        with contextlib.suppress(TypeError, ValueError):  # text
            fill = first.fill.astype(float)
    elif isinstance(first, Select):
        fill[first.indices] = fill_after(after, len(first.indices), last)
    elif isinstance(first, Affine) and first.A.ndim == 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight may be zero
            fill = (fill_after(after, n, last) - first.t) / first.A
    elif isinstance(first, Beside):
        outputs, row = fill_after(after, width_after([first], n), last), 0
        for branch in first.branches:
            columns = np.asarray(branch.columns)
            inside = fill_after(branch.operations, len(columns), outputs[row : row + branch.width])
            row, before = row + branch.width, fill[columns]
            agree = np.isnan(before) | (before == inside)
            fill[columns] = np.where(agree, inside, np.where(np.isnan(inside), before, np.nan))
    return fill
