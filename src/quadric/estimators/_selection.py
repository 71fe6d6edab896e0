"""What 'auto' stands for: solver, batch size, shape and penalty.

With L-BFGS, shape and penalty are chosen on held-out samples within the time of one fit. Every
candidate is trained for a few iterations on three quarters of the data; the two best on the last
quarter continue, and the winner is then trained on all data from where it stands.

The values were chosen by `python -m benchmarks.defaults`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.core._layers import LAYERS
from quadric.core._stack import Stack
from quadric.network import Network
from quadric.training._options import Options
from quadric.training._samples import Samples
from quadric.training._state import TrainingState
from quadric.training._train import train

HIDDEN = (32,)
BATCH_SIZE = 200
LBFGS_SAMPLES = 20_000  # with more samples, batches are faster
STOCHASTIC_ALPHA = 1e-4
SINGLE_LAYER_ALPHAS = (0.1, 1.0, 10.0)
HIDDEN_ALPHAS = (1.0, 5.0, 25.0)
FIRST_ROUND, SECOND_ROUND = 15, 25
FEWEST_SAMPLES = 20  # with fewer there is nothing to choose by
MOST_INPUTS = 32  # with more a single quadratic layer is not small any more


class Candidate(NamedTuple):
    """Widths of the hidden layers, and the penalty."""

    hidden: tuple[int, ...]
    alpha: float


class Choice(NamedTuple):
    """A candidate with its network, and the iterations and evaluations spent on choosing."""

    candidate: Candidate
    network: Network
    iterations: int = 0
    evaluations: int = 0


def hidden_sizes(estimator: Any) -> list[int] | None:
    """The widths of the hidden layers: a number is one layer, () is none; None is to be chosen."""
    given, kinds = estimator.hidden_layer_sizes, estimator.layer_kinds
    if isinstance(given, str):
        auto = isinstance(kinds, str) and kinds == "auto"
        return None if auto else list(HIDDEN)  # a kind for each layer makes it a fixed shape
    sizes = given if isinstance(given, (list, tuple)) else np.atleast_1d(np.asarray(given))
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"hidden_layer_sizes must be > 0, got {given!r:.100}.")
    return [int(size) for size in sizes]


def shape_of(estimator: Any, candidate: Candidate, n_outputs: int) -> list[tuple[str, int]]:
    """(kind, neurons) for each layer: 'auto' is linear hidden layers and a quadratic output."""
    sizes, kinds = [*candidate.hidden, n_outputs], estimator.layer_kinds
    if isinstance(kinds, str):
        auto = ["linear"] * len(candidate.hidden) + ["quadratic"]
        kinds = auto if kinds == "auto" else [kinds] * len(sizes)
    kinds = list(kinds)
    if len(kinds) != len(sizes) or not all(kind in LAYERS for kind in kinds):
        known = ", ".join(map(repr, LAYERS))
        raise ValueError(
            f"layer_kinds must be 'auto', one of {known}, or a sequence of them of length "
            f"{len(sizes)} (hidden layers and output). Got {estimator.layer_kinds!r} instead."
        )
    return list(zip(kinds, sizes, strict=True))


def auto_solver(n_samples: int, *, batches: bool) -> str:
    """The solver for that many samples; `batches` are asked for."""
    return "adam" if batches or n_samples > LBFGS_SAMPLES else "lbfgs"


def candidates(
    hidden: Sequence[int] | None, alpha: float | None, n_inputs: int, solver: str
) -> list[Candidate]:
    """All combinations that are open (None); the first is used if nothing can be chosen."""
    if solver != "lbfgs":
        alpha = STOCHASTIC_ALPHA if alpha is None else alpha
        return [Candidate(HIDDEN if hidden is None else tuple(hidden), alpha)]
    shapes: list[tuple[int, ...]] = [HIDDEN] if hidden is None else [tuple(hidden)]
    if hidden is None and n_inputs <= MOST_INPUTS:
        shapes.insert(0, ())
    found = []
    for shape in shapes:
        alphas = HIDDEN_ALPHAS if shape else SINGLE_LAYER_ALPHAS
        found += [Candidate(shape, a) for a in (alphas if alpha is None else (alpha,))]
    return found


def worth_choosing(among: Sequence[Candidate], n_samples: int, options: Options) -> bool:
    """Whether there are several candidates, and samples, iterations and evaluations for them."""
    enough = n_samples >= FEWEST_SAMPLES and options.epochs >= 4
    return len(among) > 1 and enough and _shares(len(among), options)[0] >= 2


def _shares(n_candidates: int, options: Options) -> tuple[int, int]:
    """Evaluations for each candidate of either round: a quarter of all of them for a round."""
    assert options.max_evaluations is not None
    return options.max_evaluations // (4 * n_candidates), options.max_evaluations // 8


def select(
    among: Sequence[tuple[Candidate, Network]],
    loss: str,
    samples: Samples,
    options: Options,
    rng: np.random.RandomState,
) -> Choice:
    """The best candidate by its loss on held-out samples, trained a little.

    A round takes at most a quarter of the iterations (of one candidate) and of the evaluations (of
    all candidates).
    """
    n_samples, evaluations = len(samples), 0
    order = rng.permutation(n_samples)
    kept, held = samples.take(order[n_samples // 4 :]), samples.take(order[: n_samples // 4])
    rounds = [max(1, min(n, options.epochs // 4)) for n in (FIRST_ROUND, SECOND_ROUND)]

    def held_out_loss(entry: tuple[Candidate, Network], iterations: int, share: int) -> float:
        nonlocal evaluations
        candidate, network = entry
        state = TrainingState()
        run = Options(
            solver="lbfgs",
            epochs=iterations,
            l2=candidate.alpha,
            by_weight=True,
            tol=1e-4,
            max_evaluations=min(share, 15 * iterations + 20),
        )
        stack = Stack(network.layers, network.activations, loss)
        train(stack, kept, run, state)
        evaluations += state.evaluations
        z = stack.logits(held.X)
        values = stack.loss_function.value(network.activations[-1], z, held.Y)
        return float(np.average(values, weights=held.weight))

    entries = list(among)
    for iterations, share in zip(rounds, _shares(len(among), options), strict=True):
        losses = [held_out_loss(entry, iterations, share) for entry in entries]
        entries = [entries[i] for i in np.argsort(losses, kind="stable")[:2]]
    return Choice(*entries[0], sum(rounds), evaluations)
