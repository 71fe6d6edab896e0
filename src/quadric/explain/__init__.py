"""What a model has learned: quadrics of neurons, boundaries between classes, ranked terms.

This package may import everything below it in the architecture, such as `pipelines`, whose affine
steps it undoes. Start with `_model.py`, which selects a layer and finds its quadrics (`quadrics`,
`boundary`) in the coordinates of `_coordinates.py`. `_explanation.py` (`explain`) describes them.
"""

from quadric.explain._explanation import ClassExplanation, Explanation, explain
from quadric.explain._model import boundary, quadrics
from quadric.explain._terms import Term

__all__ = ["ClassExplanation", "Explanation", "Term", "boundary", "explain", "quadrics"]
