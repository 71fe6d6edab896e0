"""What 'auto' stands for: the solver, and the shape and penalty chosen on held-out samples.

The candidates and the constants were chosen by `python -m benchmarks.defaults`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array
from quadric.core import LAYERS, Stack
from quadric.estimators._data import LBFGS_SAMPLES
from quadric.estimators._parameters import NetworkParameters
from quadric.training import Options, Samples, TrainingState, train

# ---- candidates ------------------------------------------------------------------------------

HIDDEN = (32,)
STOCHASTIC_ALPHA = 1e-4
# With 'lbfgs', one of these shapes and penalties is chosen on held-out samples (`choose`).
SHAPES: tuple[tuple[tuple[int, ...], str], ...] = (
    ((), "linear"),
    ((), "quadratic"),
    (HIDDEN, "quadratic"),
    (HIDDEN, "linear"),
    ((64,), "linear"),
    ((), "reduced"),
)
SINGLE_LAYER_ALPHAS: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
HIDDEN_ALPHAS: tuple[float, ...] = (1.0, 5.0, 25.0)
FEW_INPUTS = 32  # with more inputs, a single quadratic layer is not a small model
MOST_INPUTS = 64  # with more inputs, a reduced layer may be better than a quadratic one
MANY_SAMPLES = 2000  # with fewer samples, 64 hidden neurons are no better than 32


class Candidate(NamedTuple):
    """(kind, neurons) of each layer, and the penalty."""

    layers: tuple[tuple[str, int], ...]
    alpha: float

    @property
    def is_convex(self) -> bool:
        """Whether the loss has a single minimum, which does not depend on the initial values."""
        return len(self.layers) == 1 and self.layers[0][0] != "reduced"

    def __str__(self) -> str:
        *hidden, (kind, _) = self.layers
        return "".join(f"{width} hidden, " for _, width in hidden) + f"{kind} output"


def hidden_sizes(parameters: NetworkParameters) -> tuple[int, ...] | None:
    """Return the widths of the hidden layers, or None if 'auto' chooses them."""
    given, kinds = parameters.hidden_layer_sizes, parameters.layer_kinds
    if isinstance(given, str):
        # a kind for each layer fixes the number of layers
        return None if isinstance(kinds, str) and kinds == "auto" else HIDDEN
    sizes = given if isinstance(given, (list, tuple)) else np.atleast_1d(np.asarray(given))
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"hidden_layer_sizes must be > 0, got {given!r:.100}.")
    return tuple(int(size) for size in sizes)


def are_kinds(given: Any) -> bool:
    """Whether `given` is a sequence of strings."""
    several = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim)
    return bool(several) and all(isinstance(kind, str) for kind in given)


def layer_shapes(given: Any, hidden: Sequence[int], n_outputs: int) -> list[tuple[str, int]]:
    """Return (kind, neurons) of each layer for the parameter `layer_kinds`.

    'auto' means linear hidden layers and a quadratic output layer.
    """
    sizes, kinds = [*hidden, n_outputs], given
    if isinstance(kinds, str):
        auto = ["linear"] * len(hidden) + ["quadratic"]
        kinds = auto if kinds == "auto" else [kinds] * len(sizes)
    if not are_kinds(kinds) or len(kinds) != len(sizes) or not LAYERS.keys() >= set(kinds):
        known = ", ".join(map(repr, LAYERS))
        raise ValueError(
            f"layer_kinds must be 'auto', one of {known}, or a sequence of them of length "
            f"{len(sizes)} (hidden layers and output). Got {given!r} instead."
        )
    return list(zip(kinds, sizes, strict=True))


def solver_for(parameters: NetworkParameters, n_samples: int, *, incremental: bool) -> str:
    """Return the solver; 'auto' is 'adam' whenever batches are needed.

    It is also 'adam' for many samples, unless the shape is chosen: then most of the work is done on
    some of the samples.
    """
    if parameters.solver != "auto":
        return parameters.solver
    batches = incremental or parameters.early_stopping or parameters.batch_size != "auto"
    many = n_samples > LBFGS_SAMPLES and hidden_sizes(parameters) is not None
    return "adam" if batches or many else "lbfgs"


def candidates(
    parameters: NetworkParameters, n_samples: int, n_inputs: int, n_outputs: int, solver: str
) -> list[Candidate]:
    """Return the combinations of shape and penalty that are tried, grouped by shape."""
    hidden, among = hidden_sizes(parameters), []
    shapes = [layer_shapes(parameters.layer_kinds, HIDDEN if hidden is None else hidden, n_outputs)]
    if hidden is None and solver == "lbfgs":
        # a reduced layer, which is a product, cannot represent the mean of a target
        reduced = n_inputs > MOST_INPUTS and parameters.loss != "squared_error"
        shapes = [
            layer_shapes(["linear"] * len(sizes) + [last], sizes, n_outputs)
            for sizes, last in SHAPES
            if (reduced or last != "reduced") and (n_samples >= MANY_SAMPLES or sizes != (64,))
        ]
    for layers in shapes:
        alphas = SINGLE_LAYER_ALPHAS if len(layers) == 1 else HIDDEN_ALPHAS
        if parameters.alpha != "auto":
            alphas = (float(parameters.alpha),)
        elif solver != "lbfgs":
            alphas = (STOCHASTIC_ALPHA,)
        among += [Candidate(tuple(layers), alpha) for alpha in alphas]
    return among


# ---- choice ----------------------------------------------------------------------------------

FEWEST_SAMPLES = 20  # with fewer, held-out losses are too noisy
PARTS = 4  # one part of the samples is held out
REPEATED_UP_TO = 250  # with at most this many samples, two parts are held out, one after the other
FIRST, SECOND = 15, 25  # iterations of every candidate, and of the best penalty of a shape
FINALISTS = 3  # shapes that are trained for longer
RELEVANCE_ROUNDS = 2
LEAST_RELEVANCE = 0.01
FEWEST_INPUTS = 4  # with fewer, no input is likely to be irrelevant
# By how many standard errors the loss of a simpler model may be worse. One would be the usual
# rule; it costs a mean rank of 0.3 on the data sets of the benchmark.
STANDARD_ERRORS = 0.25
WORSE = 1.05  # smaller penalties are not tried once the loss has grown by this factor
HOPELESS = 1.25  # the second split is skipped if the loss is this many times the best so far


@dataclass(eq=False)
class Trial:
    """A candidate with one network for each split, and its losses on the held-out samples."""

    candidate: Candidate
    stacks: list[Stack]
    relevance: list[Array] | None = None
    losses: Array = field(default_factory=lambda: np.empty(0))  # of the splits it was trained on
    loss: float = np.inf


@dataclass(frozen=True)
class Choice:
    """The chosen candidate and its network.

    If several candidates were compared, the network is partly trained. Then there are also the
    relevance of the inputs, the number of iterations and evaluations used, and a description of
    everything that was tried.
    """

    candidate: Candidate
    stack: Stack
    relevance: Array | None = None
    iterations: int = 0
    evaluations: int = 0
    tried: list[dict[str, Any]] = field(default_factory=list)


def choose(
    among: Sequence[Candidate],
    build: Callable[[Candidate], Stack],
    samples: Samples,
    options: Options,
    rng: np.random.RandomState,
) -> Choice:
    """Choose the shape and the penalty on held-out samples.

    1. Every candidate is trained for a few iterations on three quarters of the samples. If there
       are few samples, this is repeated with another part held out.
    2. The best penalty of each of the best shapes is trained for longer.
    3. The best two are trained further with a penalty that is larger for inputs that have had
       little effect so far (`relevance_of`).
    4. Of all these, the simplest is chosen whose loss on the held-out samples is not worse than
       the best by more than `STANDARD_ERRORS` standard errors of the difference.

    If there are too few samples or evaluations, the number of inputs decides.
    """
    # half of all evaluations are used for the choice, an equal share in each call of L-BFGS
    calls = len(among) + FINALISTS + 2 * RELEVANCE_ROUNDS
    share = options.max_evaluations // (2 * calls * _n_splits(len(samples)))
    enough = len(samples) >= FEWEST_SAMPLES and options.epochs >= 4 and share >= 2
    if len(among) == 1 or not enough:
        candidate = without_choice(among, samples.X.shape[1])
        return Choice(candidate, build(candidate))
    contest = _Contest(list(_splits(samples, rng)), replace(options, max_evaluations=share))
    best = contest.best_of_each_shape(among, build)[:FINALISTS]
    for trial in best:
        contest.train(trial, SECOND)
    best.sort(key=attrgetter("loss"))
    if samples.X.shape[1] >= FEWEST_INPUTS:
        best += [contest.with_relevance(trial) for trial in best[:2]]
        best.sort(key=attrgetter("loss"))
    chosen = contest.simplest(best)
    relevance = chosen.relevance
    return Choice(
        chosen.candidate,
        chosen.stacks[0],
        None if relevance is None else np.exp(np.mean(np.log(relevance), axis=0)),
        contest.iterations(FIRST) + contest.iterations(SECOND),
        contest.evaluations,
        contest.records(chosen),
    )


def without_choice(among: Sequence[Candidate], n_inputs: int) -> Candidate:
    """Return the candidate that is used if there are too few samples to choose one."""
    preferred = 1 if n_inputs <= FEW_INPUTS else 2
    suitable = (
        candidate
        for candidate in among
        if candidate.layers[-1][0] == "quadratic" and len(candidate.layers) == preferred
    )
    return next(suitable, among[0])


def _n_splits(n_samples: int) -> int:
    return 2 if n_samples <= REPEATED_UP_TO else 1


class _Contest:
    """Trains trials on the same splits, and compares their losses."""

    def __init__(self, splits: list[tuple[Samples, Samples]], options: Options) -> None:
        self.splits, self.options = splits, options
        self.evaluations = 0
        self.trials: list[Trial] = []
        weights = [held.weight for _, held in splits if held.weight is not None]
        self.weight = np.concatenate(weights) if weights else None

    def iterations(self, wanted: int) -> int:
        """Return the number of iterations: `wanted`, but at most a quarter of `max_iter`."""
        return max(1, min(wanted, self.options.epochs // 4))

    def train(self, trial: Trial, iterations: int, rival: Trial | None = None) -> bool:
        """Continue the training of a trial, and compute its losses on the held-out samples.

        Stop after a split on which the trial is hopelessly worse than the rival; return whether
        all of the splits were used.
        """
        iterations = self.iterations(iterations)
        run = Options(
            solver="lbfgs",
            epochs=iterations,
            l2=trial.candidate.alpha,
            penalty=self.options.penalty,
            by_weight=True,
            tol=1e-4,
            max_evaluations=min(15 * iterations + 20, self.options.max_evaluations),
        )
        losses: list[Array] = []
        for k, (stack, (kept, held)) in enumerate(zip(trial.stacks, self.splits, strict=True)):
            state = TrainingState()
            relevance = None if trial.relevance is None else trial.relevance[k]
            train(stack, kept, replace(run, relevance=relevance), state)
            self.evaluations += state.call.evaluations
            z = stack.logits(held.X)
            losses.append(stack.loss_function.value(stack.activations[-1], z, held.Y))
            trial.losses = np.concatenate(losses).astype(np.float64)
            trial.loss = self._mean(trial.losses)
            rivals = np.inf if rival is None else self._mean(rival.losses[: len(trial.losses)])
            if trial.loss > HOPELESS * rivals:
                break
        if trial not in self.trials:
            self.trials.append(trial)
        return len(losses) == len(self.splits)

    def _mean(self, losses: Array) -> float:
        """Return the weighted mean of the losses of the first splits."""
        weight = None if self.weight is None else self.weight[: len(losses)]
        mean = float(np.average(losses, weights=weight))
        return mean if np.isfinite(mean) else np.inf

    def best_of_each_shape(
        self, among: Sequence[Candidate], build: Callable[[Candidate], Stack]
    ) -> list[Trial]:
        """Train every candidate; return the best penalty of each shape, the best shape first."""
        best: list[Trial] = []
        for _, same_shape in groupby(among, key=lambda candidate: candidate.layers):
            tried: list[Trial] = []
            for candidate in sorted(same_shape, key=lambda candidate: -candidate.alpha):
                start = [build(candidate) for _ in self.splits]
                if candidate.is_convex:  # continue from the last solution, which is faster
                    _start_from(tried or best, start)
                trial = Trial(candidate, start)
                if self.train(
                    trial, FIRST, min(best + tried, key=attrgetter("loss"), default=None)
                ):
                    tried.append(trial)
                if tried and trial.loss > WORSE * min(other.loss for other in tried):
                    break
            best += sorted(tried, key=attrgetter("loss"))[:1]
        return sorted(best, key=attrgetter("loss"))

    def with_relevance(self, trial: Trial) -> Trial:
        """Train a copy of a trial with a penalty that depends on the relevance of each input."""
        stacks = [replace(stack, layers=stack.snapshot()) for stack in trial.stacks]
        other = Trial(trial.candidate, stacks)
        for _ in range(RELEVANCE_ROUNDS):
            other.relevance = [relevance_of(stack) for stack in other.stacks]
            self.train(other, FIRST)
        return other

    def simplest(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the fewest parameters that is about as good as the first."""
        by_size = sorted(trials, key=lambda trial: trial.stacks[0].n_parameters)
        best = trials[0]
        return next(trial for trial in by_size if trial is best or self._excess(trial, best) <= 0)

    def _excess(self, trial: Trial, best: Trial) -> float:
        """Return by how much a loss is worse, beyond what its standard error allows."""
        worse = trial.losses - best.losses
        mean = np.average(worse, weights=self.weight)
        variance = np.average((worse - mean) ** 2, weights=self.weight)
        return float(mean - STANDARD_ERRORS * np.sqrt(variance / len(worse)))

    def records(self, chosen: Trial) -> list[dict[str, Any]]:
        """Describe all trials, the best first."""
        return [
            {
                "shape": str(trial.candidate),
                "alpha": trial.candidate.alpha,
                "relevance": trial.relevance is not None,
                "parameters": trial.stacks[0].n_parameters,
                "loss": trial.loss,
                "chosen": trial is chosen,
            }
            for trial in sorted(self.trials, key=attrgetter("loss"))
        ]


