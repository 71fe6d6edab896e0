"""What a model has learned: quadrics of neurons, boundaries between classes, ranked terms.

May import everything below `explain` in the architecture, such as `pipelines`, whose affine steps
it undoes. Start with `_explanation.py` (`explain`) and `_boundaries.py` (`quadrics`, `boundary`);
both select a layer with `_model.py` and state it in the coordinates of `_coordinates.py`.
"""

from quadric.explain._boundaries import boundary, quadrics
from quadric.explain._explanation import ClassExplanation, Explanation, explain
from quadric.explain._terms import Term

__all__ = ["ClassExplanation", "Explanation", "Term", "boundary", "explain", "quadrics"]
