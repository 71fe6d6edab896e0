"""The paper's algorithms: quadratic logistic regression, Algorithm 1 (QNN) and Algorithm 2 (RPQNN).

A layer is a dict of W (m, n) and b (m,). A layer of a QNN also has Q (m, n, n), and one of an RPQNN
U (m, n) and c (m,). Without them, a layer is linear, like the hidden layers of the paper's MNIST
networks. Algorithm 1 stacks Q as in the paper, to shape (m n, n). Where the paper prints
``a^1 <- x``, it means ``a^0 <- x``.
"""

from collections.abc import Callable, Sequence
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
    sigma,
)

# ---- section II: one neuron ----------------------------------------------------------------------


def gradients_logistic(Q: Array, w: Array, b: Any, x: Array, y: Any) -> tuple[Array, Array, Any]:
    """Return dl/dQ, dl/dw and dl/db of l = -[y ln yhat + (1 - y) ln(1 - yhat)]."""
    y_hat = sigma(x @ Q @ x + w @ x + b)
    return (y_hat - y) * M(x), (y_hat - y) * x, y_hat - y


def train_logistic(
    X: Array,
    y: Array,
    Q: Array,
    w: Array,
    b: Any,
    eta: float,
    *,
    epochs: int = 1,
    order: Any = None,
) -> tuple[Array, Array, Any]:
    """b <- b + eta (y - yhat);  w <- w + eta (y - yhat) x;  Q <- Q + eta (y - yhat) M(x).

    Parameters
    ----------
    X : array of shape (samples, n)
        Inputs, one sample per row.
    y : array of shape (samples,)
        Labels 0 and 1.
    Q : array of shape (n, n)
        Initial quadratic weights, a symmetric matrix. It is not changed.
    w : array of shape (n,)
        Initial linear weights. They are not changed.
    b : float
        Initial bias.
    eta : float
        The learning rate.
    epochs : int
        Number of passes over the samples.
    order : sequence of int, optional
        The order of the samples in every epoch. The default is the order of the rows of X.

    Returns
    -------
    Q : array of shape (n, n)
        Trained quadratic weights.
    w : array of shape (n,)
        Trained linear weights.
    b : float
        Trained bias.

    Notes
    -----
    The paper prints the vector form of the w update with a minus sign and its component form with a
    plus sign. The plus sign is correct.
    """
    for _ in range(epochs):
        for x, target in in_turn(X, y, order):
            y_hat = sigma(x @ Q @ x + w @ x + b)
            b = b + eta * (target - y_hat)
            w = w + eta * (target - y_hat) * x
            Q = Q + eta * (target - y_hat) * M(x)
    return Q, w, b


# ---- Algorithm 1 --------------------------------------------------------------------------------


class QNNCache(NamedTuple):
    """a^0 ... a^L, and z^l and V^l for l = 1 ... L (V is None for a linear layer)."""

    a: list[Array]
    z: list[Array]
    V: list[Array | None]


def forward_qnn(layers: Sequence[Parameters], activations: Sequence[str], x: Array) -> QNNCache:
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


def backward_qnn(
    layers: Sequence[Parameters], activations: Sequence[str], cache: QNNCache, y: Array, loss: str
) -> list[Array]:
    """delta^{l-1} = g'(z^{l-1}) . [(W^l)' + 2 (V^l)'] delta^l, from delta^L down."""
    delta = [delta_L(loss, activations[-1], cache.z[-1], cache.a[-1], y)]
    for l in range(len(layers) - 1, 0, -1):
        W, V = layers[l]["W"], cache.V[l]
        back = W.T @ delta[0] if V is None else (W.T + 2 * V.T) @ delta[0]
        delta.insert(0, G[activations[l - 1]][1](cache.z[l - 1]) * back)
    return delta


