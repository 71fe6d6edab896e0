"""Conversions between networks of quadratic neurons and other models.

All of them are exact, except for `to_reduced` and `truncate`. This package may import `models`,
`network`, `core`, `geometry` and `estimators`. Each module converts one family:
`_models_and_layers.py` (QDA, Gaussian classes, ellipsoids, polynomial logistic regression; kinds of
neurons) and `_fold.py` (several layers, the affine steps of a pipeline, or the matrices of a
bilinear block into one layer; `_torch_modules.py` converts torch modules first).
`_truncate.py` keeps the strongest eigenvectors of a folded layer and measures the accuracy that is
left. `_separation.py` builds a network from the smallest ellipsoids around classes
(`quadric.separate`), and finds a quadric that separates two classes or proves that there is none,
verified with integers.
"""

from quadric.convert._fold import (
    add_residual,
    fold,
    fold_along as fold_along,
    fold_bilinear,
    view_of_one_layer as view_of_one_layer,
)
from quadric.convert._models_and_layers import (
    Reduction,
    from_ellipsoids,
    from_gaussians,
    from_polynomial_logistic,
    from_qda,
    layer_index as layer_index,
    to_classifier,
    to_polynomial_logistic,
    to_quadratic,
    to_reduced,
)
from quadric.convert._separation import QuadricSeparation, separate as separate, separating_quadric
from quadric.convert._truncate import (
    centers as centers,
    eigenpairs as eigenpairs,
    scored_truncations as scored_truncations,
    truncate,
    truncation_scores,
    without_mean as without_mean,
)

__all__ = [
    "QuadricSeparation",
    "Reduction",
    "add_residual",
    "fold",
    "fold_bilinear",
    "from_ellipsoids",
    "from_gaussians",
    "from_polynomial_logistic",
    "from_qda",
    "separating_quadric",
    "to_classifier",
    "to_polynomial_logistic",
    "to_quadratic",
    "to_reduced",
    "truncate",
    "truncation_scores",
]
