"""The data of a training run: samples, options, records, and the state between epochs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix
from quadric.core import Layer, Stack
from quadric.utils import counted, notebook


@dataclass(frozen=True)
class Samples:
    """Inputs, targets, sample weights, and an offset that is added to every row of the inputs."""

    X: Matrix
    Y: Array
    weight: Array | None = None
    offset: Array | None = None

    def __len__(self) -> int:
        return len(self.Y)

    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(len(self) if self.weight is None else self.weight.sum(dtype=np.float64))

    def take(self, rows: Array) -> Self:
        """Return some of the samples, with the offset added to their inputs."""
        weight = None if self.weight is None else self.weight[rows]
        return type(self)(self.shift(self.X[rows]), self.Y[rows], weight)

    def shift(self, X: Matrix) -> Matrix:
        """Return X plus the offset, if any; adding it converts a sparse X to a dense array."""
        if self.offset is None:
            return X
        return (X.toarray() if sparse.issparse(X) else X) + self.offset


@dataclass(frozen=True)
class Options:
    """Training options. The public functions validate the values; this class does not.

    Attributes
    ----------
    solver : {'sgd', 'adam', 'lbfgs'}
    epochs : int
        Number of passes over the samples, or of iterations of 'lbfgs'.
    learning_rate : float
        The rate before `schedule` and damping are applied.
    schedule : {'constant', 'invscaling', 'adaptive'}
        'invscaling' is learning_rate / (samples seen + 1)**power_t. 'adaptive' divides the rate by
        5 when the other schedules would stop training.
    batch_size : int
        Number of samples per batch. 'sgd' with one sample per batch and no momentum runs in the
        compiled loop.
    l2 : float
        The objective is mean loss + l2/2 times the sum of squares of the penalized values.
    penalty : {'entries', 'monomials'}
        'entries' penalizes q_ij. 'monomials' penalizes the coefficient of x_i x_j, which is q_ii or
        2 q_ij, and is supported by 'lbfgs' only.
    relevance : array of shape (n_inputs,) or None
        Factors for the inputs: the penalty on the first layer is the one that applies if the inputs
        are multiplied by them. The weights of an input with a small factor stay small. Supported by
        'lbfgs' only.
    by_weight : bool
        Whether to divide the loss and the penalty by the batch's sum of sample weights, as
        scikit-learn's networks do. Otherwise a sample's weight scales its step.
    momentum, nesterov, beta_1, beta_2, epsilon
        Parameters of 'sgd' and 'adam'.
    clip : float or None
        The maximum norm of the gradient of a step, excluding the penalty.
    shuffle : bool
        Whether to draw a new order of the samples for every epoch.
    tol : float
        'lbfgs' stops when no entry of the gradient is larger than `tol`. For the other solvers, see
        `n_iter_no_change`.
    n_iter_no_change : float or None
        Training stops after more than this many consecutive epochs in which the loss or the
        validation score does not improve by at least `tol`. None disables this rule. If it is set
        and there is a validation score, the weights of the best epoch are kept.
    max_evaluations : int
        Maximum number of evaluations of the objective ('lbfgs').
    pairs : int
        Number of correction pairs of 'lbfgs'.
    fixed : tuple of str
        Parameters that 'lbfgs' does not change, such as ('b',).
    resume : bool
        Whether to continue with the optimizer memory and damping in the state (`partial_fit`).
        Not supported for samples with an offset.
    recover : bool
        Whether to undo a diverged epoch and lower the rate instead of raising DivergenceError.
    growth : float or None
        An epoch has diverged if its loss exceeds `growth` times the loss on the same samples at
        the start. If None, only non-finite values count as divergence.
    """

    solver: str = "sgd"
    epochs: int = 5
    learning_rate: float = 0.01
    schedule: str = "constant"
    power_t: float = 0.5
    batch_size: int = 1
    l2: float = 0.0
    penalty: str = "entries"
    relevance: Array | None = None
    by_weight: bool = False
    momentum: float = 0.0
    nesterov: bool = False
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    clip: float | None = None
    shuffle: bool = True
    tol: float = 1e-8
    n_iter_no_change: float | None = None
    max_evaluations: int = 15_000
    pairs: int = 10
    fixed: tuple[str, ...] = ()
    resume: bool = False
    recover: bool = False
    growth: float | None = None

    @property
    def per_sample(self) -> bool:
        """Whether training runs in the compiled loop."""
        return self.solver == "sgd" and self.batch_size == 1 and self.momentum == 0


@dataclass(eq=False)
class FailedEpochError(Exception):
    """Raised if an epoch computes a non-finite number or its loss is far above the reference."""

    sample: int | None = None
    layer: int | None = None
    loss: float | None = None
    reference: float | None = None


@dataclass(frozen=True)
class Epoch:
    """One finished epoch, as passed to a callback.

    Attributes
    ----------
    index : int
        The index of the epoch, starting from 0.
    loss : float
        The mean loss of the samples, each computed before its own step, plus the penalty at the
        end of the epoch.
    validation_score : float or None
        The score on the validation data, or None without validation data.
    seconds : float
        The duration of the epoch, excluding validation.
    """

    index: int
    loss: float
    validation_score: float | None
    seconds: float


@dataclass
class History:
    """The finished epochs of one call to `Network.fit`.

    Attributes
    ----------
    loss, validation_score, seconds : list of float
        One entry for each epoch; `validation_score` is empty without validation data.
    n_samples : int
        Number of samples per epoch.
    stopped : bool
        Whether a callback asked to stop.
    exhausted : bool
        Whether a stopping rule was set and the epochs or evaluations ran out before it applied.
    """

    n_samples: int
    loss: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stopped: bool = False
    exhausted: bool = False

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.loss)

    def _repr_html_(self) -> str:
        seconds = f" in {sum(self.seconds):.3g} s" if self.seconds else ""
        losses = f", loss {self.loss[0]:.4g} to {self.loss[-1]:.4g}" if self.loss else ""
        size = f"{counted(self.epochs, 'epoch')} of {counted(self.n_samples, 'sample')}"
        return (
            notebook.paragraph(f"{size}{seconds}{losses}")
            + notebook.curve(self.loss, "loss of each epoch")
            + notebook.curve(self.validation_score, "validation score of each epoch")
        )


@dataclass
class Schedule:
    """The learning rate. With `resume`, it is kept between calls.

    Attributes
    ----------
    rate : float or None
        The current rate of the 'adaptive' schedule.
    damping : float
        A factor applied to every rate; each divergence lowers it.
    failed_calls, good_calls : int
        With `resume`: numbers of calls that diverged, and of calls since then or since the damping
        was last raised.
    typical_loss : float
        With `resume`: moving average, over the calls, of the loss if all logits are zero.
    """

    rate: float | None = None
    damping: float = 1.0
    failed_calls: int = 0
    good_calls: int = 0
    typical_loss: float = 0.0


@dataclass
class Optimizer:
    """The memory of the optimizer. With `resume`, it is kept between calls.

    Attributes
    ----------
    memory : dict of arrays
        Velocities, Adam's means and squares, or the weights of the compiled loop (`theta`
        times `scale`, which rounds differently from the layers' own arrays).
    steps : int
        Number of Adam steps (t).
    packed : PackedLayers or None
        The compiled loop's buffers; ``memory["theta"]`` and ``memory["scale"]`` are two of them.
    """

    memory: dict[str, Array] = field(default_factory=dict)
    steps: int = 0
    packed: Any = None

    def adam_rate(self, rate: float, beta_1: float, beta_2: float) -> float:
        """Count an Adam step and return its rate: ``rate sqrt(1 - beta_2^t) / (1 - beta_1^t)``."""
        self.steps += 1
        return float(rate * (np.sqrt(1 - beta_2**self.steps) / (1 - beta_1**self.steps)))


@dataclass
class Stopping:
    """The data of the stopping rule. With `resume`, it is kept between calls.

    Attributes
    ----------
    best_loss, best_score : float
        Best loss and best validation score so far.
    no_improvement : int
        Number of consecutive epochs without an improvement of at least `tol`.
    """

    best_loss: float = np.inf
    best_score: float = -np.inf
    no_improvement: int = 0


@dataclass
class Call:
    """What the last call has done.

    Attributes
    ----------
    epochs, recoveries, evaluations : int
        Numbers of finished epochs, of recoveries from divergence and of evaluations of the
        objective.
    per_epoch : int
        Number of samples seen in each epoch. With ``options.by_weight``, each sample of a
        mini-batch is counted by its weight.
    best_weights : list of Layer or None
        The layers at the best validation score.
    loss_at_start, loss_at_end : float or None
        The objective at the start and at the end, on the samples that the divergence rule uses.
    """

    epochs: int = 0
    recoveries: int = 0
    evaluations: int = 0
    per_epoch: int = 0
    best_weights: list[Layer] | None = None
    loss_at_start: float | None = None
    loss_at_end: float | None = None


# The parts of a state, and their numbers in `TrainingState.to_arrays`.
_PARTS: dict[str, tuple[type, tuple[str, ...]]] = {
    "call": (Call, ("epochs", "recoveries", "evaluations")),
    "schedule": (Schedule, ("rate", "damping", "failed_calls", "good_calls", "typical_loss")),
    "optimizer": (Optimizer, ("steps",)),
    "stopping": (Stopping, ("best_loss", "best_score", "no_improvement")),
}
_RECORDS = ("loss", "validation_score", "seconds")


@dataclass
class TrainingState:
    """State that is kept between epochs and, with `resume`, between calls.

    Attributes
    ----------
    history : History
        The records of all calls that used this state.
    samples : int
        Number of samples seen in all calls; see `Call.per_epoch`.
    call : Call
    schedule : Schedule
    optimizer : Optimizer
    stopping : Stopping
    """

    history: History = field(default_factory=lambda: History(0))
    samples: int = 0
    call: Call = field(default_factory=Call)
    schedule: Schedule = field(default_factory=Schedule)
    optimizer: Optimizer = field(default_factory=Optimizer)
    stopping: Stopping = field(default_factory=Stopping)

    def begin(self, samples: Any, options: Options) -> None:
        """Reset the values of a single call and, without `resume`, all but the records."""
        history, count = self.history, len(samples)
        history.n_samples, history.stopped, history.exhausted = count, False, False
        if samples.weight is not None and options.by_weight and not options.per_sample:
            count = max(1, round(samples.total_weight()))
        self.call = Call(per_epoch=count)
        if not options.resume:
            self.schedule, self.optimizer, self.stopping = Schedule(), Optimizer(), Stopping()

    def next_rate(self, options: Options) -> float:
        """The rate of the next epoch: the scheduled rate times the damping."""
        rate = options.learning_rate
        if options.schedule == "invscaling":
            try:
                rate = rate / (self.samples + 1) ** options.power_t
            except OverflowError:  # the divisor is too large for a float
                rate = 0.0
        elif options.schedule == "adaptive" and self.schedule.rate is not None:
            rate = self.schedule.rate
        return rate * self.schedule.damping

    def add(
        self,
        loss: float,
        seconds: float,
        stack: Stack,
        options: Options,
        *,
        validate: Callable[[], float] | None = None,
        callback: Callable[[Epoch], object] | None = None,
    ) -> None:
        """Record a finished epoch, and update the best loss or score.

        ``history.stopped`` is whether the callback asks to stop.
        """
        history, stopping = self.history, self.stopping
        score = None if validate is None else validate()
        index = self.call.epochs
        history.loss.append(loss)
        history.seconds.append(seconds)
        self.call.epochs += 1
        if score is not None:
            history.validation_score.append(score)
            improved = score >= stopping.best_score + options.tol
            if score > stopping.best_score:
                stopping.best_score = score
                if options.n_iter_no_change is not None:
                    self.call.best_weights = stack.snapshot()
        else:
            improved = loss <= stopping.best_loss - options.tol
            stopping.best_loss = min(stopping.best_loss, loss)
        stopping.no_improvement = 0 if improved else stopping.no_improvement + 1
        history.stopped = callback is not None and bool(
            callback(Epoch(index, loss, score, seconds))
        )

    def stagnates(self, options: Options) -> bool:
        """Whether the run should end; 'adaptive' lowers the rate first, down to 1e-6."""
        schedule, stopping, most = self.schedule, self.stopping, options.n_iter_no_change
        if most is None or stopping.no_improvement <= most:
            return False
        rate = options.learning_rate if schedule.rate is None else schedule.rate
        if options.schedule != "adaptive" or rate <= 1e-6:
            return True
        schedule.rate, stopping.no_improvement = rate / 5.0, 0
        return False

    def trim(self, most: int) -> None:
        """Drop the oldest records, because `partial_fit` can be called any number of times."""
        for records in (self.history.loss, self.history.seconds):
            if len(records) >= 2 * most:
                del records[:-most]

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """The state as arrays and numbers, from which `from_arrays` restores it bit-identically."""
        arrays = {f"memory.{name}": array for name, array in self.optimizer.memory.items()}
        arrays |= {name: np.array(getattr(self.history, name)) for name in _RECORDS}
        numbers = {
            name: getattr(getattr(self, part), name)
            for part, (_, names) in _PARTS.items()
            for name in names
        }
        return arrays, numbers | {"n_samples": self.history.n_samples, "samples": self.samples}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], numbers: dict[str, Any]) -> Self:
        """Restore a state from the results of `to_arrays`."""
        lists = {name: arrays[name].tolist() for name in _RECORDS}
        parts = {
            part: of(**{name: numbers[name] for name in names})
            for part, (of, names) in _PARTS.items()
        }
        state = cls(History(numbers["n_samples"], **lists), numbers["samples"], **parts)
        state.optimizer.memory = {
            name.removeprefix("memory."): array.copy()
            for name, array in arrays.items()
            if name.startswith("memory.")
        }
        return state
