"""What a network costs before it is built: parameters, multiplications, bytes, about how long."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from quadric.network import Network
from quadric.reference import _counts as counts

NAMES = {"linear": "ann", "quadratic": "qnn", "reduced": "rpqnn"}
STEPS = ("forward", "backward", "update")
SAMPLES, INPUTS, NEURONS = 200, 64, 32  # of the quick measurement


@dataclass(frozen=True)
class LayerCost:
    """One layer: multiplications and seconds are for one sample, the whole training step.

    `packed` and `full` are numbers held: Q as its triangle (files), and in full (memory).
    """

    kind: str
    inputs: int
    neurons: int
    parameters: int
    forward: int
    multiplications: int
    seconds: float


def cost(sizes: Sequence[int], kinds: Sequence[str]) -> list[LayerCost]:
    """The cost of each layer of a network of these sizes, inputs first; one kind a layer.

    The time is an estimate: multiplications over the rate at which this machine trains a small
    layer of the same kind in mini-batches.
    """
    rows = []
    for (n, m), kind in zip(pairwise(sizes), kinds, strict=True):
        steps = {step: counts.COUNTS[NAMES[kind], step](m, n) for step in STEPS}
        total = sum(steps.values())
        rows.append(
            LayerCost(
                kind, n, m, counts.PARAMETERS[NAMES[kind]](m, n), steps["forward"], total,
                total / _rate(kind),
            )
        )  # fmt: skip
    return rows


@cache
def _rate(kind: str) -> float:
    """Multiplications a second, the best of five steps of a small layer."""
    rng = np.random.default_rng(0)
    net = Network.create(INPUTS, [(kind, NEURONS, "logistic")], rng=0)
    X = rng.normal(size=(SAMPLES, INPUTS))
    Y = rng.integers(0, 2, (SAMPLES, NEURONS)).astype(float)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        net.gradients(X, Y)
        best = min(best, time.perf_counter() - start)
    total = sum(counts.COUNTS[NAMES[kind], step](NEURONS, INPUTS) for step in STEPS)
    return float(total * SAMPLES / best)
