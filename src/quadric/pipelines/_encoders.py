"""Encoders: categories and bins of single columns as numbers."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._known_steps import Facts, KnownStep, all_different
from quadric.pipelines._operations import Bin, Categories, OneHot, Operation, Ordinal, is_missing

PREPROCESSING = "sklearn.preprocessing"
PLAIN = (bool, int, float, np.generic)
MOST_BINS = 10**6
INFREQUENT_AS_UNKNOWN = ("infrequent_if_exist", "warn")


# ------------------------------------------------------------------------- OneHotEncoder


def _one_hot(step: Any) -> list[Operation]:
    columns = []
    for i, (values, infrequent) in enumerate(zip(step.categories_, _infrequent(step), strict=True)):
        codes, width = _grouped(len(values), infrequent)
        unknown = -1
        if infrequent is not None and step.handle_unknown in INFREQUENT_AS_UNKNOWN:
            unknown = width - 1  # infrequent categories share the last place
        if step.drop_idx_ is not None and step.drop_idx_[i] is not None:
            gone = codes[int(step.drop_idx_[i])]
            unknown = -1 if unknown == gone else unknown - (unknown > gone)
            codes = np.where(codes == gone, -1, codes - (codes > gone))
            width -= 1
        error = step.handle_unknown == "error"
        columns.append(Categories(values, codes, None if error else unknown, width))
    return [OneHot(tuple(columns))]


def _infrequent(step: Any) -> list[Array | None]:
    """For each column the indices of its infrequent categories, which count as one; or None."""
    return getattr(step, "_infrequent_indices", None) or [None] * len(step.categories_)


def _grouped(count: int, infrequent: Array | None) -> tuple[Array, int]:
    """The place of each category, infrequent ones last and together; the number of places."""
    if infrequent is None:
        return np.arange(count), count
    frequent = np.ones(count, dtype=bool)
    frequent[infrequent] = False
    common = int(frequent.sum())
    return np.where(frequent, np.cumsum(frequent) - 1, common), common + 1


def _encoder_facts(step: Any) -> dict[str, Any]:
    return {
        "categories_": step.categories_,
        "infrequent": _infrequent(step) if step._infrequent_enabled else None,
    }


def _restore_one_hot(step: Any, facts: Facts) -> int:
    """By the class's own methods, from all categories and the infrequent ones."""
    step.categories_ = _categories(facts)
    _restore_infrequent(step, facts, {})
    facts.expect("feature_name_combiner", step.feature_name_combiner == "concat", "'concat'")
    facts.expect("dtype", _is_number_type(step.dtype), "a type of numbers")
    _expect_given(step, facts)
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    facts.expect("the number of output columns", sum(step._n_features_outs), "at least 1")
    return len(step.categories_)


def _restore_infrequent(step: Any, facts: Facts, missing: dict[int, int]) -> None:
    """`missing`: for some columns the index of a missing value, which is never infrequent."""
    infrequent = facts.get("infrequent")
    step._infrequent_enabled = infrequent is not None
    if infrequent is None:
        return
    counts = _zero_for_infrequent(facts, infrequent, step.categories_)
    wanted = step.min_frequency, step.max_categories
    step.min_frequency, step.max_categories = 1, None  # infrequent is what was not counted
    try:
        step._fit_infrequent_category_mapping(1, counts, missing)
    finally:
        step.min_frequency, step.max_categories = wanted


def _zero_for_infrequent(facts: Facts, infrequent: Any, categories: list[Array]) -> list[Array]:
    right = isinstance(infrequent, list) and len(infrequent) == len(categories)
    facts.expect("infrequent", right, "a list with an entry for each column")
    counts = [np.ones(len(values), dtype=np.int64) for values in categories]
    for indices, count in zip(infrequent, counts, strict=True):
        if indices is None:
            continue
        whole = isinstance(indices, np.ndarray) and indices.ndim == 1 and indices.dtype.kind in "iu"
        facts.expect("infrequent", whole and indices.size, "arrays of indices")
        inside = indices.min() >= 0 and indices.max() < len(count)
        facts.expect("infrequent", inside and (np.diff(indices) > 0).all(), "increasing indices")
        count[indices] = 0
    return counts


def _categories(facts: Facts) -> list[Array]:
    """The categories, sorted and distinct as the encoders' searches need them."""
    found = facts.get("categories_")
    facts.expect("categories_", isinstance(found, list) and found, "a list of arrays")
    for values in found:
        right = isinstance(values, np.ndarray) and values.ndim == 1 and values.size
        facts.expect("categories_", right and values.dtype.kind in "OUbiuf", "a list of arrays")
        present = values[:-1] if _is_nan(values[-1]) else values
        if values.dtype.kind in "biuf":
            increasing = (present[1:] > present[:-1]).all()
            facts.expect("categories_", increasing, "in increasing order, with NaN at the end")
            continue
        texts = all(isinstance(value, str) or value is None for value in present)
        numbers = all(
            value is None or (isinstance(value, PLAIN) and value == value) for value in present
        )
        facts.expect("categories_", texts or numbers, "all strings or all numbers")
        some = present[np.array([value is not None for value in present], dtype=bool)]
        different = len(present) - len(some) <= 1 and all_different(some)
        facts.expect("categories_", different, "all different")
    return found


