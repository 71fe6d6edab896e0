"""Algorithm 1: training a network of quadratic neurons (QNN).

A layer is a dict of W (m, n), b (m,) and Q (m, n, n); one without Q is linear, as the hidden
layers of the paper's MNIST networks are. Inside, Q is stacked as the paper has it, (m n, n).
Where the algorithm prints ``a^1 <- x`` it means a^0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.reference import _pieces as pieces
from quadric.reference._pieces import A, Array, G, M, Parameters, delta_L, kronecker


class Cache(NamedTuple):
    """a^0 ... a^L, and z^l and V^l for l = 1 ... L (V of a linear layer is None)."""

    a: list[Array]
    z: list[Array]
    V: list[Array | None]


def forward(layers: Sequence[Parameters], activations: Sequence[str], x: Array) -> Cache:
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
    return Cache(a, z, V)


def backward(
    layers: Sequence[Parameters], activations: Sequence[str], cache: Cache, y: Array, loss: str
) -> list[Array]:
    """delta^{l-1} = g'(z^{l-1}) . [(W^l)' + 2 (V^l)'] delta^l, from delta^L down."""
    delta = [delta_L(loss, activations[-1], cache.z[-1], cache.a[-1], y)]
    for l in range(len(layers) - 1, 0, -1):
        W, V = layers[l]["W"], cache.V[l]
        back = W.T @ delta[0] if V is None else (W.T + 2 * V.T) @ delta[0]
        delta.insert(0, G[activations[l - 1]][1](cache.z[l - 1]) * back)
    return delta


def update(layer: Parameters, delta: Array, a: Array, eta: Any) -> None:
    """b <- b - eta delta;  W <- W - eta delta (x) a;  Q <- Q - eta delta (*) M(a)."""
    layer["b"] = layer["b"] - eta * delta
    scaled = eta * delta  # eta meets the vector, so that no matrix is scaled
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
    """The loss of one sample, and its gradients by every parameter."""
    cache = forward(layers, activations, x)
    grads: list[Parameters] = []
    for layer, delta, a in zip(
        layers, backward(layers, activations, cache, y, loss), cache.a[:-1], strict=True
    ):
        grads.append({"W": np.outer(delta, a), "b": delta})
        if "Q" in layer:
            grads[-1]["Q"] = kronecker(delta, M(a)).reshape(layer["Q"].shape)
    return pieces.loss_value(loss, cache.a[-1], y), grads


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
    """TRAIN_QNN(D): one update for each sample, in the given order (default: as they come).

    The layers given stay as they are; new ones are returned. `activations` are logistic unless
    given. With a penalty `l2` a step also shrinks W and Q by the factor 1 - eta l2.
    """
    layers = pieces.copy(layers, "WbQ")
    activations = ["logistic"] * len(layers) if activations is None else activations
    for _ in range(epochs):
        for x, y in pieces.in_turn(X, Y, order):
            cache = forward(layers, activations, x)
            deltas = backward(layers, activations, cache, y, loss)
            for layer, delta, a in zip(layers, deltas, cache.a[:-1], strict=True):
                pieces.decay(layer, eta, l2)
                update(layer, delta, a, eta)
    return layers