def update_qnn(layer: Parameters, delta: Array, a: Array, eta: Any) -> None:
    """b <- b - eta delta;  W <- W - eta delta a';  Q <- Q - eta kron(delta, M(a)).

    Parameters
    ----------
    layer : dict
        W (m, n), b (m,) and, for a quadratic layer, Q (m, n, n). Its values are replaced.
    delta : array of shape (m,)
        The derivatives of the loss with respect to z.
    a : array of shape (n,)
        The inputs of the layer.
    eta : float
        The learning rate.
    """
    # eta scales the vector, not a matrix; as printed, every line scales it again
    layer["b"] = layer["b"] - eta * delta
    layer["W"] = layer["W"] - np.outer(eta * delta, a)
    if "Q" in layer:
        layer["Q"] = layer["Q"] - kronecker(eta * delta, M(a)).reshape(layer["Q"].shape)


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
    cache = forward_qnn(layers, activations, x)
    grads: list[Parameters] = []
    for layer, delta, a in zip(
        layers, backward_qnn(layers, activations, cache, y, loss), cache.a[:-1], strict=True
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
    update: Callable[..., None] = update_qnn,
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
    update : callable, optional
        Replaces `update_qnn`, for example by one of `PRINTED_UPDATES`.

    Returns
    -------
    list of dict
        The trained layers.
    """
    layers = copy_layers(layers, "WbQ")
    activations = ["logistic"] * len(layers) if activations is None else activations
    for _ in range(epochs):
        for x, y in in_turn(X, Y, order):
            cache = forward_qnn(layers, activations, x)
            deltas = backward_qnn(layers, activations, cache, y, loss)
            for layer, delta, a in zip(layers, deltas, cache.a[:-1], strict=True):
                decay(layer, eta, l2)
                update(layer, delta, a, eta)
    return layers


# ---- Algorithm 2 --------------------------------------------------------------------------------


class RPQNNCache(NamedTuple):
    """a^0 ... a^L, and z^l, v_1^l, v_2^l for l = 1 ... L (v_2 is None for a linear layer)."""

    a: list[Array]
    z: list[Array]
    v1: list[Array]
    v2: list[Array | None]


def forward_rpqnn(layers: Sequence[Parameters], activations: Sequence[str], x: Array) -> RPQNNCache:
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


def backward_rpqnn(
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


def update_rpqnn(
    layer: Parameters, delta: Array, v1: Array, v2: Array | None, a: Array, eta: Any
) -> None:
    """Update b with delta . v2 and c with delta . v1; the printed Algorithm 2 swaps them.

    Parameters
    ----------
    layer : dict
        W (m, n), b (m,) and, for a reduced layer, U (m, n) and c (m,). Its values are replaced.
    delta : array of shape (m,)
        The derivatives of the loss with respect to z.
    v1 : array of shape (m,)
        W a + b.
    v2 : array of shape (m,), or None
        U a + c; None for a linear layer.
    a : array of shape (n,)
        The inputs of the layer.
    eta : float
        The learning rate.
    """
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
    cache = forward_rpqnn(layers, activations, x)
    grads: list[Parameters] = []
    deltas = backward_rpqnn(layers, activations, cache, y, loss)
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
    update: Callable[..., None] = update_rpqnn,
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
    update : callable, optional
        Replaces `update_rpqnn`, for example by one of `PRINTED_UPDATES`.

    Returns
    -------
    list of dict
        The trained layers.
    """
    layers = copy_layers(layers, "WbUc")
    activations = ["logistic"] * len(layers) if activations is None else activations
    for _ in range(epochs):
        for x, y in in_turn(X, Y, order):
            cache = forward_rpqnn(layers, activations, x)
            deltas = backward_rpqnn(layers, activations, cache, y, loss)
            for l, (layer, delta) in enumerate(zip(layers, deltas, strict=True)):
                decay(layer, eta, l2)
                update(layer, delta, cache.v1[l], cache.v2[l], cache.a[l], eta)
    return layers
