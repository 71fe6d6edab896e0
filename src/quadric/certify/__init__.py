"""Certificates: how far an input can move before the predicted class can change.

`_radius.py` and `_counterfactual.py` are the public functions. `_model.py` checks a model and finds
the map from its coordinates to its network. `_search.py` writes its class scores as quadratic
functions and finds the nearest rival class, with the distances and proven bounds of
`_distances.py`. `_rounding.py` bounds the rounding errors of the network and of the steps before
it. `_lower_bounds.py` is for networks that do not fold to one layer. `_box_counterfactual.py` finds
and verifies counterfactuals within bounds, with the faces of the box in `_box_faces.py`. `_rows.py`
writes them into the user's data, and describes them in words.
"""

from quadric.certify._counterfactual import Counterfactual, counterfactual
from quadric.certify._radius import Radii, radius
from quadric.certify._rows import Change

__all__ = ["Change", "Counterfactual", "Radii", "counterfactual", "radius"]
