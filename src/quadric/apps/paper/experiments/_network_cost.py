"""The cost of any network, for `quadric complexity`: counted, and measured in the compiled loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from quadric.apps.paper.experiments._experiment import NAMES
from quadric.network import Network
from quadric.reference import _counts

LARGEST = 2_000_000  # parameters; a larger network is measured at a smaller size
MULTIPLICATIONS = 2e7  # per measurement, which takes about 10 ms
REPEATS = 7  # measurements, of which the best one counts


@dataclass(frozen=True)
class LayerCost:
    """The cost of one layer; multiplications and seconds are for a training step of one sample."""

    kind: str
    inputs: int
    neurons: int
    parameters: int
    forward: int
    multiplications: int
    seconds: float


def cost(sizes: Sequence[int], kinds: Sequence[str], *, nonzero: float = 1.0) -> list[LayerCost]:
    """Return the cost of each layer of a network.

    The first layer has no backward pass, because no layer below it needs delta. The time of the
    network is measured, and divided among the layers in proportion to their multiplications.

    Parameters
    ----------
    sizes : sequence of int
        The number of inputs, and the number of neurons in each layer.
    kinds : sequence of str
        The kind of each layer.
    nonzero : float
        The share of non-zero inputs in the measurement. The compiled loop skips zeros.
    """
    counts = _multiplications(sizes, kinds)
    rate = seconds_per_step(sizes, kinds, nonzero=nonzero) / sum(counts)
    return [
        LayerCost(
            kind,
            inputs=n,
            neurons=m,
            parameters=_counts.PARAMETERS[NAMES[kind]](m, n),
            forward=_counts.COUNTS[NAMES[kind], "forward"](m, n),
            multiplications=count,
            seconds=count * rate,
        )
        for (n, m), kind, count in zip(pairwise(sizes), kinds, counts, strict=True)
    ]


def seconds_per_step(sizes: Sequence[int], kinds: Sequence[str], *, nonzero: float = 1.0) -> float:
    """Measure one SGD step of a network in the compiled loop, in float32: the best of several.

    A network with more than two million parameters is measured with fewer inputs and neurons, and
    the result is scaled by the number of multiplications.
    """
    small = list(sizes)
    while _parameters(small, kinds) > LARGEST and max(small) > 1:
        small = [max(1, size // 2) for size in small]
    count = sum(_multiplications(small, kinds))
    samples = int(np.clip(MULTIPLICATIONS / count, 5, 20_000))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, small[0])).astype(np.float32)
    X *= rng.random(X.shape) < nonzero
    Y = rng.integers(0, 2, (samples, small[-1])).astype(np.float32)
    layers = [(kind, m, "logistic") for kind, m in zip(kinds, small[1:], strict=True)]
    net = Network.create(small[0], layers, init="normal", scale=1e-3, rng=0, dtype="float32")
    history = net.fit(X, Y, learning_rate=1e-6, epochs=REPEATS, rng=0)
    scale = sum(_multiplications(sizes, kinds)) / count
    return float(min(history.seconds)) / samples * scale


def _multiplications(sizes: Sequence[int], kinds: Sequence[str]) -> list[int]:
    shapes = zip(pairwise(sizes), kinds, strict=True)
    return [
        _counts.step_count(NAMES[kind], m, n, first=l == 0)
        for l, ((n, m), kind) in enumerate(shapes)
    ]


def _parameters(sizes: Sequence[int], kinds: Sequence[str]) -> int:
    shapes = zip(pairwise(sizes), kinds, strict=True)
    return sum(_counts.PARAMETERS[NAMES[kind]](m, n) for (n, m), kind in shapes)
