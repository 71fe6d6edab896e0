"""State of a training run: records of epochs, counters and the optimiser's memory."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Layer
from quadric.core._stack import Stack
from quadric.training._options import Options


@dataclass(frozen=True)
class Epoch:
    """One finished epoch, as passed to a callback.

    Attributes
    ----------
    index : int
        Counted from 0.
    loss : float
        The mean loss of the samples, each computed before its own step, plus the penalty at the
        end of the epoch.
    validation_score : float or None
        The score on the validation data; None without validation data.
    seconds : float
        The duration of the epoch without validation.
    """

    index: int
    loss: float
    validation_score: float | None
    seconds: float


@dataclass
class History:
    """The finished epochs of one call of `Network.fit`.

    Attributes
    ----------
    loss, validation_score, seconds : list of float
        One entry for each epoch; `validation_score` is empty without validation data.
    n_samples : int
        Number of samples per epoch.
    stopped : bool
        Whether a callback requested to stop.
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

    @property
    def samples_per_second(self) -> float:
        """Samples processed per second of training; 0.0 before the first epoch."""
        seconds = sum(self.seconds)
        return self.n_samples * self.epochs / seconds if seconds > 0 else 0.0


@dataclass
class TrainingState:
    """State that is kept between epochs and, with `resume`, between calls.

    Attributes
    ----------
    history : History
        The records of all calls that used this state.
    epochs, recoveries, evaluations : int
        Epochs finished, divergences recovered from and evaluations of the objective in the last
        call.
    samples : int
        Samples seen in all calls.
    damping : float
        A factor on every rate, lowered by divergences.
    rate : float or None
        The current rate of the 'adaptive' schedule.
    memory : dict of arrays
        Velocities, or Adam's means and squares, or the weights of the compiled loop (`theta`
        times `scale`, which rounds differently from the layers' own arrays).
    steps : int
        Number of steps of Adam (t).
    best_loss, best_score : float
        Best loss and best validation score of this fit, used by the stopping rule.
    best_weights : list of Layer or None
        The layers at the best validation score.
    no_improvement : int
        Consecutive epochs without an improvement by `tol`.
    loss_at_start, loss_at_end : float or None
        The objective on the samples that the divergence rule uses.
    """

    history: History = field(default_factory=lambda: History(0))
    epochs: int = 0
    recoveries: int = 0
    evaluations: int = 0
    samples: int = 0
    damping: float = 1.0
    rate: float | None = None
    memory: dict[str, Array] = field(default_factory=dict)
    steps: int = 0
    packed: Any = None  # the compiled loop's buffer around memory["theta"] and ["scale"]
    best_loss: float = np.inf
    best_score: float = -np.inf
    best_weights: list[Layer] | None = None
    no_improvement: int = 0
    loss_at_start: float | None = None
    loss_at_end: float | None = None

    def begin(self, n_samples: int, options: Options) -> None:
        """Reset the values of a single call and, without `resume`, the optimiser's memory."""
        self.history.n_samples = n_samples
        self.history.stopped = self.history.exhausted = False
        self.epochs = self.recoveries = self.evaluations = 0
        self.loss_at_start = self.loss_at_end = self.best_weights = None
        if not options.resume:
            self.forget()
            self.damping, self.rate = 1.0, None
            self.best_loss, self.best_score, self.no_improvement = np.inf, -np.inf, 0

    def forget(self) -> None:
        """Drop the optimiser's memory."""
        self.memory, self.steps, self.packed = {}, 0, None

    def next_rate(self, options: Options) -> float:
        """The rate of the next epoch: schedule times damping."""
        rate = options.learning_rate
        if options.schedule == "invscaling":
            try:
                rate = rate / (self.samples + 1) ** options.power_t
            except OverflowError:  # the divisor is too large for a float
                rate = 0.0
        elif options.schedule == "adaptive" and self.rate is not None:
            rate = self.rate
        return rate * self.damping

    def add(self, epoch: Epoch, stack: Stack, options: Options) -> None:
        """Record a finished epoch and update the best loss or score."""
        history = self.history
        history.loss.append(epoch.loss)
        history.seconds.append(epoch.seconds)
        self.epochs += 1
        score = epoch.validation_score
        if score is not None:
            history.validation_score.append(score)
            improved = score >= self.best_score + options.tol
            if score > self.best_score:
                self.best_score = score
                if options.n_iter_no_change is not None:
                    self.best_weights = stack.snapshot()
        else:
            improved = epoch.loss <= self.best_loss - options.tol
            self.best_loss = min(self.best_loss, epoch.loss)
        self.no_improvement = 0 if improved else self.no_improvement + 1

    def stagnates(self, options: Options) -> bool:
        """Whether the run should end; 'adaptive' lowers the rate first, down to 1e-6."""
        if options.n_iter_no_change is None or self.no_improvement <= options.n_iter_no_change:
            return False
        if options.schedule != "adaptive":
            return True
        rate = options.learning_rate if self.rate is None else self.rate
        if rate <= 1e-6:
            return True
        self.rate, self.no_improvement = rate / 5.0, 0
        return False

    def trim(self, most: int) -> None:
        """Drop the oldest records, because `partial_fit` can be called any number of times."""
        for records in (self.history.loss, self.history.seconds):
            if len(records) >= 2 * most:
                del records[:-most]

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """The state as arrays and numbers, from which `from_arrays` restores it bit-identically."""
        arrays = {f"memory.{name}": array for name, array in self.memory.items()}
        arrays["loss"] = np.array(self.history.loss)
        arrays["validation_score"] = np.array(self.history.validation_score)
        arrays["seconds"] = np.array(self.history.seconds)
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return arrays, numbers | {"n_samples": self.history.n_samples}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], numbers: dict[str, Any]) -> Self:
        """Restore a state from the results of `to_arrays`."""
        lists = {name: arrays[name].tolist() for name in ("loss", "validation_score", "seconds")}
        memory = {
            name.removeprefix("memory."): array.copy()
            for name, array in arrays.items()
            if name.startswith("memory.")
        }
        history = History(numbers["n_samples"], **lists)
        return cls(history, memory=memory, **{name: numbers[name] for name in _NUMBERS})


_NUMBERS = (
    "epochs",
    "recoveries",
    "evaluations",
    "samples",
    "damping",
    "rate",
    "steps",
    "best_loss",
    "best_score",
    "no_improvement",
)
