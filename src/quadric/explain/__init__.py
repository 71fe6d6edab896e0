"""What a model has learned: quadrics of neurons, boundaries between classes, ranked terms.

This package may import everything below it in the architecture, such as `pipelines`, whose affine
steps it undoes. Start with `_model.py`, which selects a layer and finds its quadrics (`quadrics`,
`boundary`) in the coordinates of `_coordinates.py`. `_explanation.py` (`explain`) describes them
with the terms of `_terms.py`, and `_spectrum.py` (`spectrum`) with eigenvectors. `_dependence.py`
and `_permutation.py` work for any model.
"""

from quadric.explain._columns import Columns as Columns
from quadric.explain._coordinates import Space as Space, affine_space as affine_space
from quadric.explain._dependence import (
    Dependence,
    background_of as background_of,
    dependence,
    dependences as dependences,
    grid_of as grid_of,
    mean_predictions as mean_predictions,
    predictions as predictions,
    written as written,
)
from quadric.explain._explanation import ClassExplanation, Explanation, explain
from quadric.explain._importances import Importance
from quadric.explain._interactions import interactions as interactions
from quadric.explain._model import (
    SelectedLayer as SelectedLayer,
    boundary,
    quadrics,
    select_layer as select_layer,
    tie as tie,
)
from quadric.explain._permutation import PermutationImportance, permutation_importances
from quadric.explain._similarity import similarity
from quadric.explain._spectrum import Eigenpairs, Spectrum, spectrum
from quadric.explain._terms import Term

__all__ = [
    "ClassExplanation",
    "Dependence",
    "Eigenpairs",
    "Explanation",
    "Importance",
    "PermutationImportance",
    "Spectrum",
    "Term",
    "boundary",
    "dependence",
    "explain",
    "permutation_importances",
    "quadrics",
    "similarity",
    "spectrum",
]
