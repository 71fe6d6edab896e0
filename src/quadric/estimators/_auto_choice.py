"""What 'auto' stands for: the shape and the penalty, chosen on held-out samples.

The candidates and the constants were chosen by `python -m benchmarks.defaults`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from quadric.checks import Array
from quadric.core import Stack
from quadric.estimators._data import PARTS, PAUSED, REPEATED_UP_TO, n_splits
from quadric.estimators._parameters import (
    HIDDEN,
    NetworkParameters,
    hidden_sizes,
    layer_shapes,
)
from quadric.training import Options, Samples, TrainingState, train

# ---- candidates ------------------------------------------------------------------------------

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
# In the order in which they are tried. Once the loss grows, the next ones are not tried.
SINGLE_LAYER_ALPHAS: tuple[float, ...] = (100.0, 10.0, 1.0, 0.1)
HIDDEN_ALPHAS: tuple[float, ...] = (5.0, 1.0, 25.0, 0.1)
WEAK, WEAKEST = 1.0, 0.01  # penalties below the first are weak; none is below the second
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

    @property
    def is_quadratic(self) -> bool:
        """Whether it is a single quadratic layer."""
        return len(self.layers) == 1 and self.layers[0][0] == "quadratic"

    @property
    def is_late(self) -> bool:
        """Whether it has hidden neurons and a weak penalty.

        For many iterations, such a network may be no better than a single layer, and then learn a
        curved function.
        """
        return len(self.layers) > 1 and self.alpha < WEAK

    def __str__(self) -> str:
        *hidden, (kind, _) = self.layers
        return "".join(f"{width} hidden, " for _, width in hidden) + f"{kind} output"


def candidates(
    parameters: NetworkParameters, n_samples: int, n_inputs: int, n_outputs: int, solver: str
) -> list[Candidate]:
    """Return the combinations of shape and penalty that are tried, grouped by shape."""
    hidden, among = hidden_sizes(parameters), []
    single = isinstance(parameters.hidden_layer_sizes, str) and (
        parameters.hidden_layer_sizes == "single"
    )
    sizes = (() if single else HIDDEN) if hidden is None else hidden
    shapes = [layer_shapes(parameters.layer_kinds, sizes, n_outputs)]
    if hidden is None and solver == "lbfgs":
        # a reduced layer, which is a product, cannot represent the mean of a target
        reduced = n_inputs > MOST_INPUTS and parameters.loss != "squared_error"
        shapes = [
            layer_shapes(["linear"] * len(sizes) + [last], sizes, n_outputs)
            for sizes, last in SHAPES
            if (reduced or last != "reduced")
            and (n_samples >= MANY_SAMPLES or sizes != (64,))
            and not (single and sizes)
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
FIRST_SAMPLES = 4000  # of the kept samples, at most this many are used for the first iterations
FIRST, SECOND = 15, 25  # iterations of every candidate, and of the best penalty of a shape
LATE = 30, 70  # iterations of a late candidate before and after it is first compared
MORE = 60  # iterations of the best, and twice as many each time the loss has fallen
FINALISTS = 3  # shapes that are trained for longer
RELEVANCE_ROUNDS = 2
LEAST_RELEVANCE = 0.01
FEWEST_INPUTS = 4  # with fewer, no input is likely to be irrelevant
# By how many standard errors the loss of a simpler model may be worse. One would be the usual
# rule; it costs a mean rank of 0.3 on the data sets of the benchmark.
STANDARD_ERRORS = 0.25
LATE_ERRORS = 1.0  # by how many standard errors a late candidate must be better than the others
WORSE = 1.05  # smaller penalties are not tried once the loss has grown by this factor
HOPELESS = 1.25  # the second split is skipped if the loss is this many times the best so far
OVERFITTING = 1.1  # a late candidate is given up if its loss is this many times the best
# If other hidden neurons have reduced the loss by this factor, a late candidate is only tried with
# the simplest shape, and given up if it is not the best.
CLEARLY_BETTER = 0.9
# A weaker penalty is tried if the objective of the best is at least this share of its loss on the
# held-out samples: for other candidates, and for the best itself.
OVERFITTED, UNDERFITTED = 0.7, 0.9
STILL_FALLING = 0.97  # training continues as long as it reduces the loss by this factor
LONGEST = 0.7  # of all iterations; the others are left for training on all samples
WEAKER = 10.0  # the penalty of the best is divided by this number as long as that helps


@dataclass(eq=False)
class Trial:
    """A candidate with one network for each split, and its losses on the held-out samples."""

    candidate: Candidate
    stacks: list[Stack]
    relevance: list[Array] | None = None
    states: list[TrainingState] = field(default_factory=list)
    iterations: int = 0
    losses: Array = field(default_factory=lambda: np.empty(0))  # of the splits it was trained on
    loss: float = np.inf

    def copy(self, **changes: Any) -> Self:
        """Return a copy with networks of its own; its training starts without a memory."""
        stacks = [replace(stack, layers=stack.snapshot()) for stack in self.stacks]
        return replace(self, stacks=stacks, states=[], **changes)

    def forget(self) -> None:
        """Delete the memory of L-BFGS, which is many times larger than the network."""
        for state in self.states:
            state.optimizer.memory = {}

    def may_be_weaker(self, share: float) -> bool:
        """Whether a weaker penalty may be better: the objective is this share of the loss."""
        objectives = [state.history.loss[-1] for state in self.states]
        return float(np.mean(objectives)) > share * self.loss


@dataclass(frozen=True)
class Choice:
    """The chosen candidate and its network.

    If several candidates were compared, the network is partly trained. Then there are also the
    relevance of the inputs, the number of its iterations, the number of evaluations of all
    candidates, and a description of everything that was tried.
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

    1. Every candidate, except late ones, is trained for a few iterations on three quarters of the
       samples, or on some of them. If there are few samples, this is repeated with other parts
       held out.
    2. The best penalty of each of the best shapes is trained for longer.
    3. The best two are trained further with a penalty that is larger for inputs that have had
       little effect so far (`relevance_of`).
    4. Late candidates are trained for many iterations, unless they overfit.
    5. The best is trained as long as its loss on the held-out samples falls, and with weaker
       penalties.
    6. Of all these, the simplest is chosen whose loss on the held-out samples is not worse than
       the best by more than `STANDARD_ERRORS` standard errors of the difference.

    If there are too few samples or evaluations, the number of inputs decides.
    """
    # half of all evaluations are used for the choice, an equal share in each of the first calls
    calls = len(among) + FINALISTS + 2 * RELEVANCE_ROUNDS
    share = options.max_evaluations // (2 * calls * n_splits(samples.X))
    enough = len(samples) >= FEWEST_SAMPLES and options.epochs >= 8 and share >= 2
    if len(among) == 1 or not enough:
        candidate = without_choice(among, samples.X.shape[1])
        return Choice(candidate, build(candidate))
    race = _Race(list(_splits(samples, rng)), build, options, share, rng)
    late = [candidate for candidate in among if candidate.is_late]
    trials = race.first([candidate for candidate in among if not candidate.is_late])
    if samples.X.shape[1] >= FEWEST_INPUTS:
        trials += [copy for trial in trials[:2] for copy in race.with_relevance(trial)]
    few = len(samples) <= REPEATED_UP_TO  # too few to tell whether the best overfits
    if late and (few or not trials or _best(trials).may_be_weaker(OVERFITTED)):
        trials += race.late(late, trials)
    trials += race.train_while_falling(_best(trials))
    chosen = race.simplest(trials)
    relevance = chosen.relevance
    return Choice(
        chosen.candidate,
        chosen.stacks[0],
        None if relevance is None else np.exp(np.mean(np.log(relevance), axis=0)),
        chosen.iterations,
        race.evaluations,
        race.records(chosen),
    )


def without_choice(among: Sequence[Candidate], n_inputs: int) -> Candidate:
    """Return the candidate that is used if there are too few samples to choose one."""
    depth = 1 if n_inputs <= FEW_INPUTS else 2
    suitable = [
        candidate
        for candidate in among
        if candidate.layers[-1][0] == "quadratic" and len(candidate.layers) == depth
    ]
    early = [candidate for candidate in suitable if not candidate.is_late]
    return min(early or suitable or among[:1], key=attrgetter("alpha"))


def _best(trials: Sequence[Trial]) -> Trial:
    return min(trials, key=attrgetter("loss"))


class _Race:
    """Trains trials on the same splits, and compares their losses."""

    def __init__(
        self,
        splits: list[tuple[Samples, Samples]],
        build: Callable[[Candidate], Stack],
        options: Options,
        share: int,
        rng: np.random.RandomState,
    ) -> None:
        self.splits, self.build, self.options = splits, build, options
        self.share, self.rng = share, rng
        self.evaluations = 0
        self.trials: list[Trial] = []
        weights = [held.weight for _, held in splits if held.weight is not None]
        self.weight = np.concatenate(weights) if weights else None

    def train(
        self,
        trial: Trial,
        iterations: int,
        rival: Trial | None = None,
        splits: Sequence[tuple[Samples, Samples]] | None = None,
    ) -> bool:
        """Continue the training of a trial, and compute its losses on the held-out samples.

        Stop after a split on which the trial is hopelessly worse than the rival; return whether
        all of the splits were used.
        """
        run = Options(
            solver="lbfgs",
            epochs=iterations,
            l2=trial.candidate.alpha,
            penalty=self.options.penalty,
            by_weight=True,
            tol=1e-4,
            max_evaluations=min(15 * iterations + 20, max(self.share, self._left() // 4)),
            resume=True,
        )
        trial.states = trial.states or [TrainingState() for _ in self.splits]
        losses: list[Array] = []
        for k, (kept, held) in enumerate(splits or self.splits):
            stack, state = trial.stacks[k], trial.states[k]
            relevance = None if trial.relevance is None else trial.relevance[k]
            train(stack, kept, replace(run, relevance=relevance), state)
            self.evaluations += state.call.evaluations
            losses.append(_held_out_losses(stack, held, len(held) * len(self.splits)))
            trial.losses = np.concatenate(losses)
            trial.loss = self._mean(trial.losses)
            rivals = np.inf if rival is None else self._mean(rival.losses[: len(trial.losses)])
            if trial.loss > HOPELESS * rivals:
                break
        trial.iterations += trial.states[0].call.epochs
        if trial not in self.trials:
            self.trials.append(trial)
        for other in sorted(self.trials, key=attrgetter("loss"))[PAUSED - 1 :]:
            if other is not trial:
                other.forget()
        return len(losses) == len(self.splits)

    def _at_most(self, iterations: int) -> int:
        """Return a number of iterations that leaves enough for the later steps."""
        return max(1, min(iterations, self.options.epochs // 8))

    def _left(self) -> int:
        """Return the number of evaluations that are left for the choice."""
        return self.options.max_evaluations // 2 - self.evaluations

    def _mean(self, losses: Array) -> float:
        """Return the weighted mean of the losses of the first splits."""
        weight = None if self.weight is None else self.weight[: len(losses)]
        mean = float(np.average(losses, weights=weight))
        return mean if np.isfinite(mean) else np.inf

    def first(self, among: Sequence[Candidate]) -> list[Trial]:
        """Train every candidate; return the best penalty of the best shapes, trained further."""
        some = [
            (kept.take(np.arange(min(len(kept), FIRST_SAMPLES))), held)
            for kept, held in self.splits
        ]
        best: list[Trial] = []
        for _, same_shape in groupby(among, key=lambda candidate: candidate.layers):
            tried: list[Trial] = []
            for candidate in same_shape:
                if (
                    tried
                    and _best(tried).candidate.alpha < tried[0].candidate.alpha < candidate.alpha
                ):
                    continue  # a weaker penalty than the first has been better
                start = [self.build(candidate) for _ in self.splits]
                if candidate.is_convex:  # continue from the last solution, which is faster
                    _start_from(tried or best, start)
                trial, rivals = Trial(candidate, start), best + tried
                if self.train(trial, self._at_most(FIRST), _best(rivals) if rivals else None, some):
                    tried.append(trial)
                if candidate.is_convex and tried and trial.loss > WORSE * _best(tried).loss:
                    break
            best += sorted(tried, key=attrgetter("loss"))[:1]
        finalists = sorted(best, key=attrgetter("loss"))[:FINALISTS]
        for trial in finalists:
            if len(some[0][0]) < len(self.splits[0][0]):
                trial.states = []  # the objective is another one
            self.train(trial, self._at_most(SECOND))
        return sorted(finalists, key=attrgetter("loss"))

    def with_relevance(self, trial: Trial) -> list[Trial]:
        """Train copies of a trial with a penalty that depends on the relevance of each input.

        Each is a copy of the one before it, with the relevance computed from that. The last, with
        the fewest relevant inputs, comes first.
        """
        copies = [trial]
        for _ in range(RELEVANCE_ROUNDS):
            relevance = [relevance_of(stack) for stack in copies[0].stacks]
            copies.insert(0, copies[0].copy(relevance=relevance))
            self.train(copies[0], self._at_most(FIRST))
        return copies[:-1]

    def late(self, among: Sequence[Candidate], rivals: Sequence[Trial]) -> list[Trial]:
        """Train late candidates; return those that do not overfit.

        One with a linear output gets the relevance that a quadratic layer has found.
        """
        best = _best(rivals) if rivals else None
        single = [trial.loss for trial in rivals if len(trial.candidate.layers) == 1]
        allowed = OVERFITTING
        if best is not None and best.loss < CLEARLY_BETTER * min(single, default=0.0):
            among, allowed = among[-1:], 1.0
        relevance = [t.relevance for t in rivals if t.relevance and t.candidate.is_quadratic]
        found: list[Trial] = []
        for candidate in among:
            trial = Trial(candidate, [self.spread_out(self.build(candidate)) for _ in self.splits])
            if relevance and candidate.layers[-1][0] == "linear":
                trial.relevance = relevance[0]
            used = self.train(trial, self._at_most(LATE[0]), best)
            if best is None or (used and trial.loss <= allowed * best.loss):
                self.train(trial, self._at_most(LATE[1]))
                found.append(trial)
                best = _best([trial] if best is None else [trial, best])
        return found

    def spread_out(self, stack: Stack) -> Stack:
        """Enlarge the first weights and draw biases, so that the hidden neurons start curved.

        Glorot's initial values are small if there are more neurons than inputs. The network is then
        almost linear, and remains so for many iterations.
        """
        first = stack.layers[0].arrays()
        m, n = first["W"].shape
        first["W"] *= first["W"].dtype.type(max(1.0, np.sqrt((n + m) / (2 * n))))
        first["b"][...] = self.rng.uniform(-1, 1, m)
        return stack

    def train_while_falling(self, trial: Trial) -> list[Trial]:
        """Train hidden layers as long as the loss falls; return copies with weaker penalties."""
        weaker: list[Trial] = []
        while len(trial.candidate.layers) > 1 and self._continue(trial):
            alpha = trial.candidate.alpha / WEAKER
            chosen = self.options.penalty == "monomials"  # else alpha is given
            if (
                not chosen
                or alpha < WEAKEST
                or not trial.may_be_weaker(UNDERFITTED)
                or self._left() < self.share
            ):
                break
            before, trial = trial, trial.copy(candidate=trial.candidate._replace(alpha=alpha))
            used = self.train(trial, self._at_most(MORE), before)
            if not used or trial.loss >= before.loss:
                break
            weaker.append(trial)
        return weaker

    def _continue(self, trial: Trial) -> bool:
        """Train as long as the loss falls; return whether there is time to train for longer."""
        iterations = self._at_most(MORE)
        while self._has_time(trial, iterations):
            before = trial.copy()
            self.train(trial, iterations)
            if trial.loss > before.loss:
                trial.stacks, trial.losses, trial.loss = before.stacks, before.losses, before.loss
            if not trial.loss < STILL_FALLING * before.loss:
                break
            iterations *= 2
        return self._has_time(trial, self._at_most(MORE))

    def _has_time(self, trial: Trial, iterations: int) -> bool:
        most = LONGEST * self.options.epochs
        return trial.iterations + iterations < most and self._left() >= self.share

    def simplest(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the fewest parameters that is about as good as the best.

        A late one must be better than all others by a margin: there are more ways to be lucky.
        """
        best, early = _best(trials), [trial for trial in trials if not trial.candidate.is_late]
        if early and self._excess(_best(early), best, LATE_ERRORS) <= 0:
            trials, best = early, _best(early)
        by_size = sorted(trials, key=lambda trial: (trial.stacks[0].n_parameters, trial.loss))
        return next(
            trial
            for trial in by_size
            if trial is best or self._excess(trial, best, STANDARD_ERRORS) <= 0
        )

    def _excess(self, trial: Trial, best: Trial, errors: float) -> float:
        """Return by how much a loss is worse, beyond so many standard errors of the difference."""
        worse = trial.losses - best.losses
        mean = np.average(worse, weights=self.weight)
        variance = np.average((worse - mean) ** 2, weights=self.weight)
        return float(mean - errors * np.sqrt(variance / len(worse)))

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


