"""scikit-learn's tests of its networks, with our default values: quadratic outputs and 'auto'."""

import sklearn.neural_network

from quadric import QuadraticClassifier, QuadraticRegressor
from tests.peers.differences import OUR_DEFAULTS as EXPECTED  # noqa: F401
from tests.peers.substitution import import_tests

CLASSES = {"MLPClassifier": QuadraticClassifier, "MLPRegressor": QuadraticRegressor}
NAME = "sklearn.neural_network.tests.test_mlp"
globals().update(import_tests(NAME, sklearn.neural_network, CLASSES))
