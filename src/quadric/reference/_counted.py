"""The multiplications of one layer, counted by running the algorithms on counting numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quadric.reference import _algorithm1 as algorithm1
from quadric.reference import _algorithm2 as algorithm2
from quadric.reference._counting import Counter


def count_layer(kind: str, m: int, n: int) -> dict[str, int]:
    """Multiplications of m neurons with n inputs: forward, backward, update.

    'forward, by structural zeros' are those of the dense block product A Q that A's zeros make
    needless; they are not in 'forward'.
    """
    rng = np.random.default_rng(3)
    counter = Counter()
    shapes: dict[str, tuple[int, ...]] = {"W": (m, n), "b": (m,)}
    if kind == "qnn":
        shapes["Q"] = (m, n, n)
    elif kind == "rpqnn":
        shapes |= {"U": (m, n), "c": (m,)}
    # a layer below, so that there is a delta to pass on; g(z) = z takes no multiplication
    below = {"W": counter.wrap(np.eye(n)), "b": counter.wrap(np.zeros(n))}
    layer = {name: counter.wrap(rng.normal(size=shape)) for name, shape in shapes.items()}
    if kind == "qnn":
        layer["Q"] = (layer["Q"] + layer["Q"].transpose(0, 2, 1)) / 2
    layers, activations = [below, layer], ["identity", "identity"]
    x, y, eta = counter.wrap(rng.normal(size=n)), counter.wrap(np.zeros(m)), 0.1
    steps: dict[str, int] = {}

    def measured(name: str, function: Callable[[], Any], subtract: int = 0) -> Any:
        before, zeros = counter.multiplications, counter.by_structural_zero
        result = function()
        steps[name] = counter.multiplications - before - subtract
        if name == "forward":
            steps["forward, by structural zeros"] = counter.by_structural_zero - zeros
        return result

    algorithm: Any = algorithm2 if kind == "rpqnn" else algorithm1
    cache = measured(
        "forward", lambda: algorithm.forward(layers, activations, x), subtract=n * n
    )  # the layer below
    deltas = measured(
        "backward",
        lambda: algorithm.backward(layers, activations, cache, y, "binary_cross_entropy"),
    )
    caches = (cache.v1[1], cache.v2[1]) if kind == "rpqnn" else ()
    measured("update", lambda: algorithm.update(layer, deltas[1], *caches, cache.a[1], eta))
    return steps
