"""What a fitted model is, and the scikit-learn steps that may come before its network.

`_model_view` describes a fitted model: other packages ask `ModelView` about its network, its steps,
its classes, the names of its inputs, its folded network and its coordinates (`_coordinates`), in
which the affine steps are undone.

`_supported_steps` lists the steps. An entry has three parts: the `operations` of a fitted step, the
`facts` that define it, and a function that restores it from these facts. `explain` composes
operations; `onnx` and `codegen` translate them. `_saved_classes` describes and restores steps and
estimators by their facts, which `files` stores. Start reading at `_operations`.

`TableColumns`, the first step of a model for tables, reads numbers, categories and dates with the
functions of `_reading`. Its results are the inputs of the model for all other packages.
"""

from quadric.models._coordinates import (
    Coordinates,
    PartlyAffine,
    affine_map,
    partly_affine,
    undo_steps,
)
from quadric.models._facts import Limits as Limits
from quadric.models._fit_on_cluster import fit_pipeline
from quadric.models._layer_composition import (
    check_matrices as check_matrices,
    compose as compose,
    fold_layers as fold_layers,
    layer_to_quadratic as layer_to_quadratic,
    stretches as stretches,
)
from quadric.models._model_view import (
    ModelView,
    classes_of,
    input_names_of,
    steps_of,
)
from quadric.models._operations import (
    Affine,
    Beside,
    Bin,
    Categories,
    Clip,
    Impute,
    Indicate,
    NotAffineError,
    OneHot,
    Operation,
    Ordinal,
    Power,
    Select,
    is_missing,
    kinds_of as kinds_of,
    width_after,
)
from quadric.models._reading import (
    FORMS,
    LARGEST,
    ORDERS,
    PARTS,
    PLAIN,
    NumberForm,
    check_size,
    clean,
    date_parts,
    dates,
    expanded,
    fits,
    is_local_time,
    number_as_text,
    numbers,
    read_objects,
    typical_text,
    without,
    written_number,
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
from quadric.models._table_columns import TableColumns
from quadric.models._translation import (
    kind_of_values as kind_of_values,
    kinds_before as kinds_before,
    translated as translated,
)

__all__ = [
    "FORMS",
    "LARGEST",
    "ORDERS",
    "PARTS",
    "PLAIN",
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
    "NumberForm",
    "OneHot",
    "Operation",
    "Ordinal",
    "PartlyAffine",
    "Power",
    "Select",
    "Steps",
    "TableColumns",
    "UnknownStepError",
    "affine_map",
    "check_size",
    "classes_of",
    "clean",
    "date_parts",
    "dates",
    "expanded",
    "find",
    "fit_pipeline",
    "fits",
    "input_names_of",
    "is_local_time",
    "is_missing",
    "number_as_text",
    "numbers",
    "operations",
    "partly_affine",
    "read_objects",
    "split",
    "steps_of",
    "transformed",
    "typical_text",
    "undo_steps",
    "width_after",
    "without",
    "written_number",
]
