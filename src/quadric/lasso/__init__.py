"""The lasso over all linear terms, squares and products of the inputs, which are never expanded.

Start with `_problem`, which states what is minimized. `_terms` standardizes the terms and computes
the gradients of all of them in one pass. `_newton` minimizes over a working set, with the compiled
block descent of `kernels`, and `_path` follows decreasing penalties and proves that no term outside
the working set can enter. `_refit` computes new coefficients for the chosen terms.
"""

from quadric.lasso._path import Certificate, Path, Point, follow, grid
from quadric.lasso._problem import HIERARCHIES, Problem
from quadric.lasso._refit import refit
from quadric.lasso._terms import Terms, inputs_of

__all__ = [
    "HIERARCHIES",
    "Certificate",
    "Path",
    "Point",
    "Problem",
    "Terms",
    "follow",
    "grid",
    "inputs_of",
    "refit",
]
