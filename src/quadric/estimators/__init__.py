"""Quadratic networks as scikit-learn estimators.

Start with `_classifier` and `_regressor`; the two share their parameters (`_parameters`) and the
way they are fitted (`_base`). `_auto_choice` defines what 'auto' stands for, and
`_fitted_attributes` what a fitted estimator offers. `_logistic` is a single quadratic layer with a
convex loss. `_training_state` stores an estimator between calls of `partial_fit`.
"""

from quadric.estimators._auto_choice import are_kinds as are_kinds, hidden_sizes as hidden_sizes
from quadric.estimators._classifier import QuadraticClassifier
from quadric.estimators._data import scale_outputs
from quadric.estimators._logistic import QuadraticLogisticRegression
from quadric.estimators._regressor import LINKS as LINKS, QuadraticRegressor
from quadric.estimators._training_state import restore_training, training_state

__all__ = [
    "QuadraticClassifier",
    "QuadraticLogisticRegression",
    "QuadraticRegressor",
    "restore_training",
    "scale_outputs",
    "training_state",
]
