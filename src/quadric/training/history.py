"""What happened during training."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Epoch", "History"]


@dataclass(frozen=True)
class Epoch:
    """One finished epoch, as given to a callback.

    Attributes
    ----------
    index : int
        Counted from 0.
    loss : float
        The mean loss of the samples, each as it was met, plus the penalty at the epoch's end.
    validation_score : float or None
        The score on the validation data, where some were given.
    seconds : float
        How long the epoch took, validation apart.
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
        How many samples an epoch visits.
    stopped : bool
        Whether a callback asked to stop.
    exhausted : bool
        Whether 'lbfgs' used up its iterations or evaluations before it had converged.
    """

    n_samples: int
    loss: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stopped: bool = False
    exhausted: bool = False

    @property
    def epochs(self) -> int:
        """How many epochs were finished."""
        return len(self.loss)

    @property
    def samples_per_second(self) -> float:
        """Samples visited for each second of training; 0.0 before the first epoch."""
        seconds = sum(self.seconds)
        return self.n_samples * self.epochs / seconds if seconds > 0 else 0.0

    def append(self, epoch: Epoch) -> None:
        self.loss.append(epoch.loss)
        self.seconds.append(epoch.seconds)
        if epoch.validation_score is not None:
            self.validation_score.append(epoch.validation_score)
