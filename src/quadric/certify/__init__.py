"""Certificates: how far an input can move before the predicted class can change.

`_model.py` checks a model, and `_scores.py` writes its class scores as quadratic functions of its
inputs. `_distances.py` computes distances to their ties with proven bounds, `_rounding.py` bounds
the rounding errors of the network, `_steps.py` those of the steps before it, and `_norms.py`
computes lengths that do not underflow. `_search.py` finds the nearest rival class.
`_lower_bounds.py` is for networks that do not fold to one layer. `_radius.py` and
`_counterfactual.py` are the public functions. `_candidates.py` finds and verifies counterfactuals,
within bounds with `_faces.py` and `_descent.py`. `_rows.py` writes them into the user's data, and
`_wording.py` describes them. `_prepared.py` keeps what further calls with a model need.
"""

from quadric.certify._counterfactual import Counterfactual, counterfactual
from quadric.certify._model import as_classifier as as_classifier, coordinates_of as coordinates_of
from quadric.certify._radius import Radii, radius
from quadric.certify._wording import Change

__all__ = ["Change", "Counterfactual", "Radii", "counterfactual", "radius"]
