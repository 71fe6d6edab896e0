"""A ColumnTransformer rebuilt by its own `fit`, with stand-ins for its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quadric._utils.arrays import Array


class Part(NamedTuple):
    """One transformer of a ColumnTransformer.

    Attributes
    ----------
    name : str
    step : fitted step, 'passthrough' or 'drop'
    given : Any
        The columns as the user gave them.
    indices : array
    width : int
        The number of output columns.
    """

    name: str
    step: Any
    given: Any
    indices: Array
    width: int


def record_columns(step: Any, parts: list[Part], rest: Part, names: Array | None, n: int) -> None:
    """Give an unfitted ColumnTransformer its fitted steps.

    Its own `fit` records which columns go where, from stand-ins for the steps and one row of n
    zeros. `names` are those of the columns.
    """
    from sklearn import config_context

    step.transformers = [(part.name, _stand_in(part), part.indices) for part in parts]
    step.remainder = _stand_in(rest)
    with config_context(transform_output="default"):
        step.fit(np.zeros((1, n)))
    fitted = []
    for part, (name, made, columns) in zip([*parts, rest], step.transformers_, strict=False):
        if hasattr(part.step, "get_params"):
            made = part.step
        elif names is not None and part.step == "passthrough":
            made.feature_names_in_ = names[part.indices]
        fitted.append((name, made, columns if part is rest else part.given))
    step.transformers_ = fitted
    step.transformers = [(part.name, _unfitted(part.step), part.given) for part in parts]
    step.remainder = _unfitted(rest.step)


def _stand_in(part: Part) -> Any:
    """A transformer that returns as many columns as the step, all zero."""
    from sklearn.preprocessing import FunctionTransformer

    if not hasattr(part.step, "get_params"):
        return part.step
    return FunctionTransformer(lambda X: np.zeros((len(X), part.width)))


def _unfitted(step: Any) -> Any:
    from sklearn.base import clone

    return clone(step) if hasattr(step, "get_params") else step


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
