"""Activation functions g and their slopes g', by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quadric.arrays import Array

__all__ = ["ACTIVATIONS", "Activation", "get_activation"]


@dataclass(frozen=True)
class Activation:
    """g and its derivative, the latter as a function of a = g(z), which is all that is kept."""

    function: Callable[[Array], Array]
    slope: Callable[[Array], Array] | None


def _logistic(z: Array) -> Array:
    """1 / (1 + exp(-z)); NumPy's exp is several times faster than scipy.special.expit."""
    a = np.negative(z)
    with np.errstate(over="ignore"):  # exp(-z) may become infinite: then a is 0, as it should
        np.exp(a, out=a)
    a += 1
    return np.reciprocal(a, out=a)


def _softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


ACTIVATIONS: dict[str, Activation] = {
    "identity": Activation(lambda z: z, np.ones_like),
    "logistic": Activation(_logistic, lambda a: a * (1 - a)),
    "tanh": Activation(np.tanh, lambda a: 1 - a * a),
    "relu": Activation(lambda z: np.maximum(z, 0), lambda a: (a > 0).astype(a.dtype)),
    # softmax couples the neurons of a layer: it stands last, with cross_entropy (see losses)
    "softmax": Activation(_softmax, None),
}


def get_activation(name: str) -> Activation:
    """The activation of that name."""
    try:
        return ACTIVATIONS[name]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"activation must be one of {known}. Got {name!r} instead.") from None
