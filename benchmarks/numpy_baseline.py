"""An efficient NumPy implementation of the paper's per-sample SGD.

It trains 784-h-10 networks with sigmoids and binary cross-entropy. It computes ``V = Q @ a``
instead of using block matrices, reuses buffers and updates the parameters in place. The hidden
layer is linear, and the output layer can be of any kind.
"""

from __future__ import annotations

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def train(net, X, Y, rate):
    """Train for one epoch on the rows of X, in order, and update the network's arrays in place."""
    hidden, output = (layer.arrays() for layer in net.layers)
    kind = net.layers[1].kind
    W1, b1, W2, b2 = hidden["W"], hidden["b"], output["W"], output["b"]
    rate = W1.dtype.type(rate)
    outer1, outer2 = np.empty_like(W1), np.empty_like(W2)
    if kind == "quadratic":
        Q = np.array(net.layers[1].Q)  # the layer itself stores the triangle
        n, step_Q = W2.shape[1], np.empty_like(Q)
        twice = np.full((n, n), 2, dtype=W1.dtype) - np.eye(n, dtype=W1.dtype)
    if kind == "reduced":
        U, c = output["U"], output["c"]
    for x, y in zip(X, Y, strict=True):
        a = sigmoid(W1 @ x + b1)
        if kind == "linear":
            delta = sigmoid(W2 @ a + b2) - y
            back = delta @ W2
            W_step, b_step = delta, delta
        elif kind == "quadratic":
            V = Q @ a
            WV = W2 + V
            delta = sigmoid(WV @ a + b2) - y
            back = delta @ (WV + V)
            W_step, b_step = delta, delta
        else:
            v1, v2 = W2 @ a + b2, U @ a + c
            delta = sigmoid(v1 * v2) - y
            to_U, to_W = delta * v1, delta * v2
            back = to_U @ U + to_W @ W2
            W_step, b_step = to_W, to_W
        delta1 = back * a * (1 - a)
        if kind == "quadratic":
            M = np.multiply.outer(a, a)
            M *= twice
            np.multiply.outer(rate * delta, M, out=step_Q)
            Q -= step_Q
        if kind == "reduced":
            np.multiply.outer(rate * to_U, a, out=outer2)
            U -= outer2
            c -= rate * to_U
        np.multiply.outer(rate * W_step, a, out=outer2)
        W2 -= outer2
        b2 -= rate * b_step
        np.multiply.outer(rate * delta1, x, out=outer1)
        W1 -= outer1
        b1 -= rate * delta1
    if kind == "quadratic":
        net.layers[1].Q = Q
