"""scikit-learn's tests of its networks, with linear layers and the default values of an MLP."""

from dataclasses import dataclass
from typing import Any

import sklearn.neural_network

from quadric import QuadraticClassifier, QuadraticRegressor
from tests.peers.differences import LINEAR_KINDS as EXPECTED  # noqa: F401
from tests.peers.substitution import import_tests


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(QuadraticClassifier):
    hidden_layer_sizes: Any = (100,)
    layer_kinds: Any = "linear"
    activation: str = "relu"
    solver: str = "adam"
    alpha: Any = 1e-4
    max_iter: int = 200


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegressor(QuadraticRegressor):
    hidden_layer_sizes: Any = (100,)
    layer_kinds: Any = "linear"
    activation: str = "relu"
    solver: str = "adam"
    alpha: Any = 1e-4
    max_iter: int = 200


CLASSES = {"MLPClassifier": LinearClassifier, "MLPRegressor": LinearRegressor}
NAME = "sklearn.neural_network.tests.test_mlp"
globals().update(import_tests(NAME, sklearn.neural_network, CLASSES))
