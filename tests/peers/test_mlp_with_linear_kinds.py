"""scikit-learn's tests of its networks, with linear layers and the default values of an MLP."""

from dataclasses import make_dataclass
from typing import Any

import sklearn.neural_network

from quadric import QuadraticClassifier, QuadraticRegressor
from tests.peers.differences import LINEAR_KINDS as EXPECTED  # noqa: F401
from tests.peers.substitution import import_tests

MLP_DEFAULTS = {
    "hidden_layer_sizes": (100,),
    "layer_kinds": "linear",
    "activation": "relu",
    "solver": "adam",
    "alpha": 1e-4,
    "max_iter": 200,
}


def with_defaults_of_mlp(name, base):
    """Return a subclass with other default values."""
    fields = [(field, Any, value) for field, value in MLP_DEFAULTS.items()]
    own = {"__module__": __name__}
    options = {"eq": False, "repr": False, "kw_only": True}
    return make_dataclass(name, fields, bases=(base,), namespace=own, **options)


LinearClassifier = with_defaults_of_mlp("LinearClassifier", QuadraticClassifier)
LinearRegressor = with_defaults_of_mlp("LinearRegressor", QuadraticRegressor)
CLASSES = {"MLPClassifier": LinearClassifier, "MLPRegressor": LinearRegressor}
NAME = "sklearn.neural_network.tests.test_mlp"
globals().update(import_tests(NAME, sklearn.neural_network, CLASSES))
