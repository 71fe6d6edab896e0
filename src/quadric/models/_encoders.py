"""Encoders, which turn the categories or bins of each column into numbers."""

import inspect
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from quadric.checks import Array
from quadric.errors import expect
from quadric.models._facts import (
    LABELS,
    Facts,
    Known,
    Rules,
    all_different,
    as_array,
    increasing_indices,
    is_increasing,
    is_number,
    is_vector,
)
from quadric.models._operations import (
    Beside,
    Bin,
    Branch,
    Categories,
    OneHot,
    Operation,
    Ordinal,
    is_missing,
)

PLAIN = (bool, int, float, np.generic)
MOST_BINS = 10**6


# ------------------------------------------------- categories, for both kinds of encoders


def _is_nan(value: Any) -> bool:
    return value is not None and is_missing(value)


def _present(values: Array) -> Array:
    """The categories, except for None and a NaN at the end."""
    values = values[:-1] if _is_nan(values[-1]) else values
    return values[np.fromiter((value is not None for value in values), bool, len(values))]


LISTED: Rules = {"a list of arrays": lambda value: isinstance(value, list) and value}
# The encoders search the categories of a column, which must therefore be sorted and distinct.
CATEGORIES: Rules = {
    "a list of arrays": lambda values: is_vector(values, "OUbiuf") and values.size,
    "increasing, with NaN at the end": lambda values: (
        values.dtype.kind not in "biuf" or is_increasing(_present(values))
    ),
    "all strings or all numbers": lambda values: (
        all(isinstance(value, str) for value in _present(values))
        or all(isinstance(value, PLAIN) and value == value for value in _present(values))
    ),
    "all different": lambda values: (
        sum(value is None for value in values) <= 1 and all_different(_present(values))
    ),
}
# The categories given by the user, which are needed if the step is fitted again.
GIVEN: Rules = {
    "'auto' or a list": lambda given: isinstance(given, list),
    "a list of lists": lambda given: all(
        isinstance(values, (list, tuple, np.ndarray)) and len(values) for values in given
    ),
    "lists of strings or numbers": lambda given: all(
        value is None or isinstance(value, (str, *PLAIN)) for values in given for value in values
    ),
}
DTYPE: Rules = {
    "a dtype of numbers": lambda dtype: (
        isinstance(dtype, (type, np.dtype, str))
        and dtype is not object
        and np.dtype(dtype).kind in "biuf"
    ),
}
BINS: Rules = {
    "integers": lambda bins: bins.dtype.kind in "iu" and bins.size,
    f"at most {MOST_BINS}": lambda bins: bins.max() <= MOST_BINS,
}
EDGES: Rules = {
    "arrays of at least two numbers": lambda edges: is_vector(edges, "f") and edges.size >= 2,
    "in increasing order": lambda edges: (edges[1:] >= edges[:-1]).all(),
    "finite": lambda edges: np.isfinite(edges[1:-1]).all(),
}


def _infrequent(step: Any) -> list[Array | None]:
    """For each column, the indices of its infrequent categories, which form one group, or None."""
    return getattr(step, "_infrequent_indices", None) or [None] * len(step.categories_)


def _grouped(count: int, infrequent: Array | None) -> tuple[Array, int]:
    """The code of each category and the number of codes; infrequent categories share the last."""
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


def _restore_categories(step: Any, facts: Facts) -> None:
    step.categories_ = facts.require("categories_", LISTED)
    for values in step.categories_:
        facts.check("categories_", values, CATEGORIES)
    if not isinstance(step.categories, str):
        facts.check("categories", step.categories, GIVEN)
        facts.expect(
            "categories",
            len(step.categories) == len(step.categories_),
            "a list with an entry for each column",
        )
        for given, values in zip(step.categories, step.categories_, strict=True):
            if values.dtype.kind in "biuf":  # `fit` rejects unsorted numbers
                facts.check("categories", as_array(given), CATEGORIES)


