"""Errors that users may want to catch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.training.history import History

__all__ = [
    "DatasetError",
    "DatasetUnavailableError",
    "DivergenceError",
    "ModelFileError",
    "StoreError",
    "TableError",
]


class DatasetError(RuntimeError):
    """A data set is not to be had, or a file of it is not what it should be."""


class DatasetUnavailableError(DatasetError):
    """A data set is not here, and no source has it."""


class DivergenceError(ArithmeticError):
    """Training met an infinite or undefined number; the network is as it was before that epoch.

    Attributes
    ----------
    epoch : int
        The epoch that failed, counted from 0.
    sample : int or None
        The row of X at which it was seen (the step before may have caused it), where known.
    layer : int or None
        The layer whose pre-activation was not finite, counted from 0.
    learning_rate : float or None
        The rate of that epoch; None for a solver without one (lbfgs).
    history : History
        The epochs that were finished.
    """

    def __init__(
        self,
        *,
        epoch: int,
        sample: int | None,
        layer: int | None,
        learning_rate: float | None,
        history: History,
    ) -> None:
        self.epoch, self.sample, self.layer = epoch, sample, layer
        self.learning_rate, self.history = learning_rate, history
        place = f"epoch {epoch}"
        if sample is not None:
            place += f", sample {sample}"
        if layer is not None:
            place += f", layer {layer}"
        rate, advice = "", "features scaled to about unit size, or a larger penalty."
        if learning_rate is not None:
            rate = f" (learning_rate={learning_rate:g})"
            advice = (
                "a smaller learning_rate, features scaled to about unit size, or gradient "
                "clipping (clip=1.0)."
            )
        super().__init__(
            f"training diverged: a value was not finite at {place}{rate}. The network is as it "
            f"was after {epoch} finished epoch{'' if epoch == 1 else 's'}. Try {advice}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # made of keywords: without this it could not travel between processes
        state = {name: getattr(self, name) for name in _FIELDS}
        return _rebuild, (state,)


class ModelFileError(ValueError):
    """A file holds no model that can be loaded, or a model holds what a file does not keep."""


class StoreError(Exception):
    """A store of finished runs cannot be used: it is no store, is locked, or cannot be written."""


class TableError(ValueError):
    """A table cannot be read, or cannot be used for what is asked: one line that says why."""


_FIELDS = ("epoch", "sample", "layer", "learning_rate", "history")


def _rebuild(state: dict[str, Any]) -> DivergenceError:
    return DivergenceError(**state)
