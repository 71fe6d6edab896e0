"""The cost of a network before it is built: parameters, multiplications, estimated time."""

import timeit
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from quadric.network import Network
from quadric.paper.experiments._experiment import MODELS
from quadric.reference import _counts as counts

STEPS = ("forward", "backward", "update")
SAMPLES, INPUTS, NEURONS = 200, 64, 32  # of the layer that is timed
NAMES = {kind: model for model, kind in MODELS.items()}


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


def cost(sizes: Sequence[int], kinds: Sequence[str]) -> list[LayerCost]:
    """Return the cost of each layer of a network of these sizes, inputs first, one kind per layer.

    The time is an estimate: multiplications divided by the rate at which this machine trains a
    small layer of the same kind in mini-batches.
    """
    rows = []
    for (n, m), kind in zip(pairwise(sizes), kinds, strict=True):
        total = multiplications(NAMES[kind], m, n)
        parameters = counts.PARAMETERS[NAMES[kind]](m, n)
        forward = counts.COUNTS[NAMES[kind], "forward"](m, n)
        rows.append(LayerCost(kind, n, m, parameters, forward, total, total / _rate(kind)))
    return rows


def multiplications(model: str, m: int, n: int) -> int:
    """Count the multiplications of a training step of m neurons with n inputs."""
    return sum(counts.COUNTS[model, step](m, n) for step in STEPS)


@cache
def _rate(kind: str) -> float:
    """Measure multiplications per second: the best of five steps of a small layer."""
    rng = np.random.default_rng(0)
    net = Network.create(INPUTS, [(kind, NEURONS, "logistic")], rng=0)
    X = rng.normal(size=(SAMPLES, INPUTS))
    Y = rng.integers(0, 2, (SAMPLES, NEURONS)).astype(float)
    best = min(timeit.repeat(lambda: net.gradients(X, Y), number=1, repeat=5))
    return multiplications(NAMES[kind], NEURONS, INPUTS) * SAMPLES / best
