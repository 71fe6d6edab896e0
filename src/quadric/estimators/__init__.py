"""Quadratic networks as scikit-learn estimators.

Start with `_classifier_and_regressor`; the two share their parameters and default values
(`_defaults`) and the way they are fitted (`_base`). `_logistic` is a single quadratic layer with a
convex loss. The package may import `quadric.network`, `quadric.training` and `quadric.core`.
"""

from quadric.estimators._classifier_and_regressor import QuadraticClassifier, QuadraticRegressor
from quadric.estimators._logistic import QuadraticLogisticRegression

__all__ = ["QuadraticClassifier", "QuadraticLogisticRegression", "QuadraticRegressor"]
