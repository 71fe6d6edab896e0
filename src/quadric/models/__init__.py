"""The scikit-learn steps that quadric supports, each expressed as a few generic operations.

`_table` lists the steps. An entry has three parts: the `operations` of a fitted step, the `facts`
that define it, and a function that restores it from these facts. `explain` composes operations,
and `onnx` translates them. `_saved_classes` describes and restores steps and estimators by their
facts, which `files` stores. Start reading at `_operations`.

`_view` describes a fitted model: other packages ask `ModelView` about its steps, its classes, the
names of its inputs, its folded network (`_folding`) and its coordinates (`_coordinates`).

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
from quadric.models._coordinates import Coordinates
from quadric.models._facts import Limits as Limits
from quadric.models._folding import (
    check_matrices as check_matrices,
    compose as compose,
    fold_layers as fold_layers,
    layer_to_quadratic as layer_to_quadratic,
    stretches as stretches,
)
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
    transformed,
)
from quadric.models._view import ModelView, classes_of, input_names_of, steps_of

__all__ = [
    "Affine",
    "Beside",
    "Bin",
    "Categories",
    "Clip",
    "Columns",
    "Coordinates",
    "Impute",
    "Indicate",
    "ModelView",
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
    "classes_of",
    "drops",
    "fill_values",
    "find",
    "input_names_of",
    "is_missing",
    "operations",
    "partly_affine",
    "passes",
    "split",
    "steps_of",
    "transformed",
    "undo_steps",
    "width_after",
]