def _held_out_losses(stack: Stack, held: Samples, count: int) -> Array:
    """Return the loss of each held-out sample; there are `count` of them in all splits.

    A classifier that makes no mistake on a few held-out samples may be far too confident. To
    account for the mistakes that it will make, samples are added that belong to their second most
    likely class, with the mean loss that this has for the held-out samples: as many as are
    expected (`_expected_mistakes`), at most one.
    """
    z, last = stack.logits(held.X), stack.activations[-1]
    losses = stack.loss_function.value(last, z, held.Y).astype(np.float64)
    if last not in ("softmax", "logistic"):
        return losses
    if last == "logistic":
        second = (z <= 0).astype(z.dtype)
        margins = np.where(held.Y > 0, z, -z).min(axis=1)
    else:
        second = np.zeros_like(z)
        np.put_along_axis(second, np.argsort(z, axis=1)[:, -2:-1], 1, axis=1)
        own = held.Y > 0
        margins = np.min(z, axis=1, where=own, initial=np.inf)
        margins = margins - np.max(z, axis=1, where=~own, initial=-np.inf)
    mistakes = _expected_mistakes(margins.astype(np.float64))
    mean = stack.loss_function.value(last, z, second).mean(dtype=np.float64)
    return losses + mistakes * mean / count


def _expected_mistakes(margins: Array) -> float:
    """Return the number of negative margins to expect in another sample of this size, at most 1.

    It is 1 if a margin is negative. Otherwise, the lowest margins are assumed to have an
    exponential tail. Its scale is not known exactly: if k margins are below u, by s on average,
    the next one that is below u is negative with probability (1 + u / (k s))^-k.
    """
    k = int(np.sqrt(len(margins)))
    lowest = np.sort(margins)[: k + 1]
    u, excess = lowest[-1], np.sum(lowest[-1] - lowest[:-1])
    if not (lowest[0] > 0 and excess > 0):
        return 1.0
    return float(min(1.0, k * (1 + u / excess) ** -k))


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
    for k in range(n_splits(samples.X)):
        kept = np.concatenate([part for i, part in enumerate(parts) if i != k])
        yield samples.take(kept), samples.take(parts[k])


def _start_from(solved: Sequence[Trial], start: Sequence[Stack]) -> None:
    """Copy the last solution of a single layer, for the parameters that the networks share."""
    single = [trial for trial in solved if trial.candidate.is_convex]
    for stack, other in zip(start, single[-1].stacks if single else (), strict=False):
        for name, array in stack.layers[0].arrays().items():
            array[...] = other.layers[0].arrays().get(name, array)