def _restore_infrequent(step: Any, facts: Facts, counts: list[int]) -> None:
    """Group the infrequent categories; `counts` are the categories that a column can group."""
    infrequent = facts.get("infrequent")
    step._infrequent_enabled = infrequent is not None
    if infrequent is None:
        return
    facts.expect(
        "infrequent",
        isinstance(infrequent, list) and len(infrequent) == len(counts),
        "a list with an entry for each column",
    )
    for indices, count in zip(infrequent, counts, strict=True):
        if indices is not None:
            facts.check(
                "infrequent",
                indices,
                {**increasing_indices(count), "arrays that are not empty": np.size},
            )
    step._infrequent_indices = infrequent
    step._default_to_infrequent_mappings = [
        None if indices is None else _grouped(count, indices)[0]
        for indices, count in zip(infrequent, counts, strict=True)
    ]


# ------------------------------------------------------------------------- OneHotEncoder


def _one_hot(step: Any) -> list[Operation]:
    columns = []
    for i, (values, infrequent) in enumerate(zip(step.categories_, _infrequent(step), strict=True)):
        codes, width = _grouped(len(values), infrequent)
        grouped = infrequent is not None  # these categories share the last column
        joins = grouped and step.handle_unknown in ("infrequent_if_exist", "warn")
        unknown = width - 1 if joins else -1
        if step.drop_idx_ is not None and step.drop_idx_[i] is not None:
            gone = codes[int(step.drop_idx_[i])]
            unknown = -1 if unknown == gone else unknown - (unknown > gone)
            codes = np.where(codes == gone, -1, codes - (codes > gone))
            width -= 1
        columns.append(
            Categories(
                values, codes, None if step.handle_unknown == "error" else unknown, width, grouped
            )
        )
    return [OneHot(tuple(columns))]


def _restore_one_hot(step: Any, facts: Facts) -> int:
    """Derive the other attributes with the class's own methods."""
    facts.check("dtype", step.dtype, DTYPE)
    _restore_categories(step, facts)
    _restore_infrequent(step, facts, [len(values) for values in step.categories_])
    facts.expect("feature_name_combiner", step.feature_name_combiner == "concat", "'concat'")
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    facts.expect("the number of output columns", sum(step._n_features_outs), "at least 1")
    return len(step.categories_)


# ------------------------------------------------------------------------ OrdinalEncoder


def _ordinal(step: Any) -> list[Operation]:
    columns = []
    unknown = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else None
    for values, infrequent in zip(step.categories_, _infrequent(step), strict=True):
        present = len(values) - int(_is_nan(values[-1]))
        codes = _grouped(present, infrequent)[0].astype(float)
        if present < len(values):
            codes = np.append(codes, float(step.encoded_missing_value))
        codes = codes.astype(step.dtype).astype(float)  # a small dtype may round them
        columns.append(Categories(values, codes, unknown))
    return [Ordinal(tuple(columns))]


def _restore_ordinal(step: Any, facts: Facts) -> int:
    facts.check("dtype", step.dtype, DTYPE)
    _restore_categories(step, facts)
    step._missing_indices = {
        i: len(values) - 1 for i, values in enumerate(step.categories_) if _is_nan(values[-1])
    }
    counts = [step._missing_indices.get(i, len(v)) for i, v in enumerate(step.categories_)]
    _restore_infrequent(step, facts, counts)  # without NaN, which is never infrequent
    if step.handle_unknown == "use_encoded_value":
        _expect_code(facts, step, "unknown_value")
    else:
        facts.expect("unknown_value", step.unknown_value is None, "None")
    if step._missing_indices:
        _expect_code(facts, step, "encoded_missing_value")
    return len(step.categories_)


def _expect_code(facts: Facts, step: Any, name: str) -> None:
    """Raise ModelFileError unless the parameter is a number that the step's dtype can hold."""
    dtype = np.dtype(step.dtype)
    facts.check(
        name,
        getattr(step, name),
        {
            "a number": is_number,
            "a number that dtype can hold": lambda value: (
                dtype.kind == "f"
                if is_missing(value)
                else abs(float(value)) < 2**53 and np.array(value).astype(dtype) == value
            ),
        },
    )


