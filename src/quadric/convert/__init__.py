"""Exact bridges between networks of quadratic neurons and other models; see each function."""

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
