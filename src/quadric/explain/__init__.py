"""What a model has learned: quadrics of neurons, boundaries between classes, ranked terms.

This package may import everything below it in the architecture, such as `pipelines`, whose affine
steps it undoes. Start with `_model.py`, which selects a layer and finds its quadrics (`quadrics`,
`boundary`) in the coordinates of `_coordinates.py`. `_explanation.py` (`explain`) describes them
with the terms of `_terms.py`, and `_spectrum.py` (`spectrum`) with eigenvectors. `_dependence.py`
and `_permutation.py` work for any model.
"""

from quadric.explain._dependence import Dependence, dependence
from quadric.explain._explanation import ClassExplanation, Explanation, explain
from quadric.explain._importances import Importance
from quadric.explain._model import boundary, quadrics
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
