"""Activations g and their slopes g', losses, and the accuracy; all by name.

Losses are computed from the logits z, so that the cross-entropies are finite and exact even for
|z| = 1e4. Each loss is summed over the outputs, and the caller averages it over the samples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from quadric import kernels
from quadric.checks import Array, check_choice


@dataclass(frozen=True)
class Activation:
    """An activation g, and its slope g'(z) written as a function of a = g(z).

    The slope is None if only the last layer can use the activation.
    """

    function: Callable[[Array], Array]
    slope: Callable[[Array], Array] | None


# Used when numba must not compile anything (NUMBA_DISABLE_JIT).
_NUMPY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


def _apply(name: str, z: Array) -> Array:
    if kernels.JIT_ALLOWED:
        return kernels.apply_elementwise(name, z)
    with np.errstate(over="ignore"):
        return _NUMPY[name](z)


# Where exp(z) would overflow, the compiled loop returns a large finite number.
exp = partial(_apply, "exp")


def _softmax(z: Array) -> Array:
    e = exp(z - z.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


def log_softmax(z: Array) -> Array:
    """ln softmax(z) for every row: the bits of scipy.special.log_softmax, in a third of its time.

    >>> log_softmax(np.array([[0.0, 1000.0]]))
    array([[-1000.,     0.]])
    """
    shifted = z - z.max(axis=1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


ACTIVATIONS: dict[str, Activation] = {
    "identity": Activation(lambda z: z, np.ones_like),
    "logistic": Activation(partial(_apply, "logistic"), lambda a: a * (1 - a)),
    "tanh": Activation(partial(_apply, "tanh"), lambda a: 1 - a * a),
    "relu": Activation(lambda z: np.maximum(z, 0), lambda a: (a > 0).astype(a.dtype)),
    # Only the last layer can use these two: softmax couples the neurons of a layer, and the
    # exponential would overflow in a deeper network.
    "softmax": Activation(_softmax, None),
    "exponential": Activation(exp, None),
}


@dataclass(frozen=True)
class Loss:
    """A loss: its value and delta = dL/dz, the activations it supports, and a target check."""

    value_and_delta: Callable[[str, Array, Array], tuple[Array, Array]]
    activations: tuple[str, ...]
    check_targets: Callable[[Array], None] = lambda Y: None  # by default, all are accepted

    def value(self, activation: str, z: Array, y: Array) -> Array:
        """Return the loss of each sample, shape (n_samples,)."""
        return self.value_and_delta(activation, z, y)[0]


def _binary_cross_entropy(activation: str, z: Array, y: Array) -> tuple[Array, Array]:
    """-sum_p [y ln(yhat) + (1 - y) ln(1 - yhat)], where -ln(yhat) = ln(1 + exp(-z)).

    The value and yhat = logistic(z) share one exponential, e = exp(-|z|) <= 1.
    """
    size, positive = np.abs(z), z >= 0
    e = exp(-size)
    value = np.log1p(e) + size * np.where(positive, 1 - y, y)
    return value.sum(axis=1), np.where(positive, 1, e) / (1 + e) - y


def _cross_entropy(activation: str, z: Array, y: Array) -> tuple[Array, Array]:
    """-sum_p y ln softmax(z) = ln sum_p exp(z) - sum_p y z, for y that sums to 1."""
    shifted = np.ascontiguousarray(z.T)  # NumPy's sums and maxima are faster over the first axis
    shifted -= shifted.max(axis=0)
    e = exp(shifted)
    total = e.sum(axis=0)
    value = np.log(total) * np.einsum("bp->b", y) - np.einsum("bp,pb->b", y, shifted)
    e /= total
    return value, e.T - y


def _squared_error(activation: str, z: Array, y: Array) -> tuple[Array, Array]:
    """1/2 sum_p (yhat - y)^2."""
    g = ACTIVATIONS[activation]
    assert g.slope is not None  # true for all activations that this loss supports
    a = g.function(z)
    residual = a - y
    return 0.5 * np.einsum("bp,bp->b", residual, residual), residual * g.slope(a)


def _poisson(activation: str, z: Array, y: Array) -> tuple[Array, Array]:
    """sum_p [y ln(y / yhat) - y + yhat] with yhat = exp(z): half the Poisson deviance."""
    a = exp(z)
    value = a - y + y * (np.log(np.where(y > 0, y, 1)) - z)
    return value.sum(axis=1), a - y


def _check_probabilities(Y: Array) -> None:
    if Y.size and (Y.min() < 0 or Y.max() > 1):
        raise ValueError(
            "Y must lie in [0, 1] for loss='binary_cross_entropy'. "
            f"Got values from {Y.min():g} to {Y.max():g}; encode labels as 0 and 1."
        )


def _check_distributions(Y: Array) -> None:
    if Y.size and (Y.min() < 0 or np.abs(np.einsum("bp->b", Y) - 1).max() > 1e-5):
        raise ValueError(
            "Y must have rows that are non-negative and sum to 1 for loss='cross_entropy'. "
            f"Got a minimum of {Y.min():g} and row sums from {Y.sum(axis=1).min():g} to "
            f"{Y.sum(axis=1).max():g}; turn class labels into rows with np.eye(n_classes)[labels]."
        )


def _check_counts(Y: Array) -> None:
    if Y.size and Y.min() < 0:
        raise ValueError(
            f"Y must not be negative for loss='poisson'. Got a minimum of {Y.min():g}."
        )


LOSSES: dict[str, Loss] = {
    "binary_cross_entropy": Loss(_binary_cross_entropy, ("logistic",), _check_probabilities),
    "cross_entropy": Loss(_cross_entropy, ("softmax",), _check_distributions),
    "squared_error": Loss(_squared_error, ("identity", "logistic", "tanh", "relu")),
    "poisson": Loss(_poisson, ("exponential",), _check_counts),
}


def accuracy(z: Array, Y: Array, weight: Array | None = None) -> float:
    """Return the fraction of rows whose largest logit and largest target are in the same column.

    With a single output, a row is correct if logit > 0 and target > 0.5 are both true or both
    false.
    """
    if z.shape[1] == 1:
        right = (z[:, 0] > 0) == (Y[:, 0] > 0.5)
    else:
        right = z.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.average(right, weights=weight))


def infer_loss(last_activation: str) -> str:
    """Return the first loss that supports the activation of the last layer."""
    return next(name for name, loss in LOSSES.items() if last_activation in loss.activations)


def check_loss(name: str | None, last_activation: str) -> str:
    """Check that the loss supports the last activation; return its name, inferred if None."""
    if name is None:
        return infer_loss(last_activation)
    check_choice("loss", name, LOSSES)
    if last_activation not in LOSSES[name].activations:
        wanted = " or ".join(map(repr, LOSSES[name].activations))
        raise ValueError(
            f"loss={name!r} needs a last layer with activation {wanted}. "
            f"Got {last_activation!r} instead, which loss={infer_loss(last_activation)!r} supports."
        )
    return name
