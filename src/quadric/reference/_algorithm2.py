"""Algorithm 2: training a network of reduced-parameter quadratic neurons (RPQNN).

A layer is a dict of W (m, n), b (m,), U (m, n) and c (m,); a layer without U and c is linear.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.reference._pieces import (
    Array,
    G,
    Parameters,
    copy_layers,
    decay,
    delta_L,
    in_turn,
    loss_value,
)


class RPQNNCache(NamedTuple):
    """a^0 ... a^L, and z^l, v_1^l, v_2^l for l = 1 ... L (v_2 is None for a linear layer)."""

    a: list[Array]
    z: list[Array]
    v1: list[Array]
    v2: list[Array | None]


def forward(layers: Sequence[Parameters], activations: Sequence[str], x: Array) -> RPQNNCache:
    """v1 <- W a + b;  v2 <- U a + c;  z <- v1 . v2;  a <- g(z)."""
    cache = RPQNNCache([x], [], [], [])
    for layer, activation in zip(layers, activations, strict=True):
        a = cache.a[-1]
        v1 = layer["W"] @ a + layer["b"]
        v2 = layer["U"] @ a + layer["c"] if "U" in layer else None
        z = v1 if v2 is None else v1 * v2
        cache.v1.append(v1)
        cache.v2.append(v2)
        cache.z.append(z)
        cache.a.append(G[activation][0](z))
    return cache


def backward(
    layers: Sequence[Parameters], activations: Sequence[str], cache: RPQNNCache, y: Array, loss: str
) -> list[Array]:
    """delta^{l-1} <- g'(z^{l-1}) . [(U^l)'(delta^l . v1^l) + (W^l)'(delta^l . v2^l)]."""
    delta = [delta_L(loss, activations[-1], cache.z[-1], cache.a[-1], y)]
    for l in range(len(layers) - 1, 0, -1):
        W, v1, v2 = layers[l]["W"], cache.v1[l], cache.v2[l]
        if v2 is None:
            back = W.T @ delta[0]
        else:
            back = layers[l]["U"].T @ (delta[0] * v1) + W.T @ (delta[0] * v2)
        delta.insert(0, G[activations[l - 1]][1](cache.z[l - 1]) * back)
    return delta


def update(
    layer: Parameters, delta: Array, v1: Array, v2: Array | None, a: Array, eta: Any
) -> None:
    """Update b with delta . v2 and c with delta . v1; the printed Algorithm 2 swaps them."""
    if v2 is None:
        layer["b"] = layer["b"] - eta * delta
        layer["W"] = layer["W"] - np.outer(eta * delta, a)
        return
    layer["b"] = layer["b"] - eta * (delta * v2)
    layer["c"] = layer["c"] - eta * (delta * v1)
    layer["W"] = layer["W"] - np.outer(eta * (delta * v2), a)
    layer["U"] = layer["U"] - np.outer(eta * (delta * v1), a)


def gradients_rpqnn(
    layers: Sequence[Parameters],
    activations: Sequence[str],
    x: Array,
    y: Array,
    loss: str = "binary_cross_entropy",
) -> tuple[Any, list[Parameters]]:
    """Return the loss of one sample and its gradients with respect to every parameter.

    Parameters
    ----------
    layers : sequence of dict
        W (m, n), b (m,) and, for a reduced layer, U (m, n) and c (m,).
    activations : sequence of str
        One per layer.
    x : array of shape (n,)
        One sample.
    y : array of shape (m,)
        Its target.
    loss : str
        Name of the loss, as in `Network.fit`.

    Returns
    -------
    loss : float
        The loss of the sample.
    gradients : list of dict
        The gradients of each layer, keyed by the names of its parameters.
    """
    cache = forward(layers, activations, x)
    grads: list[Parameters] = []
    deltas = backward(layers, activations, cache, y, loss)
    for delta, v1, v2, a in zip(deltas, cache.v1, cache.v2, cache.a[:-1], strict=True):
        if v2 is None:
            grads.append({"W": np.outer(delta, a), "b": delta})
        else:
            grads.append(
                {
                    "W": np.outer(delta * v2, a),
                    "b": delta * v2,
                    "U": np.outer(delta * v1, a),
                    "c": delta * v1,
                }
            )
    return loss_value(loss, cache.a[-1], y), grads


def train_rpqnn(
    X: Array,
    Y: Array,
    layers: Sequence[Parameters],
    eta: float,
    *,
    epochs: int = 1,
    activations: Sequence[str] | None = None,
    loss: str = "binary_cross_entropy",
    l2: float = 0.0,
    order: Any = None,
) -> list[Parameters]:
    """TRAIN_RPQNN(D): one update per sample; return new layers.

    Parameters
    ----------
    X : array of shape (samples, n)
        Inputs, one sample per row.
    Y : array of shape (samples, m)
        Targets.
    layers : sequence of dict
        W (m, n), b (m,) and, for a reduced layer, U (m, n) and c (m,). These arrays are not
        changed.
    eta : float
        The learning rate.
    epochs : int
        Number of passes over the samples.
    activations : sequence of str, optional
        One per layer. The default is logistic for all layers.
    loss : str
        Name of the loss, as in `Network.fit`.
    l2 : float
        Every step also multiplies the weights, but not the biases, by 1 - eta l2.
    order : sequence of int, optional
        The order of the samples in every epoch. The default is the order of the rows of X.

    Returns
    -------
    list of dict
        The trained layers.
    """
    layers = copy_layers(layers, "WbUc")
    activations = ["logistic"] * len(layers) if activations is None else activations
    for _ in range(epochs):
        for x, y in in_turn(X, Y, order):
            cache = forward(layers, activations, x)
            deltas = backward(layers, activations, cache, y, loss)
            for l, (layer, delta) in enumerate(zip(layers, deltas, strict=True)):
                decay(layer, eta, l2)
                update(layer, delta, cache.v1[l], cache.v2[l], cache.a[l], eta)
    return layers