def _expect_given(step: Any, facts: Facts) -> None:
    """The categories that the user gave, for another `fit`."""
    given = step.categories
    if isinstance(given, str):
        return
    right = isinstance(given, list) and len(given) == len(step.categories_)
    facts.expect("categories", right, "'auto' or a list with an entry for each column")
    for values in given:
        flat = isinstance(values, (list, tuple, np.ndarray)) and len(values)
        plain = flat and all(v is None or isinstance(v, (str, *PLAIN)) for v in values)
        facts.expect("categories", plain, "lists of strings or numbers")


def _is_nan(value: Any) -> bool:
    return value is not None and is_missing(value)


def _is_number_type(dtype: Any) -> bool:
    known = isinstance(dtype, (type, np.dtype, str)) and dtype is not object
    return known and np.dtype(dtype).kind in "biuf"


# ------------------------------------------------------------------------ OrdinalEncoder


def _ordinal(step: Any) -> list[Operation]:
    columns = []
    unknown = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else None
    for values, infrequent in zip(step.categories_, _infrequent(step), strict=True):
        present = len(values) - int(_is_nan(values[-1]))
        codes = _grouped(present, infrequent)[0].astype(float)
        if present < len(values):
            codes = np.append(codes, float(step.encoded_missing_value))
        codes = codes.astype(step.dtype).astype(float)  # a small type may not hold them all
        columns.append(Categories(values, codes, unknown))
    return [Ordinal(tuple(columns))]


def _restore_ordinal(step: Any, facts: Facts) -> int:
    step.categories_ = _categories(facts)
    step._missing_indices = {
        i: len(values) - 1 for i, values in enumerate(step.categories_) if _is_nan(values[-1])
    }
    _restore_infrequent(step, facts, step._missing_indices)
    facts.expect("dtype", _is_number_type(step.dtype), "a type of numbers")
    _expect_given(step, facts)
    if step.handle_unknown == "use_encoded_value":
        facts.expect(
            "unknown_value", _fits(step.unknown_value, step.dtype), "a number that dtype can hold"
        )
    else:
        facts.expect("unknown_value", step.unknown_value is None, "None")
    if step._missing_indices:
        fits = _fits(step.encoded_missing_value, step.dtype)
        facts.expect("encoded_missing_value", fits, "a number that dtype can hold")
    return len(step.categories_)


def _fits(value: Any, dtype: Any) -> bool:
    """Whether an array of that type can hold the number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    if is_missing(value):
        return np.dtype(dtype).kind == "f"
    return abs(float(value)) < 2**53 and bool(np.array(value).astype(dtype) == value)


# ---------------------------------------------------------------------- KBinsDiscretizer


def _bins(step: Any) -> list[Operation]:
    edges = [np.asarray(edges, dtype=float)[1:-1] for edges in step.bin_edges_]
    operations: list[Operation] = [Bin(tuple(edges), step.dtype)]
    return operations if step.encode == "ordinal" else operations + _one_hot(step._encoder)


def _restore_bins(step: Any, facts: Facts) -> int:
    few = np.max(step.n_bins) <= MOST_BINS
    facts.expect("n_bins", few, f"at most {MOST_BINS}")
    found = facts.get("bin_edges_")
    facts.expect("bin_edges_", isinstance(found, list) and found, "a list of arrays")
    step.bin_edges_ = np.empty(len(found), dtype=object)
    for i, edges in enumerate(found):
        right = isinstance(edges, np.ndarray) and edges.ndim == 1 and edges.dtype.kind == "f"
        facts.expect("bin_edges_", right and edges.size >= 2, "arrays of at least two numbers")
        facts.expect("bin_edges_", (edges[1:] >= edges[:-1]).all(), "in increasing order")
        facts.expect("bin_edges_", np.isfinite(edges[1:-1]).all(), "finite")
        step.bin_edges_[i] = edges
    step.n_bins_ = np.array([len(edges) - 1 for edges in found])
    facts.expect("dtype", step.dtype in (None, np.float32, np.float64), "a type of real numbers")
    if step.encode != "ordinal":
        step._encoder = _bin_encoder(step)
    return len(found)


def _bin_encoder(step: Any) -> Any:
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(
        categories=[np.arange(count) for count in step.n_bins_],
        sparse_output=step.encode == "onehot",
        dtype=np.float64 if step.dtype is None else step.dtype,
    )
    return encoder.fit(np.zeros((1, len(step.n_bins_))))


ENCODERS = [
    KnownStep(
        PREPROCESSING, "OneHotEncoder",
        ("categories", "drop", "sparse_output", "dtype", "handle_unknown", "min_frequency",
         "max_categories", "feature_name_combiner"),
        facts=_encoder_facts, restore=_restore_one_hot, operations=_one_hot,
    ),
    KnownStep(
        PREPROCESSING, "OrdinalEncoder",
        ("categories", "dtype", "handle_unknown", "unknown_value", "encoded_missing_value",
         "min_frequency", "max_categories"),
        facts=_encoder_facts, restore=_restore_ordinal, operations=_ordinal,
    ),
    KnownStep(
        PREPROCESSING, "KBinsDiscretizer",
        ("n_bins", "encode", "strategy", "quantile_method", "dtype", "subsample", "random_state"),
        facts=lambda step: {"bin_edges_": list(step.bin_edges_)}, restore=_restore_bins,
        operations=_bins,
    ),
]  # fmt: skip
