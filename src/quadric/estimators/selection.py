"""What 'auto' stands for: shape and penalty chosen on held-out samples, within one fit's time.

Every candidate is trained for a few iterations on three quarters of the data; the two that do best
on the last quarter go on, and the winner is then trained on all data from where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from quadric.arrays import Array, Matrix
from quadric.losses import Loss
from quadric.network import Network
from quadric.training import backprop
from quadric.training.full_batch import run_lbfgs

__all__ = ["HIDDEN", "Candidate", "candidates", "select"]

# Chosen by `python -m benchmarks.defaults`.
HIDDEN = (32,)
SINGLE_LAYER_ALPHAS = (0.1, 1.0, 10.0)
HIDDEN_ALPHAS = (1.0, 5.0, 25.0)
FIRST_ROUND, SECOND_ROUND = 15, 25
FEWEST_SAMPLES = 20  # with fewer there is nothing to choose by
MOST_INPUTS = 32  # with more a single quadratic layer is not small any more


class Candidate(NamedTuple):
    """Widths of the hidden layers, and the penalty."""

    hidden: tuple[int, ...]
    alpha: float


def candidates(hidden: Sequence[int] | None, alpha: float | None, n_inputs: int) -> list[Candidate]:
    """All that is open; None is open. The first is what to take where there is no choosing."""
    shapes: list[tuple[int, ...]] = [HIDDEN] if hidden is None else [tuple(hidden)]
    if hidden is None and n_inputs <= MOST_INPUTS:
        shapes.insert(0, ())
    found = []
    for shape in shapes:
        alphas = HIDDEN_ALPHAS if shape else SINGLE_LAYER_ALPHAS
        found += [Candidate(shape, a) for a in (alphas if alpha is None else (alpha,))]
    return found


def select(
    among: Sequence[Candidate],
    make: Callable[[Candidate], Network],
    loss: Loss,
    X: Matrix,
    Y: Array,
    weights: Array | None,
    rng: np.random.RandomState,
    max_iter: int,
) -> tuple[Candidate, Network, int]:
    """The best candidate by its loss on held-out samples, its network, and its iterations so far.

    The rounds take at most a quarter of `max_iter` each.
    """
    n_samples = len(Y)
    if len(among) == 1 or n_samples < FEWEST_SAMPLES or max_iter < 4:
        return among[0], make(among[0]), 0
    first, second = (max(1, min(n, max_iter // 4)) for n in (FIRST_ROUND, SECOND_ROUND))
    order = rng.permutation(n_samples)
    rows, held = order[n_samples // 4 :], order[: n_samples // 4]
    part = None if weights is None else weights[rows]
    total = float(len(rows) if part is None else part.sum())
    if part is not None:
        part = part / part.dtype.type(total / len(rows))

    def train(entry: tuple[Candidate, Network], iterations: int) -> float:
        candidate, network = entry
        run_lbfgs(
            network.layers, network.activations, loss, X[rows], Y[rows],
            epochs=iterations, l2=candidate.alpha / total, tol=1e-4, sample_weight=part,
            offset=None, validate=None, callback=None,
        )  # fmt: skip
        z = backprop.logits(network.layers, network.activations, X[held])
        values = loss.value(network.activations[-1], z, Y[held])
        return float(np.average(values, weights=None if weights is None else weights[held]))

    entries = [(candidate, make(candidate)) for candidate in among]
    losses = [train(entry, first) for entry in entries]
    entries = [entries[i] for i in np.argsort(losses, kind="stable")[:2]]
    losses = [train(entry, second) for entry in entries]
    candidate, network = entries[int(np.argmin(losses))]
    return candidate, network, first + second
