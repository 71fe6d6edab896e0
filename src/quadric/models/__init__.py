"""The scikit-learn steps that quadric supports, each expressed as a few generic operations.

`_table` lists the steps. An entry has three parts: the `operations` of a fitted step, the `facts`
that define it, and a function that restores it from these facts. `explain` composes operations,
`onnx` translates them, and `files` stores facts. Start reading at `_operations`.

`_view` describes a fitted model: other packages ask `ModelView` about its steps, its classes, the
names of its inputs, its folded network (`_folding`) and its coordinates (`_coordinates`).

This package imports `network`, `core`, `geometry` and `utils`.
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
from quadric.models._coordinates import Coordinates
from quadric.models._folding import (
    check_matrices as check_matrices,
    compose as compose,
    fold_layers as fold_layers,
    layer_to_quadratic as layer_to_quadratic,
    stretches as stretches,
)
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
from quadric.models._selectors import SELECTED
from quadric.models._table import (
    STEPS,
    Steps,
    UnknownStepError,
    find,
    flat_steps,
    operations,
    split,
    transformed,
)
from quadric.models._view import ModelView, classes_of, input_names_of, steps_of

__all__ = [
    "SELECTED",
    "STEPS",
    "Affine",
    "Beside",
    "Bin",
    "Categories",
    "Clip",
    "Columns",
    "Coordinates",
    "FactError",
    "Facts",
    "Impute",
    "Indicate",
    "Known",
    "Limits",
    "ModelView",
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
    "classes_of",
    "drops",
    "expect_short_names",
    "fill_values",
    "find",
    "flat_steps",
    "input_names_of",
    "is_missing",
    "is_vector",
    "missing_after",
    "operations",
    "partly_affine",
    "passes",
    "split",
    "steps_of",
    "transformed",
    "undo_steps",
    "width_after",
]
