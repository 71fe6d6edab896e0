"""Errors that users may want to catch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.training._state import History

__all__ = [
    "DatasetError",
    "DatasetUnavailableError",
    "DivergenceError",
    "MemoryLimitError",
    "ModelFileError",
    "StoreError",
    "TableError",
]


class DatasetError(RuntimeError):
    """A data set is not to be had, or a file of it is not what it should be."""


class DatasetUnavailableError(DatasetError):
    """A data set is not here, and no source has it."""


class DivergenceError(ArithmeticError, ValueError):
    """Training diverged; the network was restored to its last good state.

    Attributes
    ----------
    epoch : int
        The epoch that failed, counted from 0.
    sample : int or None
        The row of X at which a value was not finite (the step before may have caused it), if known.
    layer : int or None
        The layer whose pre-activation was not finite, counted from 0, if known.
    loss, reference : float or None
        The mean loss of the failed epoch and the loss of the same samples at the start, if all
        values were finite but the loss grew.
    learning_rate : float or None
        The rate of that epoch; None for a solver without one (lbfgs).
    recoveries : int
        How often the rate was lowered before.
    history : History
        The epochs that were finished.
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
        place = f"epoch {epoch}"
        if sample is not None:
            place += f", sample {sample}"
        if layer is not None:
            place += f", layer {layer}"
        if loss is None:
            what = f"a value was not finite at {place}"
        else:
            what = f"the loss grew from {reference:.4g} at the start to {loss:.4g} at {place}"
        advice = "features scaled to about unit size or a larger penalty"
        if learning_rate is not None:
            what += f" (learning_rate={learning_rate:g}"
            what += f", lowered {recoveries} times before)" if recoveries else ")"
            advice = (
                "a smaller learning rate, features scaled to about unit size or, in Network.fit, "
                "gradient clipping (clip=1.0)"
            )
        super().__init__(
            f"training diverged: {what}. The network was restored to its last good state. "
            f"Try {advice}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # made of keywords: without this it could not travel between processes
        state = {name: getattr(self, name) for name in _FIELDS}
        return _rebuild, (state,)


class MemoryLimitError(MemoryError):
    """More memory would be needed than the limit allows; raised before it is allocated.

    Attributes
    ----------
    fact, ways : str
        What needs how much, and ways out.
    needed, limit : int
        In bytes; what is needed is an estimate.
    """

    def __init__(self, fact: str, ways: str, *, needed: int, limit: int) -> None:
        super().__init__(f"{fact} {ways}")
        self.fact, self.ways, self.needed, self.limit = fact, ways, needed, limit

    def __reduce__(self) -> tuple[Any, ...]:
        return _limit_error, (self.fact, self.ways, self.needed, self.limit)


class ModelFileError(ValueError):
    """A file holds no model that can be loaded, or a model holds what a file does not keep."""


class StoreError(Exception):
    """A store of finished runs cannot be used: no store, damaged, locked, or not writable."""


class TableError(ValueError):
    """A table cannot be read, or cannot be used for what is asked: one line that says why."""


_FIELDS = (
    "epoch",
    "history",
    "sample",
    "layer",
    "loss",
    "reference",
    "learning_rate",
    "recoveries",
)


def _limit_error(fact: str, ways: str, needed: int, limit: int) -> MemoryLimitError:
    return MemoryLimitError(fact, ways, needed=needed, limit=limit)


def _rebuild(state: dict[str, Any]) -> DivergenceError:
    return DivergenceError(**state)
