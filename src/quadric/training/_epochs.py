"""The epochs: order, learning rate, validation, stopping, records, and failures."""

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from quadric._utils.arrays import Array
from quadric.training._divergence import LossGrewError, NonFiniteError, Watch
from quadric.training._objective import copy_into
from quadric.training._state import Epoch


class Stepper(Protocol):
    """Runs an epoch, and can undo it."""

    @property
    def l2(self) -> float:
        """The factor of the penalty in the losses that `run_epoch` returns."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """Visit the samples in that order; returns the mean loss, penalty included."""

    def snapshot(self) -> None:
        """Keep the parameters as they are now."""

    def restore(self) -> None:
        """Return to the last snapshot."""

    def publish(self) -> None:
        """Bring the layers' arrays up to date."""


def run_epochs(
    stepper: Stepper,
    make_stepper: Callable[[], Stepper],
    watch: Watch,
    *,
    rng: np.random.Generator | np.random.RandomState,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> None:
    """Train the layers that `watch` looks at, and record the epochs in its state.

    `make_stepper` makes another stepper after a divergence. However training ends, the layers are
    left as they were after a finished epoch: the best one if there is a stopping rule and a
    validation score, the last one otherwise.
    """
    layers, options, state = watch.layers, watch.options, watch.state
    n_samples = state.history.n_samples
    in_order, published = np.arange(n_samples), True
    try:
        while state.epochs < options.epochs:
            order = rng.permutation(n_samples) if options.shuffle else in_order
            start, published = time.perf_counter(), False
            try:
                loss = stepper.run_epoch(order, state.next_rate(options))
                watch.check(loss)
            except BaseException as failure:
                stepper.restore()
                if not isinstance(failure, (NonFiniteError, LossGrewError)):
                    raise
                stepper.publish()
                watch.recover(failure)
                stepper = make_stepper()
                continue
            stepper.snapshot()
            seconds = time.perf_counter() - start
            state.samples += n_samples
            score = None
            if validate is not None or callback is not None:
                stepper.publish()
                published = True  # what a callback writes into the network then stays
            if validate is not None:
                score = validate()
            epoch = Epoch(state.epochs, loss, score, seconds)
            state.add(epoch, layers, options)
            if callback is not None and callback(epoch):
                state.history.stopped = True
                break
            if state.stagnates(options):
                break
        else:
            state.history.exhausted = options.n_iter_no_change is not None
    finally:
        if not published:
            stepper.publish()
        if state.best_weights is not None:
            copy_into(layers, state.best_weights)
            state.best_weights = None
    if options.resume and not state.recoveries:
        state.damping = min(1.0, 2 * state.damping)
    if options.growth is not None and not options.resume:
        state.loss_at_end = watch.current_loss()
