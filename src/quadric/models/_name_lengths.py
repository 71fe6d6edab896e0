"""The lengths of the names of output columns, computed without building the names.

scikit-learn builds a name from the names of the input columns, of steps and of categories. A forged
file could make the names of many columns, or of nested steps, as long as it likes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.models._composed_steps import drops, passes
from quadric.models._encoders import one_hot_columns
from quadric.models._known_steps import Limits
from quadric.models._operations import is_missing

NUMBER = 32  # characters of a number, at most
INDICATOR = len("missingindicator_")
INFREQUENT = len("infrequent_sklearn")


def expect_short_names(steps: Sequence[Any], limits: Limits) -> None:
    """Raise FactError if the names of the columns after one of the fitted steps are too long."""
    names = getattr(steps[0], "feature_names_in_", None)
    n = n_inputs(steps[0]) if names is None else len(names)
    if n is None:
        return  # no step has a fixed number of columns
    if names is None:
        lengths = np.broadcast_to(np.int32(len(f"x{n}")), n)
    else:
        lengths = np.fromiter(map(len, names), np.int32, n)
    for step in steps:
        lengths = name_lengths(step, lengths, limits)


def n_inputs(step: Any) -> int | None:
    """The number of input columns; a step that begins with 'passthrough' does not know it."""
    n: int | None = getattr(step, "n_features_in_", None)
    for _, inner in getattr(step, "steps", getattr(step, "transformer_list", ())):
        n = n_inputs(inner) if n is None else n
    return n


def name_lengths(step: Any, lengths: Array, limits: Limits) -> Array:
    """Upper bounds for the lengths of the output names, given the lengths of the input names.

    Raises FactError if these names, or those of an inner step, exceed the limits.
    """
    name = type(step).__name__
    if name in CHANGED:
        lengths = CHANGED[name](step, lengths, limits)
        limits.expect_names(lengths)
    elif hasattr(step, "get_support"):
        lengths = lengths[step.get_support()]
    return lengths


def _of_pipeline(step: Any, lengths: Array, limits: Limits) -> Array:
    for _, inner in step.steps:
        lengths = name_lengths(inner, lengths, limits)
    return lengths


def _of_columns(step: Any, lengths: Array, limits: Limits) -> Array:
    form, places = step.verbose_feature_names_out, step._transformer_to_input_indices
    parts = []
    for name, inner, _ in step.transformers_:
        if not drops(inner) and len(places[name]):
            parts.append((name, inner, lengths[places[name]]))
    return _beside(parts, len(form) - 2 if isinstance(form, str) else 0, bool(form), limits)


def _of_union(step: Any, lengths: Array, limits: Limits) -> Array:
    parts = [(name, inner, lengths) for name, inner in step.transformer_list if not drops(inner)]
    return _beside(parts, 0, bool(step.verbose_feature_names_out), limits)


def _beside(
    parts: list[tuple[str, Any, Array]], added: int, prefixed: bool, limits: Limits
) -> Array:
    """The lengths for several steps, whose names are followed by '__' if `prefixed`."""
    found, total = [np.empty(0, dtype=np.int32)], 0
    for name, inner, lengths in parts:
        made = lengths if passes(inner) else name_lengths(inner, lengths, limits)
        total += len(made)
        limits.expect_columns(total)  # before the lengths are copied
        found.append(made + np.int32(added + prefixed * (len(name) + 2)))
    return np.concatenate(found)


def _of_one_hot(step: Any, lengths: Array, limits: Limits) -> Array:
    found = []
    for length, (column, infrequent) in zip(lengths, one_hot_columns(step), strict=True):
        inside = np.full(column.width, INFREQUENT if infrequent else 0, dtype=np.int32)
        kept = column.codes >= 0
        np.maximum.at(inside, column.codes[kept], _text_lengths(column.values[kept]))
        found.append(inside + length + np.int32(1))
    return np.concatenate(found)


def _text_lengths(values: Array) -> Array:
    if values.dtype.kind not in "OU":
        return np.broadcast_to(np.int32(NUMBER), len(values))
    lengths = (len(value) if isinstance(value, str) else NUMBER for value in values)
    return np.fromiter(lengths, np.int32, len(values))


def _of_bins(step: Any, lengths: Array, limits: Limits) -> Array:
    if step.encode == "ordinal":
        return lengths
    return np.repeat(lengths, step.n_bins_) + np.int32(1 + NUMBER)


def _of_imputer(step: Any, lengths: Array, limits: Limits) -> Array:
    kept = [step.keep_empty_features or v is None or not is_missing(v) for v in step.statistics_]
    marked = lengths[step.indicator_.features_] if step.add_indicator else lengths[:0]
    return np.concatenate([lengths[np.array(kept, dtype=bool)], marked + np.int32(INDICATOR)])


def _of_projection(step: Any, lengths: Array, limits: Limits) -> Array:
    return np.broadcast_to(np.int32(NUMBER), len(step.components_))  # the class and a number


# the steps whose output names differ from the input names, except for selectors
CHANGED: dict[str, Callable[[Any, Array, Limits], Array]] = {
    "ColumnTransformer": _of_columns,
    "FeatureUnion": _of_union,
    "IncrementalPCA": _of_projection,
    "KBinsDiscretizer": _of_bins,
    "OneHotEncoder": _of_one_hot,
    "PCA": _of_projection,
    "Pipeline": _of_pipeline,
    "SimpleImputer": _of_imputer,
    "TruncatedSVD": _of_projection,
}
