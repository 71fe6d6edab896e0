"""Exact conversions between networks of quadratic neurons and other models.

May import `network`, `core` and `geometry`, and `pipelines` for scalers. Each module converts one
family: `_gaussians.py` (QDA, Gaussian classes, ellipsoids), `_polynomials.py` (polynomial logistic
regression), `_layers.py` (kinds of neurons). `_separation.py` builds a network from the smallest
ellipsoids around classes.
"""

from quadric.convert._gaussians import from_ellipsoids, from_gaussians, from_qda
from quadric.convert._layers import Reduction, to_quadratic, to_reduced
from quadric.convert._polynomials import from_polynomial_logistic, to_polynomial_logistic

__all__ = [
    "Reduction",
    "from_ellipsoids",
    "from_gaussians",
    "from_polynomial_logistic",
    "from_qda",
    "to_polynomial_logistic",
    "to_quadratic",
    "to_reduced",
]
