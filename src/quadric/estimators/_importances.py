"""The importance of each input of an estimator with a single layer, computed from its weights."""

from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Layer, Quadratic, Reduced, monomial_coefficients, term_variances
from quadric.estimators._attributes import HasNetwork
from quadric.network import Network


class FeatureImportances(HasNetwork):
    """Adds `feature_importances_` to an estimator with a `network_`."""

    @property
    def feature_importances_(self) -> Array:
        """Share of the variance of z that comes from each input, shape (n_features,); sums to 1.

        The inputs are assumed to be independent and normal with mean 0 and variance 1, as after a
        `StandardScaler`. Then w_i x_i has variance w_i², q_ii x_i² has 2 q_ii², and 2 q_ij x_i x_j
        has 4 q_ij², half of which counts for each of its inputs. Variances are added over the
        neurons; with softmax, the mean of all neurons is subtracted first. Only available for a
        single layer. `quadric.explain.explain(model, X)` computes the shares on data, and
        `quadric.explain.permutation_importances` works for every model.
        """
        network = self._fitted()
        if len(network.layers) > 1:
            raise AttributeError(
                "feature_importances_ needs a single layer (hidden_layer_sizes=()). This network "
                "has hidden layers; use quadric.explain.permutation_importances(model, X, y)."
            )
        return _importances(network)


def _importances(network: Network) -> Array:
    layer = network.layers[0].astype(np.dtype(np.float64))
    neurons = range(layer.n_outputs)
    mean_w, mean_Q = np.zeros(layer.n_inputs), np.zeros((layer.n_inputs, layer.n_inputs))
    if network.activations[0] == "softmax":
        for k in neurons:
            w, Q = _coefficients(layer, k)
            mean_w = mean_w + w / layer.n_outputs
            mean_Q = mean_Q + Q / layer.n_outputs
    ones, shares = np.ones(layer.n_inputs), np.zeros(layer.n_inputs)
    for k in neurons:
        w, Q = _coefficients(layer, k)
        linear, products = term_variances(w - mean_w, monomial_coefficients(Q - mean_Q), ones)
        # a diagonal entry occurs in both sums and therefore counts in full
        shares += linear + (products.sum(axis=0) + products.sum(axis=1)) / 2
    total = shares.sum()
    return shares / total if total > 0 else shares


def _coefficients(layer: Layer, k: int) -> tuple[Array, Any]:
    """w, shape (n,), and the symmetric matrix Q, shape (n, n), of one neuron of any kind."""
    n = layer.n_inputs
    if isinstance(layer, Quadratic):
        Q = np.zeros((n, n))
        Q[np.triu_indices(n)] = layer.packed[:, k]
        return layer.W[k], Q + np.triu(Q, 1).T
    if isinstance(layer, Reduced):
        product = np.outer(layer.W[k], layer.U[k])
        return layer.c[k] * layer.W[k] + layer.b[k] * layer.U[k], (product + product.T) / 2
    return layer.W[k], np.zeros((n, n))
