"""Algorithm 1: training a network of quadratic neurons (QNN).

A layer is a dict of W (m, n), b (m,) and Q (m, n, n). A layer without Q is linear, like the hidden
layers of the paper's MNIST networks. The algorithm stacks Q as in the paper, to shape (m n, n).
Where the paper prints ``a^1 <- x``, it means ``a^0 <- x``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.reference._pieces import (
    A,
    Array,
    G,
    M,
    Parameters,
    copy_layers,
    decay,
    delta_L,
    in_turn,
    kronecker,
    loss_value,
)


class QNNCache(NamedTuple):
    """a^0 ... a^L, and z^l and V^l for l = 1 ... L (V is None for a linear layer)."""

    a: list[Array]
    z: list[Array]
    V: list[Array | None]


def forward(layers: Sequence[Parameters], activations: Sequence[str], x: Array) -> QNNCache:
    """V^l <- A^{l-1} Q^l;  z^l <- b^l + (W^l + V^l) a^{l-1};  a^l <- g(z^l)."""
    a, z, V = [x], [], []
    for layer, activation in zip(layers, activations, strict=True):
        W, b, v = layer["W"], layer["b"], None
        if "Q" in layer:
            stacked = layer["Q"].reshape(-1, len(x))
            v = A(a[-1], len(b)) @ stacked
            z.append(b + (W + v) @ a[-1])
        else:
            z.append(b + W @ a[-1])
        V.append(v)
        x = G[activation][0](z[-1])
        a.append(x)
    return QNNCache(a, z, V)


def backward(
    layers: Sequence[Parameters], activations: Sequence[str], cache: QNNCache, y: Array, loss: str
) -> list[Array]:
    """delta^{l-1} = g'(z^{l-1}) . [(W^l)' + 2 (V^l)'] delta^l, from delta^L down."""
    delta = [delta_L(loss, activations[-1], cache.z[-1], cache.a[-1], y)]
    for l in range(len(layers) - 1, 0, -1):
        W, V = layers[l]["W"], cache.V[l]
        back = W.T @ delta[0] if V is None else (W.T + 2 * V.T) @ delta[0]
        delta.insert(0, G[activations[l - 1]][1](cache.z[l - 1]) * back)
    return delta


def update(layer: Parameters, delta: Array, a: Array, eta: Any) -> None:
    """b <- b - eta delta;  W <- W - eta delta a';  Q <- Q - eta kron(delta, M(a))."""
    layer["b"] = layer["b"] - eta * delta
    scaled = eta * delta  # eta scales the vector, not a matrix
    layer["W"] = layer["W"] - np.outer(scaled, a)
    if "Q" in layer:
        layer["Q"] = layer["Q"] - kronecker(scaled, M(a)).reshape(layer["Q"].shape)


def gradients_qnn(
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
        W (m, n), b (m,) and, for a quadratic layer, Q (m, n, n).
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
    for layer, delta, a in zip(
        layers, backward(layers, activations, cache, y, loss), cache.a[:-1], strict=True
    ):
        grads.append({"W": np.outer(delta, a), "b": delta})
        if "Q" in layer:
            grads[-1]["Q"] = kronecker(delta, M(a)).reshape(layer["Q"].shape)
    return loss_value(loss, cache.a[-1], y), grads


def train_qnn(
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
    """TRAIN_QNN(D): one update per sample; return new layers.

    Parameters
    ----------
    X : array of shape (samples, n)
        Inputs, one sample per row.
    Y : array of shape (samples, m)
        Targets.
    layers : sequence of dict
        W (m, n), b (m,) and, for a quadratic layer, Q (m, n, n). These arrays are not changed.
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
    layers = copy_layers(layers, "WbQ")
    activations = ["logistic"] * len(layers) if activations is None else activations
    for _ in range(epochs):
        for x, y in in_turn(X, Y, order):
            cache = forward(layers, activations, x)
            deltas = backward(layers, activations, cache, y, loss)
            for layer, delta, a in zip(layers, deltas, cache.a[:-1], strict=True):
                decay(layer, eta, l2)
                update(layer, delta, a, eta)
    return layers
