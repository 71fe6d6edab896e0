"""Certificates: how far an input can move before the predicted class can change.

`_scores.py` writes the class scores of a model as quadratic functions of its inputs.
`_distances.py` computes distances to their ties with proven bounds, and `_radius.py` finds the
nearest rival class.
"""

from quadric.certify._radius import Radii, radius

__all__ = ["Radii", "radius"]
