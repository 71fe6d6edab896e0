"""What a fitted model is, and the scikit-learn steps that may come before its network.

`_model_view` describes a fitted model: other packages ask `ModelView` about its network, its steps,
its classes, the names of its inputs, its folded network and its coordinates (`_coordinates`).

`_supported_steps` lists the steps. An entry has three parts: the `operations` of a fitted step, the
`facts` that define it, and a function that restores it from these facts. `explain` composes
operations, and `onnx` translates them. `_saved_classes` describes and restores steps and estimators
by their facts, which `files` stores. `_composition` composes operations into an affine map, and
layers into a quadratic layer. Start reading at `_operations`.
"""

from quadric.models._composition import (
    NotAffineError,
    PartlyAffine,
    affine_map,
    check_matrices as check_matrices,
    compose as compose,
    fold_layers as fold_layers,
    layer_to_quadratic as layer_to_quadratic,
    partly_affine,
    stretches as stretches,
    undo_steps,
)
from quadric.models._coordinates import Coordinates
from quadric.models._facts import Limits as Limits
from quadric.models._model_view import ModelView, classes_of, input_names_of, steps_of
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
from quadric.models._supported_steps import (
    Columns,
    Steps,
    UnknownStepError,
    find,
    operations,
    split,
    transformed,
)

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
    "find",
    "input_names_of",
    "is_missing",
    "operations",
    "partly_affine",
    "split",
    "steps_of",
    "transformed",
    "undo_steps",
    "width_after",
]
