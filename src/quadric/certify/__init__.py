"""Certificates: how far an input can move before the predicted class can change.

`_radius.py` and `_counterfactual.py` have the public functions. `_model_and_rounding.py` checks a
model, finds the map from its coordinates to its network, bounds the rounding errors of both, and
writes the class scores as quadratic functions. `_radius.py` finds the nearest rival class, with
distances and proven bounds. `_lower_bounds.py` is for networks that do not fold to one layer.
`_counterfactual.py` finds and verifies counterfactuals within bounds, with the faces of the box in
`_box_faces.py`. `_row_and_changes.py` writes them into the user's data, and describes them.
`_flips.py` has the probabilities that noise changes a class. `_regions.py` describes boxes, balls
and ellipsoids of inputs, `_extrema.py` bounds scores and derivatives there, and `_influence.py`
decides whether a class depends on an input.
"""

from quadric.certify._counterfactual import Counterfactual, counterfactual
from quadric.certify._extrema import (
    Extremum,
    Monotone,
    ScoreRange,
    extremum,
    monotone,
    score_range,
)
from quadric.certify._flips import FlipProbabilities, flip_probability, largest_noise
from quadric.certify._influence import Influence, depends_on
from quadric.certify._model_and_rounding import (
    absolute_layers as absolute_layers,
    certified_model as certified_model,
    relative_error as relative_error,
    shares as shares,
    view_of_classifier as view_of_classifier,
)
from quadric.certify._radius import Radii, radius
from quadric.certify._regions import Ball, Box, Ellipsoid
from quadric.certify._row_and_changes import Change

__all__ = [
    "Ball",
    "Box",
    "Change",
    "Counterfactual",
    "Ellipsoid",
    "Extremum",
    "FlipProbabilities",
    "Influence",
    "Monotone",
    "Radii",
    "ScoreRange",
    "counterfactual",
    "depends_on",
    "extremum",
    "flip_probability",
    "largest_noise",
    "monotone",
    "radius",
    "score_range",
]
