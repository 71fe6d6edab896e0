"""The epochs: order, learning rate, validation, callbacks, and what happens when one fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from quadric.arrays import Array
from quadric.errors import DivergenceError
from quadric.training.history import Epoch, History

__all__ = ["NonFiniteError", "Stepper", "run_epochs"]


class NonFiniteError(Exception):
    """A stepper met a number that is not finite."""

    def __init__(self, *, sample: int | None, layer: int | None) -> None:
        super().__init__()
        self.sample, self.layer = sample, layer


class Stepper(Protocol):
    """Something that can run an epoch, and take it back."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """Visit the samples in that order; returns the mean loss, penalty included."""

    def snapshot(self) -> None:
        """Keep the parameters as they are now."""

    def restore(self) -> None:
        """Go back to the last snapshot."""

    def publish(self) -> None:
        """Bring the layers' arrays up to date."""


def run_epochs(
    stepper: Stepper,
    *,
    n_samples: int,
    epochs: int,
    learning_rate: float,
    power_t: float,
    shuffle: bool,
    rng: np.random.Generator,
    validate: Callable[[], float] | None,
    callback: Callable[[Epoch], object] | None,
) -> History:
    """Run the epochs; whatever ends them, the layers are left as after the last finished one.

    The rate of an epoch is ``learning_rate / (samples seen + 1)**power_t``; power_t = 0 keeps
    it constant.
    """
    history = History(n_samples=n_samples)
    in_order = np.arange(n_samples)
    published = False
    for index in range(epochs):
        rate = learning_rate / (index * n_samples + 1) ** power_t
        order = rng.permutation(n_samples) if shuffle else in_order
        start = time.perf_counter()
        try:
            loss = stepper.run_epoch(order, rate)
        except BaseException as failure:
            stepper.restore()
            stepper.publish()
            if not isinstance(failure, NonFiniteError):
                raise
            raise DivergenceError(
                epoch=index,
                sample=failure.sample,
                layer=failure.layer,
                learning_rate=rate,
                history=history,
            ) from None
        stepper.snapshot()
        seconds = time.perf_counter() - start
        score = None
        published = validate is not None or callback is not None
        if published:
            stepper.publish()
        if validate is not None:
            score = validate()
        epoch = Epoch(index=index, loss=loss, validation_score=score, seconds=seconds)
        history.append(epoch)
        if callback is not None and callback(epoch):
            history.stopped = True
            break
    if not published:  # else a callback that stops may leave the network as it wants it
        stepper.publish()
    return history
