"""Quadratic networks behind scikit-learn's interface."""

from quadric.estimators.classifier import QuadraticClassifier
from quadric.estimators.logistic import QuadraticLogisticRegression
from quadric.estimators.regressor import QuadraticRegressor

__all__ = ["QuadraticClassifier", "QuadraticLogisticRegression", "QuadraticRegressor"]
