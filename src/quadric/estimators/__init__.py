"""Quadratic networks as scikit-learn estimators.

Start with `_networks`, the classifier and the regressor, which share their parameters
(`_parameters`), what 'auto' stands for (`_auto_choice`), and the way they are fitted (`_base`).
`_fitted_attributes` defines what a fitted estimator offers. `_logistic` is a single quadratic
layer with a convex loss, and `_sparse` one with few terms. `_tails` puts scaling in front of an
estimator.
"""

from quadric.estimators._data import scale_outputs
from quadric.estimators._logistic import QuadraticLogisticRegression
from quadric.estimators._networks import (
    LINKS as LINKS,
    QuadraticClassifier,
    QuadraticRegressor,
)
from quadric.estimators._parameters import are_kinds as are_kinds, hidden_sizes as hidden_sizes
from quadric.estimators._sparse import SparseQuadraticClassifier, SparseQuadraticRegressor
from quadric.estimators._sparse_results import SparsePath, Stability
from quadric.estimators._tails import (
    ScaledPipeline as ScaledPipeline,
    fit_tails,
    long_tails,
    power_steps,
    with_scaling,
)
from quadric.estimators._training_state import restore_training, training_state

__all__ = [
    "QuadraticClassifier",
    "QuadraticLogisticRegression",
    "QuadraticRegressor",
    "SparsePath",
    "SparseQuadraticClassifier",
    "SparseQuadraticRegressor",
    "Stability",
    "fit_tails",
    "long_tails",
    "power_steps",
    "restore_training",
    "scale_outputs",
    "training_state",
    "with_scaling",
]
