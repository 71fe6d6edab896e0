"""Initial values for layers, by name.

Each function draws the parameters of one layer of m neurons with n inputs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core._layers import LAYERS, Layer

Parameters = dict[str, Array]


def _normal(
    kind: str, n: int, m: int, rng: np.random.Generator, scale: float = 0.005
) -> Parameters:
    """Draw every parameter from N(0, scale^2); Q is symmetrized afterwards.

    With scales of 0.005 to 0.006, the results are close to the paper's MNIST table.
    """
    shapes = LAYERS[kind].shapes(n, m)
    if shapes.pop("packed", None):
        shapes["Q"] = (m, n, n)
    return {name: scale * rng.standard_normal(shape) for name, shape in shapes.items()}


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], variance: float) -> Array:
    bound = np.sqrt(3 * variance)
    return rng.uniform(-bound, bound, shape)


def glorot_variances(kind: str, n: int, m: int) -> dict[str, float]:
    """Return the weight variances that make a layer preserve the variance of its input.

    The inputs are assumed to be independent and standard normal, and the weights to be independent
    with mean zero:

    - linear: E z^2 = n var(w). Glorot's compromise between the forward and the backward
      pass is var(w) = 2/(n + m).
    - quadratic: the linear part contributes n var(w). In a'Qa = sum_i q_ii a_i^2 +
      sum_{i<j} 2 q_ij a_i a_j, all terms are uncorrelated. Because E a_i^4 = 3 and
      E a_i^2 a_j^2 = 1, the quadratic part contributes var(q) (3 n + 4 n(n-1)/2) =
      var(q) n (2n + 1). With var(w) = 1/(2n) and var(q) = 1/(2n(2n + 1)), each part contributes
      one half, so that E z^2 = 1.
    - reduced: given a, v1 and v2 are independent with variance var(w)|a|^2, so E z^2 =
      var(w)^2 E|a|^4 = var(w)^2 n (n + 2), which is 1 for var(w) = var(u) = 1/sqrt(n(n + 2)).
    """
    if kind == "quadratic":
        return {"W": 1 / (2 * n), "Q": 1 / (2 * n * (2 * n + 1))}
    if kind == "reduced":
        return dict.fromkeys("WU", 1 / np.sqrt(n * (n + 2)))
    return {"W": 2 / (n + m)}


def _glorot(kind: str, n: int, m: int, rng: np.random.Generator, scale: float = 1.0) -> Parameters:
    """Draw weights that preserve the variance of the input, and set the biases to zero.

    The weights are multiplied by `scale`.
    """
    shapes, variances = LAYERS[kind].shapes(n, m), glorot_variances(kind, n, m)
    parameters = {
        name: scale * _uniform(rng, shape, variances[name])
        if name in variances
        else np.zeros(shape)
        for name, shape in shapes.items()
        if name != "packed"
    }
    if kind == "quadratic":
        Q = np.triu(_uniform(rng, (m, n, n), variances["Q"]))
        parameters["Q"] = scale * (Q + np.triu(Q, 1).transpose(0, 2, 1))
    return parameters


def _identity(
    kind: str, n: int, m: int, rng: np.random.Generator, scale: float = 0.0
) -> Parameters:
    """Set Q to the identity matrix for every neuron and draw W and b from N(0, scale^2).

    By default, W and b are zero. Linear and reduced layers do not have Q, so they use 'glorot'.
    """
    if kind != "quadratic":
        return _glorot(kind, n, m, rng)
    parameters = _normal(kind, n, m, rng, scale)
    parameters["Q"] = np.broadcast_to(np.eye(n), (m, n, n))
    return parameters


def _relinear(
    kind: str, n: int, m: int, rng: np.random.Generator, scale: float = 1.0
) -> Parameters:
    """Make the layer equivalent to a linear layer that is initialized with 'glorot'.

    Quadratic: Q = 0. Reduced: U = 0 and c = 1, so that v2 = 1. With these values, the outputs of
    deep quadratic networks neither vanish nor explode at the start.
    """
    parameters = _glorot("linear", n, m, rng, scale)
    if kind == "quadratic":
        parameters["packed"] = np.zeros(LAYERS[kind].shapes(n, m)["packed"])
    if kind == "reduced":
        parameters["U"], parameters["c"] = np.zeros((m, n)), np.ones(m)
    return parameters


INITIAL_VALUES: dict[str, Callable[..., Parameters]] = {
    "normal": _normal,
    "glorot": _glorot,
    "identity": _identity,
    "relinear": _relinear,
}


def draw_layers(
    n: int,
    shapes: Sequence[tuple[str, int]],
    *,
    init: str = "glorot",
    scale: float | None = None,
    rng: np.random.Generator,
    dtype: np.dtype[Any],
) -> list[Layer]:
    """Draw new layers; `shapes` holds (kind, neurons) for each, and the first has n inputs."""
    layers: list[Layer] = []
    options = {} if scale is None else {"scale": scale}
    for kind, m in shapes:
        drawn = INITIAL_VALUES[init](kind, n, m, rng, **options)
        layers.append(LAYERS[kind](**{name: array.astype(dtype) for name, array in drawn.items()}))
        n = m
    return layers
