"""Errors that users may want to catch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadric.training.history import History

__all__ = ["DivergenceError"]


class DivergenceError(ArithmeticError):
    """Training met an infinite or undefined number; the network is as it was before that epoch.

    Attributes
    ----------
    epoch : int
        The epoch that failed, counted from 0.
    sample : int or None
        The row of X at which it was seen, where that is known.
    layer : int or None
        The layer whose pre-activation was not finite, counted from 0.
    learning_rate : float
        The rate of that epoch.
    history : History
        The epochs that were finished.
    """

    def __init__(
        self,
        *,
        epoch: int,
        sample: int | None,
        layer: int | None,
        learning_rate: float,
        history: History,
    ) -> None:
        self.epoch, self.sample, self.layer = epoch, sample, layer
        self.learning_rate, self.history = learning_rate, history
        place = f"epoch {epoch}"
        if sample is not None:
            place += f", sample {sample}"
        if layer is not None:
            place += f", layer {layer}"
        super().__init__(
            f"training diverged: a value was not finite at {place} "
            f"(learning_rate={learning_rate:g}). The network is as it was after "
            f"{epoch} finished epoch{'' if epoch == 1 else 's'}. Try a smaller learning_rate, "
            "features scaled to about unit size, or gradient clipping (clip=1.0)."
        )
