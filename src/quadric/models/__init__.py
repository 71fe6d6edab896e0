"""The scikit-learn steps that quadric supports, each expressed as a few generic operations.

`_table` lists the steps. An entry has three parts: the `operations` of a fitted step, the `facts`
that define it, and a function that restores it from these facts. `explain` composes operations,
`onnx` translates them, and `files` stores facts. Start reading at `_operations`.

This package imports `network`, `geometry` and `utils`.
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
from quadric.models._known_steps import (
    FactError,
    Facts,
    Known,
    Limits,
    Rules,
    are_numbers,
    is_vector,
)
from quadric.models._name_lengths import expect_short_names
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
    missing_after,
    width_after,
)
from quadric.models._origins import origins_after, unchanged
from quadric.models._selectors import SELECTED
from quadric.models._table import (
    STEPS,
    Steps,
    UnknownStepError,
    find,
    flat_steps,
    operations,
    split,
    split_network,
    transformed,
)

__all__ = [
    "SELECTED",
    "STEPS",
    "Affine",
    "Beside",
    "Bin",
    "Categories",
    "Clip",
    "Columns",
    "FactError",
    "Facts",
    "Impute",
    "Indicate",
    "Known",
    "Limits",
    "NotAffineError",
    "OneHot",
    "Operation",
    "Ordinal",
    "PartlyAffine",
    "Power",
    "Rules",
    "Select",
    "Steps",
    "UnknownStepError",
    "affine_map",
    "are_numbers",
    "drops",
    "expect_short_names",
    "fill_values",
    "find",
    "flat_steps",
    "is_missing",
    "is_vector",
    "missing_after",
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
