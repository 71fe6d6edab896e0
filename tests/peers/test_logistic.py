"""scikit-learn's tests of `LogisticRegression`, with `QuadraticLogisticRegression`."""

import sklearn.linear_model

from quadric import QuadraticLogisticRegression
from tests.peers.differences import LOGISTIC as EXPECTED  # noqa: F401
from tests.peers.substitution import import_tests

CLASSES = {"LogisticRegression": QuadraticLogisticRegression}
# Our estimators compute with NumPy only.
WITHOUT = (
    "test_logistic_regression_array_api_compliance",
    "test_logistic_regression_array_api_warm_start",
)
NAME = "sklearn.linear_model.tests.test_logistic"
globals().update(import_tests(NAME, sklearn.linear_model, CLASSES, without=WITHOUT))