def relevance_of(stack: Stack) -> Array:
    """Return the relevance of each input, at most 1: the norm of the weights that it is used with.

    The next penalty is divided by its square (for a product of two inputs, by both squares). After
    a few repetitions, the weights of inputs without effect are close to zero.
    """
    layer = stack.layers[0]
    power = np.zeros(layer.n_inputs)
    for name in layer.weights:
        squares = np.square(layer.arrays()[name], dtype=np.float64)
        if name == "packed":
            i, j = np.triu_indices(layer.n_inputs)
            squares = squares.sum(axis=1) * np.where(i == j, 1, 4)
            power += np.bincount(i, squares, layer.n_inputs)
            power += np.bincount(j, squares, layer.n_inputs)
        else:
            power += squares.sum(axis=0)
    largest = power.max()
    if not (np.isfinite(largest) and largest > 0):
        return np.ones_like(power)
    return np.maximum(np.sqrt(power / largest), LEAST_RELEVANCE)


def _splits(samples: Samples, rng: np.random.RandomState) -> Iterator[tuple[Samples, Samples]]:
    """Yield training samples and held-out samples."""
    count = len(samples)
    parts = np.array_split(rng.permutation(count), PARTS)
    for k in range(_n_splits(count)):
        kept = np.concatenate([part for i, part in enumerate(parts) if i != k])
        yield samples.take(kept), samples.take(parts[k])


def _start_from(solved: Sequence[Trial], start: Sequence[Stack]) -> None:
    """Copy the last solution of a single layer, for the parameters that the networks share."""
    single = [trial for trial in solved if trial.candidate.is_convex]
    for stack, other in zip(start, single[-1].stacks if single else (), strict=False):
        for name, array in stack.layers[0].arrays().items():
            array[...] = other.layers[0].arrays().get(name, array)
