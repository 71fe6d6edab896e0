"""Columns of which every value is missing, followed through the operations."""

from collections.abc import Sequence

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._operations import (
    Affine,
    Beside,
    Bin,
    Impute,
    Indicate,
    OneHot,
    Operation,
    Ordinal,
    Select,
    is_missing,
)


def missing_after(operations: Sequence[Operation], missing: Array) -> Array:
    """For each column after the operations, whether all its values are missing.

    `missing` says the same of the columns before. A scaler makes a column missing that had no
    values in `fit`; an imputer fills it or drops it.
    """
    for operation in operations:
        missing = _after(operation, missing)
    return missing


def _after(operation: Operation, missing: Array) -> Array:
    if isinstance(operation, Affine):
        lost = missing if operation.A.ndim == 1 else missing.any()
        return np.isnan(operation.t) | lost
    if isinstance(operation, Select):
        return missing[operation.indices]
    if isinstance(operation, Impute):
        if not is_missing(operation.missing):
            return missing
        return missing & np.array([is_missing(value) for value in operation.fill], dtype=bool)
    if isinstance(operation, (Bin, Indicate, OneHot, Ordinal)):
        return np.zeros(operation.width(len(missing)), dtype=bool)
    if isinstance(operation, Beside):
        return np.concatenate(
            [
                missing_after(branch.operations, missing[np.asarray(branch.columns)])
                for branch in operation.branches
            ]
        )
    return missing
