"""Quadratic logistic regression, section II: one neuron and its SGD updates."""

from typing import Any

from quadric.reference._pieces import Array, M, in_turn, sigma


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
