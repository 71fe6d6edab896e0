"""Multiplications in one layer of m neurons with n inputs, by formula and by counting.

"update" is the cost of one layer's parameter updates, and "backward" is that of computing
delta^{l-1} from delta^l. `_as_printed` has the printed counts.

`count_layer` runs the algorithms on numbers that count their own multiplications, including those
by 2. Products with a structural zero of the block matrix A are counted separately. g, g' and the
loss are excluded by running with g(z) = z. The tests compare the formulas with these counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.reference._algorithms import (
    backward_qnn,
    backward_rpqnn,
    forward_qnn,
    forward_rpqnn,
    update_qnn,
    update_rpqnn,
)
from quadric.reference._pieces import Array

Formula = Callable[[int, int], int]

COUNTS: dict[tuple[str, str], Formula] = {
    ("ann", "forward"): lambda m, n: m * n,
    ("ann", "backward"): lambda m, n: m * n + n,
    ("ann", "update"): lambda m, n: m * n + 2 * m,
    # V = A Q without A's zeros, then (W + V) a
    ("qnn", "forward"): lambda m, n: m * n * n + m * n,
    ("qnn", "backward"): lambda m, n: 2 * m * n + n,
    # M(a) is shared by the neurons: n(n+1)/2 products and n(n-1)/2 doublings, once; every line
    # scales delta by eta, for b, W and Q
    ("qnn", "update"): lambda m, n: m * n + 3 * m + n * n + m * n * (n + 1) // 2,
    ("rpqnn", "forward"): lambda m, n: 2 * m * n + m,
    ("rpqnn", "backward"): lambda m, n: 2 * m * n + 2 * m + n,
    ("rpqnn", "update"): lambda m, n: 2 * m * n + 8 * m,
}

STEPS = ("forward", "backward", "update")


def step_count(kind: str, m: int, n: int, *, first: bool = False) -> int:
    """Return the multiplications of a training step of m neurons with n inputs.

    The algorithms compute delta^{l-1} for l = L, ..., 2 only: the first layer of a network has no
    backward pass.

    Parameters
    ----------
    kind : {'ann', 'qnn', 'rpqnn'}
        The model.
    m : int
        Number of neurons.
    n : int
        Number of inputs.
    first : bool
        Whether the layer is the first one of its network.

    Returns
    -------
    int
        The number of multiplications.
    """
    return sum(COUNTS[kind, step](m, n) for step in STEPS if not (first and step == "backward"))


# Other ways to compute z of a quadratic layer.
QNN_FORWARD_COUNTS: dict[str, Formula] = {
    # a'Qa from the triangle alone: cheaper than the printed algorithm, but without V
    "triangle": lambda m, n: m * (n * n + 3 * n) // 2,
    # A Q as an ordinary product, including A's zeros
    "dense blocks": lambda m, n: m * m * n * n,
}

PARAMETERS: dict[str, Formula] = {
    "ann": lambda m, n: m * (n + 1),
    "qnn": lambda m, n: m * (n * (n + 1) // 2 + n + 1),
    "rpqnn": lambda m, n: m * (2 * n + 2),
}

# The numbers that a layer stores beyond W, b, z and a of an ANN.
EXTRA_MEMORY: dict[str, Formula] = {
    "qnn": lambda m, n: m * n * (n + 1) // 2 + m * n,  # Q as a triangle, and V
    "rpqnn": lambda m, n: m * n + 3 * m,  # U, c, v1 and v2
}


@dataclass
class Counter:
    """The number of multiplications and, separately, of those by a structural zero."""

    multiplications: int = 0
    by_structural_zero: int = 0

    def wrap(self, array: Any) -> Array:
        """Return the same values as an object array of counting numbers."""
        number = np.frompyfunc(lambda value: Number(float(value), self), 1, 1)
        return np.asarray(number(array))


def _operator(apply: Callable[[float, float], float]) -> Any:
    """Return a method that applies a function to two numbers and keeps the counter."""

    def method(self: Number, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy then applies it entry by entry
        return Number(apply(self.value, float(other)), self.counter)

    return method


@dataclass(slots=True)
class Number:
    """A float with a counter. The plain integer 0 is a structural zero."""

    value: float
    counter: Counter

    __add__ = __radd__ = _operator(lambda x, y: x + y)
    __sub__ = _operator(lambda x, y: x - y)
    __rsub__ = _operator(lambda x, y: y - x)
    __truediv__ = _operator(lambda x, y: x / y)
    __rtruediv__ = _operator(lambda x, y: y / x)
    _times = _operator(lambda x, y: x * y)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            self.counter.by_structural_zero += 1
            return 0
        self.counter.multiplications += not isinstance(other, np.ndarray)
        return self._times(other)

    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return Number(-self.value, self.counter)

    def exp(self) -> Number:
        return Number(math.exp(self.value), self.counter)

    def __float__(self) -> float:
        return self.value


# forward, backward and update; without Q, a layer of a QNN is one of an ANN
QNN: Any = (forward_qnn, backward_qnn, update_qnn)
RPQNN: Any = (forward_rpqnn, backward_rpqnn, update_rpqnn)


def count_layer(kind: str, m: int, n: int) -> dict[str, int]:
    """Count the multiplications of m neurons with n inputs: forward, backward and update.

    Parameters
    ----------
    kind : {'ann', 'qnn', 'rpqnn'}
        The model.
    m : int
        Number of neurons.
    n : int
        Number of inputs.

    Returns
    -------
    dict of int
        The multiplications of each step. 'forward, by structural zeros' counts the products with
        A's zeros in the dense block product A Q; 'forward' does not include them.
    """
    rng = np.random.default_rng(3)
    counter = Counter()
    own: Any = {"ann": {}, "qnn": {"Q": (m, n, n)}, "rpqnn": {"U": (m, n), "c": (m,)}}
    shapes = {"W": (m, n), "b": (m,), **own[kind]}
    # a layer below receives the delta; g(z) = z does not multiply anything
    below = {"W": counter.wrap(np.eye(n)), "b": counter.wrap(np.zeros(n))}
    layer = {name: counter.wrap(rng.normal(size=shape)) for name, shape in shapes.items()}
    if kind == "qnn":
        layer["Q"] = (layer["Q"] + layer["Q"].transpose(0, 2, 1)) / 2
    layers, activations = [below, layer], ["identity", "identity"]
    x, y, eta = counter.wrap(rng.normal(size=n)), counter.wrap(np.zeros(m)), 0.1
    steps = RPQNN if kind == "rpqnn" else QNN
    cache = steps[0](layers, activations, x)
    forward, zeros = counter.multiplications, counter.by_structural_zero
    deltas = steps[1](layers, activations, cache, y, "binary_cross_entropy")
    forward_and_backward = counter.multiplications
    caches = (cache.v1[1], cache.v2[1]) if kind == "rpqnn" else ()
    steps[2](layer, deltas[1], *caches, cache.a[1], eta)
    return {
        "forward": forward - n * n,  # without the layer below
        "forward, by structural zeros": zeros,
        "backward": forward_and_backward - forward,
        "update": counter.multiplications - forward_and_backward,
    }
