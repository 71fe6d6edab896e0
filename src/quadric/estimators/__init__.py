"""Quadratic networks behind scikit-learn's interface."""

from quadric.estimators._classifier import QuadraticClassifier
from quadric.estimators._logistic import QuadraticLogisticRegression
from quadric.estimators._regressor import QuadraticRegressor

__all__ = ["QuadraticClassifier", "QuadraticLogisticRegression", "QuadraticRegressor"]
