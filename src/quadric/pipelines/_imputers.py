"""Missing values replaced, and marked."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._known_steps import Facts, KnownStep
from quadric.pipelines._operations import (
    Beside,
    Branch,
    Impute,
    Indicate,
    Operation,
    Select,
    is_missing,
)


def _impute(step: Any) -> list[Operation]:
    fill = np.asarray(step.statistics_)
    operations: list[Operation] = []
    if not step.keep_empty_features:
        # scikit-learn calls a column empty if its statistic is NaN, and not if it is None
        kept = np.flatnonzero([value is None or not is_missing(value) for value in fill])
        if len(kept) < len(fill):
            operations.append(Select(kept, len(fill)))
        fill = fill[kept]
    operations.append(Impute(step.missing_values, fill))
    if not step.add_indicator or not len(step.indicator_.features_):
        return operations
    n = step.n_features_in_
    flags = Branch(np.asarray(step.indicator_.features_), (Indicate(step.missing_values),))
    return [Beside((Branch(np.arange(n), tuple(operations)), flags), n)]


def _facts(step: Any) -> dict[str, Any]:
    facts = {
        "statistics_": step.statistics_,
        "fit_dtype": step._fit_dtype,
        "fill_dtype": getattr(step, "_fill_dtype", step.statistics_.dtype),
    }
    return {**facts, "marked": step.indicator_.features_} if step.add_indicator else facts


def _restore(step: Any, facts: Facts) -> int:
    fill = facts.get("statistics_")
    right = isinstance(fill, np.ndarray) and fill.ndim == 1 and fill.size
    facts.expect("statistics_", right, "an array with a value for each column")
    facts.expect("statistics_", fill.dtype.kind in "iufO", "numbers or strings")
    n = len(fill)
    step.statistics_ = fill
    step._fit_dtype = _dtype(facts, "fit_dtype")
    step._fill_dtype = _dtype(facts, "fill_dtype")
    texts = fill.dtype == object and any(isinstance(value, str) for value in fill)
    facts.expect("fill_dtype", not texts or step._fill_dtype.kind == "O", "object")
    plain = (str, int, float, bool, type(None), np.generic)
    for name, value in (("missing_values", step.missing_values), ("fill_value", step.fill_value)):
        facts.expect(name, isinstance(value, plain), "a number or a string")
    if fill.dtype == object:
        facts.expect("statistics_", all(isinstance(v, plain) for v in fill), "numbers or strings")
    step.indicator_ = _indicator(step, facts, n) if step.add_indicator else None
    return n


def _dtype(facts: Facts, name: str) -> Any:
    value = facts.get(name)
    facts.expect(name, isinstance(value, np.dtype) and value.kind in "iufO", "a type of numbers")
    return value


def _indicator(step: Any, facts: Facts, n: int) -> Any:
    from sklearn.impute import MissingIndicator

    marked = _increasing(facts, "marked", n)
    indicator = MissingIndicator(missing_values=step.missing_values, error_on_new=False)
    indicator.features_, indicator._n_features, indicator._precomputed = marked, n, True
    indicator.n_features_in_ = n
    return indicator


def _increasing(facts: Facts, name: str, n: int) -> Array:
    indices = facts.vector(name, least=0, whole=True)
    right = (np.diff(indices) > 0).all() and (not indices.size or indices[-1] < n)
    facts.expect(name, right, f"increasing indices below {n}")
    return indices


IMPUTERS = [
    KnownStep(
        "sklearn.impute", "SimpleImputer",
        ("missing_values", "strategy", "fill_value", "add_indicator", "keep_empty_features"),
        facts=_facts, restore=_restore, operations=_impute,
    ),
]  # fmt: skip
