"""What a model has learned: its neurons as quadrics, the ties between classes, ranked terms."""

from quadric.explain._boundaries import boundary, quadrics
from quadric.explain._explanation import ClassExplanation, Explanation, explain
from quadric.explain._terms import Term

__all__ = ["ClassExplanation", "Explanation", "Term", "boundary", "explain", "quadrics"]
