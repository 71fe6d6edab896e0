"""Shared by both algorithms: g, g', the loss and its delta^L, and the paper's matrices."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Parameters = dict[str, Array]


def sigma(z: Array) -> Array:
    """The logistic sigmoid, 1 / (1 + exp(-z)).

    Parameters
    ----------
    z : array
        Any numbers.

    Returns
    -------
    array
        Numbers from 0 to 1, of the same shape.
    """
    return 1 / (1 + np.exp(-z))


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max())
    return e / e.sum()


# name: (g, g' as a function of z)
G: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "identity": (lambda z: z, lambda z: np.ones(len(z))),
    "logistic": (sigma, lambda z: sigma(z) * (1 - sigma(z))),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "relu": (lambda z: np.where(z > 0, z, 0), lambda z: np.where(z > 0, 1.0, 0.0)),
    "softmax": (softmax, lambda z: np.ones(len(z))),  # g' is not used: softmax is last
    "exponential": (np.exp, np.exp),
}


def delta_L(loss: str, activation: str, z: Array, y_hat: Array, y: Array) -> Array:
    """delta^L = dL/dz^L: y_hat - y, times g' for the squared error."""
    if loss == "squared_error":
        return (y_hat - y) * G[activation][1](z)
    return y_hat - y


def loss_value(loss: str, y_hat: Array, y: Array) -> Any:
    """The loss of one sample, summed over the outputs."""
    if loss == "squared_error":
        return 0.5 * ((y_hat - y) ** 2).sum()
    if loss == "cross_entropy":
        return -(y * np.log(y_hat)).sum()
    if loss == "poisson":
        return (y_hat - y - y * np.log(y_hat / np.where(y > 0, y, 1))).sum()
    return -(y * np.log(y_hat) + (1 - y) * np.log(1 - y_hat)).sum()


def A(a: Array, m: int) -> Array:
    """The block matrix with a' along its diagonal, kron(I_m, a').

    Parameters
    ----------
    a : array of shape (n,)
        The inputs of a layer.
    m : int
        Number of neurons.

    Returns
    -------
    array of shape (m, m n)
        Row k is zero outside the k-th block of n columns, which is a'.

    Notes
    -----
    With the matrices Q^k of the neurons stacked to shape (m n, n), the product A Q is the V of
    Algorithm 1: its row k is a'Q^k.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric.reference import A
    >>> a = np.array([2, 3])
    >>> A(a, 2)
    array([[2, 3, 0, 0],
           [0, 0, 2, 3]])
    >>> bool((A(a, 2) == np.kron(np.eye(2), a)).all())
    True
    """
    n = len(a)
    blocks = np.zeros((m, m * n), dtype=a.dtype)
    for k in range(m):
        blocks[k, k * n : (k + 1) * n] = a
    return blocks


def M(a: Array) -> Array:
    """The derivative of a'Qa by the independent entries of a symmetric Q.

    Parameters
    ----------
    a : array of shape (n,)
        The inputs of a layer.

    Returns
    -------
    array of shape (n, n)
        a_i^2 on the diagonal, and 2 a_i a_j elsewhere.

    Notes
    -----
    q_ij and q_ji change together. The derivative by all n^2 entries, each by itself, is a a'.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric.reference import M
    >>> a = np.array([2, 3])
    >>> M(a)
    array([[ 4, 12],
           [12,  9]])
    >>> bool((M(a) == 2 * np.outer(a, a) - np.diag(a**2)).all())
    True
    """
    n = len(a)
    matrix = np.empty((n, n), dtype=a.dtype)
    for i in range(n):
        matrix[i, i] = a[i] * a[i]
        for j in range(i + 1, n):
            matrix[i, j] = matrix[j, i] = 2 * (a[i] * a[j])
    return matrix


def kronecker(delta: Array, symmetric: Array) -> Array:
    """kron(delta, S) for a vector and a symmetric matrix, with each product computed once.

    Parameters
    ----------
    delta : array of shape (m,)
        The derivatives of the loss with respect to z.
    symmetric : array of shape (n, n)
        A symmetric matrix S, such as `M` of the inputs. Only its upper triangle is used.

    Returns
    -------
    array of shape (m n, n)
        The matrices delta_k S, one below the other.

    Notes
    -----
    With S = M(a), this is the derivative of the loss by the stacked matrices Q^k of a layer. It
    takes m n (n + 1) / 2 multiplications, where the Kronecker product takes m n^2.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric.reference import M, kronecker
    >>> S = M(np.array([2, 3]))
    >>> kronecker(np.array([1, -2]), S)
    array([[  4,  12],
           [ 12,   9],
           [ -8, -24],
           [-24, -18]])
    >>> bool((kronecker(np.array([1, -2]), S) == np.kron([[1], [-2]], S)).all())
    True
    """
    n = len(symmetric)
    rows, columns = np.triu_indices(n)
    triangles = np.kron(delta, symmetric[rows, columns]).reshape(len(delta), -1)
    stacked = np.empty((len(delta), n, n), dtype=triangles.dtype)
    stacked[:, rows, columns] = triangles
    stacked[:, columns, rows] = triangles
    return stacked.reshape(-1, n)


def copy_layers(layers: Sequence[Parameters], fields: str) -> list[Parameters]:
    """Copy the layers; raise ValueError for arrays whose names are not in `fields`."""
    for l, layer in enumerate(layers):
        if unknown := set(layer) - set(fields):
            raise ValueError(
                f"layer {l} has {', '.join(sorted(unknown))}, which this algorithm does not use. "
                f"Expected {', '.join(fields)} only."
            )
    return [{name: np.array(array) for name, array in layer.items()} for layer in layers]


def in_turn(X: Array, Y: Array, order: Any) -> Any:
    """Yield the samples (x^i, y^i) in the given order, by default the order of X."""
    for i in range(len(X)) if order is None else order:
        yield X[i], Y[i]


def decay(layer: Parameters, eta: Any, l2: float) -> None:
    """Apply the L2 penalty's part of a step to the weights; biases are not penalized."""
    if l2:
        for name in ("W", "Q", "U"):
            if name in layer:
                layer[name] = layer[name] - (eta * l2) * layer[name]
