"""Activation functions g and their slopes g', by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from quadric.checks import Array


@dataclass(frozen=True)
class Activation:
    """An activation g, and its slope g'(z) written as a function of a = g(z).

    The slope is None if only the last layer can use the activation.
    """

    function: Callable[[Array], Array]
    slope: Callable[[Array], Array] | None


def exp(z: Array) -> Array:
    """Return exp(z); where it would overflow, the compiled loop returns a large finite number."""
    return _apply("exp", z)


def _softmax(z: Array) -> Array:
    e = exp(z - z.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


# Used when numba must not compile anything (NUMBA_DISABLE_JIT).
_NUMPY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


def _apply(name: str, z: Array) -> Array:
    compiled = _compiled()
    if compiled is None:
        with np.errstate(over="ignore"):
            return _NUMPY[name](z)
    return compiled.apply(name, z)


@cache
def _compiled() -> Any:
    from quadric.kernels import _compiling, _elementwise  # imports numba

    return _elementwise if _compiling.ALLOWED else None


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
