"""SimpleImputer, with its indicators of missing values."""

from typing import Any

import numpy as np
from sklearn.impute import MissingIndicator

from quadric.models._known_steps import Facts, KnownStep, Rules, increasing_indices, is_vector
from quadric.models._operations import (
    Beside,
    Branch,
    Impute,
    Indicate,
    Operation,
    Select,
    is_missing,
)

FLOATS = (float, np.floating)
PLAIN = (str, int, float, bool, type(None), np.generic)
STATISTICS: Rules = {
    "an array with an entry for each column": lambda value: is_vector(value, "iufO") and value.size,
    "numbers or strings": lambda array: (
        array.dtype != object or all(isinstance(value, PLAIN) for value in array)
    ),
    "not infinite": lambda array: (
        not any(isinstance(value, FLOATS) and np.isinf(value) for value in array)
    ),
}
DTYPE: Rules = {
    "a dtype of numbers or objects": lambda value: (
        isinstance(value, np.dtype) and value.kind in "iufO"
    ),
}


def _impute(step: Any) -> list[Operation]:
    fill = np.asarray(step.statistics_)
    operations: list[Operation] = []
    if not step.keep_empty_features:
        # for scikit-learn, a column is empty if its statistic is NaN, but not if it is None
        kept = np.flatnonzero([value is None or not is_missing(value) for value in fill])
        if len(kept) < len(fill):
            operations.append(Select(kept, len(fill)))
        fill = fill[kept]
    operations.append(Impute(step.missing_values, fill))
    if not step.add_indicator or not len(step.indicator_.features_):
        return operations
    n = step.n_features_in_
    marks = Branch(np.asarray(step.indicator_.features_), (Indicate(step.missing_values),))
    return [Beside((Branch(np.arange(n), tuple(operations)), marks), n)]


def _restore_imputer(step: Any, facts: Facts) -> int:
    fill = step.statistics_ = facts.require("statistics_", STATISTICS)
    step._fit_dtype = facts.require("fit_dtype", DTYPE)
    step._fill_dtype = facts.require("fill_dtype", DTYPE)
    texts = fill.dtype == object and any(isinstance(value, str) for value in fill)
    facts.expect("fill_dtype", not texts or step._fill_dtype.kind == "O", "object")
    for name in ("missing_values", "fill_value"):
        facts.expect(name, isinstance(getattr(step, name), PLAIN), "a number or a string")
    n = len(fill)
    step.indicator_ = None
    if step.add_indicator:
        made = MissingIndicator(missing_values=step.missing_values, error_on_new=False)
        marked = facts.require("marked", increasing_indices(n))
        vars(made).update(features_=marked, n_features_in_=n, _n_features=n, _precomputed=True)
        step.indicator_ = made
    return n


IMPUTERS = [
    KnownStep(
        "sklearn.impute:SimpleImputer",
        ("missing_values", "strategy", "fill_value", "add_indicator", "keep_empty_features"),
        facts=lambda step: {
            "statistics_": step.statistics_,
            "fit_dtype": step._fit_dtype,
            "fill_dtype": getattr(step, "_fill_dtype", step.statistics_.dtype),
            "marked": step.indicator_.features_ if step.add_indicator else None,
        },
        restore=_restore_imputer,
        operations=_impute,
    ),
]