# ------------------------------------------------------------------------- TargetEncoder

# `fit` computes each encoding from the other folds; scikit-learn 1.9 takes a splitter for them
FOLDS = {"KFold": KFold, "StratifiedKFold": StratifiedKFold}
FOLD_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(TargetEncoder.__init__).parameters.items()
    if name in ("cv", "shuffle", "random_state")
}
TAKES_SPLITTER = FOLD_DEFAULTS.get("shuffle") is not True
SPLIT: Rules = {
    "a splitter, a number, a truth value and a seed": lambda folds: (
        isinstance(folds, tuple)
        and len(folds) == 4
        and folds[0] in (None, *FOLDS)
        and type(folds[1]) is int
        and isinstance(folds[2], bool)
        and (folds[3] is None or type(folds[3]) is int)
    ),
    "at least two folds, and a seed of 32 bits": lambda folds: (
        folds[1] >= 2 and 0 <= (folds[3] or 0) < 2**32
    ),
}
ENCODING: Rules = {
    "arrays of numbers": lambda codes: is_vector(codes, "f"),
    "finite": lambda codes: np.isfinite(codes).all(),
}


def _folds(step: Any) -> tuple[str | None, int, bool, int | None]:
    """The splitter's name, if it is one, and its number of folds, shuffling and seed."""
    named = type(step.cv).__name__ if type(step.cv) in FOLDS.values() else None
    of = step if named is None else step.cv
    shuffle, seed = (getattr(of, name, None) for name in ("shuffle", "random_state"))
    shuffle, seed = shuffle in (True, "deprecated", None), None if seed == "deprecated" else seed
    count = step.cv if named is None else step.cv.n_splits
    expect(
        isinstance(count, (int, np.integer))
        and (seed is None or isinstance(seed, (int, np.integer))),
        "cv of TargetEncoder is neither a number of folds nor a KFold with an integer seed, which "
        "a model file does not store",
    )
    return named, int(count), shuffle, None if seed is None else int(seed)


def _set_folds(step: Any, facts: Facts) -> None:
    """Restore the folds in the form that the installed version of scikit-learn accepts."""
    named, count, shuffle, seed = facts.require("folds", SPLIT)
    given: dict[str, Any] = {"cv": count}
    if not TAKES_SPLITTER:
        given |= {"shuffle": shuffle, "random_state": seed}
    elif named is not None or not shuffle or seed is not None:
        plain = KFold if step.target_type_ == "continuous" else StratifiedKFold
        make = FOLDS.get(named or "", plain)
        given["cv"] = make(count, shuffle=shuffle, random_state=seed)
    step.set_params(**given)


def _target_facts(step: Any) -> dict[str, Any]:
    return {
        "categories_": step.categories_,
        "encodings_": step.encodings_,
        "target_type_": step.target_type_,
        "target_mean_": step.target_mean_,
        "classes_": step.classes_,
        "folds": _folds(step),
    }


