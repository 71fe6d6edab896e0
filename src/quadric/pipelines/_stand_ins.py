"""A ColumnTransformer rebuilt by its own `fit`, with stand-ins for its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

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


class _StandIn(TransformerMixin, BaseEstimator):
    """Returns as many columns as the step that it stands for."""

    def __init__(self, width: int) -> None:
        self.width = width

    def fit(self, X: Any, y: Any = None) -> _StandIn:
        return self

    def transform(self, X: Any) -> Array:
        return np.zeros((len(X), self.width))


def record_columns(step: Any, parts: list[Part], rest: Part, names: Array | None, n: int) -> None:
    """Give an unfitted ColumnTransformer its fitted steps.

    Its own `fit` records which columns go where, from stand-ins for the steps and one row of n
    zeros. `names` are those of the columns.
    """
    step.transformers = [(part.name, _stand_in(part), part.indices) for part in parts]
    step.remainder = _stand_in(rest)
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
    return _StandIn(part.width) if hasattr(part.step, "get_params") else part.step


def _unfitted(step: Any) -> Any:
    return clone(step) if hasattr(step, "get_params") else step
