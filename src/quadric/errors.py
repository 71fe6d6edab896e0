"""Exceptions that users may want to catch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.training import History

__all__ = [
    "DatasetError",
    "DatasetUnavailableError",
    "DivergenceError",
    "MemoryLimitError",
    "ModelFileError",
    "StoreError",
    "TableError",
]


class _Picklable:
    """Make an error with attributes picklable, so that it can be sent between processes."""

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        # without `__init__`, whose arguments are not those of the exception
        return type(self).__new__, (type(self), *self.args), self.__dict__


class DatasetError(RuntimeError):
    """A data set cannot be loaded, or one of its files is invalid."""


class DatasetUnavailableError(DatasetError):
    """A data set is not stored locally and cannot be downloaded from any source."""


class DivergenceError(_Picklable, ArithmeticError, ValueError):
    """Training diverged; the network was restored to its last good state.

    Parameters
    ----------
    epoch : int
        Epoch that failed, counted from 0.
    history : History
        Completed epochs.
    sample : int or None
        Row of X at which a value was not finite, if known. The cause may be the preceding step.
    layer : int or None
        Layer whose pre-activation was not finite, counted from 0, if known.
    loss, reference : float or None
        Mean loss of the failed epoch, and the loss on the same samples at the start. None unless
        all values were finite but the loss grew.
    learning_rate : float or None
        Learning rate of that epoch; None for a solver without one ('lbfgs').
    recoveries : int
        Number of times the learning rate had already been lowered.

    Attributes
    ----------
    epoch, history, sample, layer, loss, reference, learning_rate, recoveries
        The parameters.
    """

    def __init__(
        self,
        *,
        epoch: int,
        history: History,
        sample: int | None = None,
        layer: int | None = None,
        loss: float | None = None,
        reference: float | None = None,
        learning_rate: float | None = None,
        recoveries: int = 0,
    ) -> None:
        self.epoch, self.sample, self.layer = epoch, sample, layer
        self.loss, self.reference = loss, reference
        self.learning_rate, self.recoveries, self.history = learning_rate, recoveries, history
        places = {"epoch": epoch, "sample": sample, "layer": layer}
        place = ", ".join(f"{name} {i}" for name, i in places.items() if i is not None)
        cause = ""
        if loss is None:
            event = f"a value was not finite at {place}"
            # the words of scikit-learn's networks, which programs may look for
            cause = (
                " Solver produced non-finite parameter weights. The input data may contain large "
                "values and need to be preprocessed."
            )
        else:
            event = f"the loss grew from {reference:.4g} at the start to {loss:.4g} at {place}"
        advice = "features scaled to about unit size or a larger penalty"
        if learning_rate is not None:
            event += f" (learning_rate={learning_rate:g}"
            event += f", lowered {recoveries} times before)" if recoveries else ")"
            advice = (
                "a smaller learning rate, features scaled to about unit size or, in Network.fit, "
                "gradient clipping (clip=1.0)"
            )
        super().__init__(
            f"training diverged: {event}.{cause} The network was restored to its last good state. "
            f"Try {advice}."
        )


class MemoryLimitError(_Picklable, MemoryError):
    """More memory is needed than the limit allows.

    Raised before the memory is allocated.

    Parameters
    ----------
    fact : str
        What needs the memory, and how much.
    ways : str
        Ways to reduce the memory needed.
    needed : int
        Estimated number of bytes needed.
    limit : int
        Limit in bytes.

    Attributes
    ----------
    fact, ways, needed, limit
        The parameters.
    """

    def __init__(self, fact: str, ways: str, *, needed: int, limit: int) -> None:
        super().__init__(f"{fact} {ways}")
        self.fact, self.ways, self.needed, self.limit = fact, ways, needed, limit


class ModelFileError(ValueError):
    """A file cannot be loaded as a model, or a model cannot be saved to a file."""


def expect(condition: object, problem: str | Exception) -> None:
    """Raise the error unless the condition is true; a text is the problem of a ModelFileError.

    Only for use inside the library.
    """
    if not condition:
        raise problem if isinstance(problem, Exception) else ModelFileError(problem)


class StoreError(Exception):
    """A file is not a store of finished runs, or the store is damaged, locked or read-only."""


class TableError(ValueError):
    """A table cannot be read or is not suitable for the task.

    Attributes
    ----------
    value : Any
        The value that cannot be read, if that is the reason.
    """

    value: Any = None
