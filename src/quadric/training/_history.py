"""The records of finished epochs."""

from dataclasses import dataclass, field

from quadric.utils import counted, notebook


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

    @property
    def samples_per_second(self) -> float:
        """Samples processed per second of training; 0.0 before the first epoch."""
        seconds = sum(self.seconds)
        return self.n_samples * self.epochs / seconds if seconds > 0 else 0.0

    def _repr_html_(self) -> str:
        seconds = f" in {sum(self.seconds):.3g} s" if self.seconds else ""
        losses = f", loss {self.loss[0]:.4g} to {self.loss[-1]:.4g}" if self.loss else ""
        size = f"{counted(self.epochs, 'epoch')} of {counted(self.n_samples, 'sample')}"
        return (
            notebook.paragraph(f"{size}{seconds}{losses}")
            + notebook.curve(self.loss, "loss of each epoch")
            + notebook.curve(self.validation_score, "validation score of each epoch")
        )
