"""The columns of a ColumnTransformer, which users give in many ways."""

from typing import Any

import numpy as np


def column_indices(columns: Any, names: list[str]) -> list[int]:
    """A ColumnTransformer's columns (names, indices, a slice, a mask) as indices."""
    every = np.arange(len(names))
    if isinstance(columns, str):
        return [names.index(columns)]
    if isinstance(columns, slice) and any(
        isinstance(end, str) for end in (columns.start, columns.stop)
    ):
        start = 0 if columns.start is None else names.index(columns.start)
        stop = len(names) if columns.stop is None else names.index(columns.stop) + 1
        return every[start : stop : columns.step].tolist()
    if isinstance(columns, slice):
        return every[columns].tolist()
    array = np.asarray(columns)
    if array.dtype.kind in "OUS":
        return [names.index(str(name)) for name in array]
    if not array.size:
        return []
    return np.atleast_1d(every[array]).tolist()