def _target(step: Any) -> list[Operation]:
    """One number for each column, or one for each column and class."""
    k = len(step.classes_) if step.target_type_ == "multiclass" else 1
    unknown = np.reshape(np.asarray(step.target_mean_, dtype=float), -1)
    columns = [
        Categories(step.categories_[i // k], np.asarray(codes, dtype=float), float(unknown[i % k]))
        for i, codes in enumerate(step.encodings_)
    ]
    if step.target_type_ != "multiclass":
        return [Ordinal(tuple(columns))]
    longer = [1 + len(str(label)) for label in step.classes_]  # names end with the class
    branches = (
        Branch([i // k], (Ordinal((column,)),), longer[i % k]) for i, column in enumerate(columns)
    )
    return [Beside(tuple(branches), len(step.categories_))]


def _restore_target(step: Any, facts: Facts) -> int:
    _restore_categories(step, facts)
    step._infrequent_enabled = False  # there is no such group
    kind = step.target_type_ = facts.get("target_type_")
    facts.expect(
        "target_type_",
        isinstance(kind, str) and kind in ("binary", "multiclass", "continuous"),
        "'binary', 'multiclass' or 'continuous'",
    )
    facts.expect("target_type", step.target_type in ("auto", kind), f"'auto' or {kind!r}")
    step.classes_ = facts.require("classes_", LABELS, optional=kind == "continuous")
    count = 0 if step.classes_ is None else len(step.classes_)
    valid = {"binary": count in (1, 2), "multiclass": count >= 2, "continuous": not count}
    facts.expect("the number of classes_", valid[kind], f"that of a {kind} target")
    several = kind == "multiclass"
    step.target_mean_ = (
        facts.vector("target_mean_", count) if several else facts.number("target_mean_")
    )
    k = count if several else 1
    step.encodings_ = facts.require("encodings_", LISTED)
    facts.expect(
        "encodings_",
        len(step.encodings_) == k * len(step.categories_),
        "a list with an array for each column and class",
    )
    for i, codes in enumerate(step.encodings_):
        facts.check("encodings_", codes, ENCODING)
        facts.expect(
            "encodings_",
            len(codes) == len(step.categories_[i // k]),
            "arrays with a number for each category",
        )
    _set_folds(step, facts)
    return len(step.categories_)


# ---------------------------------------------------------------------- KBinsDiscretizer


def _bins(step: Any) -> list[Operation]:
    edges = [np.asarray(edges, dtype=float)[1:-1] for edges in step.bin_edges_]
    encoding = [] if step.encode == "ordinal" else _one_hot(step._encoder)
    return [Bin(tuple(edges), step.dtype), *encoding]


def _restore_bins(step: Any, facts: Facts) -> int:
    facts.check("n_bins", as_array(step.n_bins), BINS)
    given_edges = facts.require("bin_edges_", LISTED)
    step.bin_edges_ = np.empty(len(given_edges), dtype=object)
    for i, edges in enumerate(given_edges):
        step.bin_edges_[i] = facts.check("bin_edges_", edges, EDGES)
    step.n_bins_ = np.array([len(edges) - 1 for edges in given_edges])
    facts.expect("dtype", step.dtype in (None, np.float32, np.float64), "float32 or float64")
    if step.encode != "ordinal":
        step._encoder = OneHotEncoder(
            categories=[np.arange(count) for count in step.n_bins_],
            sparse_output=step.encode == "onehot",
            dtype=np.float64 if step.dtype is None else step.dtype,
        ).fit(np.zeros((1, len(given_edges))))
    return len(given_edges)


_BOTH = ("categories", "dtype", "handle_unknown", "min_frequency", "max_categories")
ENCODERS = [
    Known(
        "sklearn.preprocessing:OneHotEncoder",
        (*_BOTH, "drop", "sparse_output", "feature_name_combiner"),
        facts=_encoder_facts,
        restore=_restore_one_hot,
        operations=_one_hot,
    ),
    Known(
        "sklearn.preprocessing:OrdinalEncoder",
        (*_BOTH, "unknown_value", "encoded_missing_value"),
        facts=_encoder_facts,
        restore=_restore_ordinal,
        operations=_ordinal,
    ),
    Known(
        "sklearn.preprocessing:TargetEncoder",
        ("categories", "target_type", "smooth"),
        facts=_target_facts,
        restore=_restore_target,
        operations=_target,
        absent=FOLD_DEFAULTS,
    ),
    Known(
        "sklearn.preprocessing:KBinsDiscretizer",
        ("n_bins", "encode", "strategy", "quantile_method", "dtype", "subsample", "random_state"),
        facts=lambda step: {"bin_edges_": list(step.bin_edges_)},
        restore=_restore_bins,
        operations=_bins,
    ),
]
