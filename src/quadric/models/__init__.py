"""The scikit-learn steps that quadric supports, each expressed as a few generic operations.

`_table` lists the steps. An entry has three parts: the `operations` of a fitted step, the `facts`
that define it, and a function that restores it from these facts. `explain` composes operations,
and `onnx` translates them. `_saved_classes` describes and restores steps and estimators by their
facts, which `files` stores. Start reading at `_operations`.

This package imports `estimators`, `network`, `core`, `geometry` and `utils`.
"""

from quadric.models._affine import (
    NotAffineError,
    PartlyAffine,
    affine_map,
    fill_values,
    partly_affine,
    undo_steps,
)
from quadric.models._composed_steps import Columns, drops, passes
from quadric.models._facts import Limits as Limits
from quadric.models._operations import (
    Affine,
    Beside,
    Bin,
    Categories,
    Clip,
    Impute,
    Indicate,
    OneHot,
    Operation,
    Ordinal,
    Power,
    Select,
    is_missing,
    width_after,
)
from quadric.models._origins import origins_after, unchanged
from quadric.models._saved_classes import (
    check_restored as check_restored,
    describe as describe,
    is_saved_estimator as is_saved_estimator,
    restore as restore,
)
from quadric.models._table import (
    Steps,
    UnknownStepError,
    find,
    operations,
    split,
    split_network,
    transformed,
)

__all__ = [
    "Affine",
    "Beside",
    "Bin",
    "Categories",
    "Clip",
    "Columns",
    "Impute",
    "Indicate",
    "NotAffineError",
    "OneHot",
    "Operation",
    "Ordinal",
    "PartlyAffine",
    "Power",
    "Select",
    "Steps",
    "UnknownStepError",
    "affine_map",
    "drops",
    "fill_values",
    "find",
    "is_missing",
    "operations",
    "origins_after",
    "partly_affine",
    "passes",
    "split",
    "split_network",
    "transformed",
    "unchanged",
    "undo_steps",
    "width_after",
]
