"""What a model has learned: quadrics of neurons, boundaries between classes, ranked terms.

This package may import everything below it in the architecture, such as `models`, which undoes the
affine steps of a pipeline. Start with `_explained_layer.py`, which selects a layer and finds its
quadrics (`quadrics`, `boundary`). `_explanation.py` (`explain`) describes them with the terms of
`_terms_and_importances.py`, and `_spectrum.py` (`spectrum`) with eigenvectors.
`_attributions.py` (`attribute`) has the exact Shapley values of the scores in `_scores.py`.
`_dependence_and_permutation.py` works for any model.
"""

from quadric.explain._attributions import (
    Attributions,
    FriedmanH,
    Sobol,
    attribute,
)
from quadric.explain._dependence_and_permutation import (
    Dependence,
    InputData as InputData,
    PermutationImportance,
    count_values as count_values,
    dependence,
    grid_of as grid_of,
    mean_effects as mean_effects,
    mean_predictions as mean_predictions,
    permutation_importances,
    predictions as predictions,
    strongest_pairs as strongest_pairs,
    written as written,
)
from quadric.explain._explained_layer import (
    ExplainedLayer as ExplainedLayer,
    boundary,
    quadrics,
    select_layer as select_layer,
    tie as tie,
)
from quadric.explain._explanation import (
    ClassExplanation,
    Explanation,
    explain,
    rank_inputs as rank_inputs,
)
from quadric.explain._scores import (
    NamedScores as NamedScores,
    class_at as class_at,
    map_to_layer as map_to_layer,
    named_scores as named_scores,
    one_layer_of as one_layer_of,
    score_name as score_name,
)
from quadric.explain._spectrum import (
    Eigenpairs,
    Spectrum,
    interactions as interactions,
    similarity,
    spectrum,
)
from quadric.explain._terms_and_importances import Importance, Term

__all__ = [
    "Attributions",
    "ClassExplanation",
    "Dependence",
    "Eigenpairs",
    "Explanation",
    "FriedmanH",
    "Importance",
    "PermutationImportance",
    "Sobol",
    "Spectrum",
    "Term",
    "attribute",
    "boundary",
    "dependence",
    "explain",
    "permutation_importances",
    "quadrics",
    "similarity",
    "spectrum",
]
