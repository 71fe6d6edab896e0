"""Train a stack of layers: choose a stepper or L-BFGS, and run the epochs."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

import numpy as np

from quadric.core import Stack
from quadric.training._blocks import BlockSamples
from quadric.training._divergence import Watch
from quadric.training._lbfgs import run_lbfgs
from quadric.training._run import (
    Epoch,
    FailedEpochError,
    History,
    Options,
    Samples,
    TrainingState,
)
from quadric.training._steppers import MiniBatch, PerSample
from quadric.utils import one_blas_thread

WORTH_SEVERAL_THREADS = 1e8  # multiplications in one pass over a batch
# `run_epoch` trains for one epoch, `snapshot` saves the parameters, `restore` returns to the last
# snapshot, and `publish` brings the layers' arrays up to date.
Stepper: TypeAlias = MiniBatch | PerSample


def train(
    stack: Stack,
    samples: Samples | BlockSamples,
    options: Options,
    state: TrainingState,
    *,
    rng: np.random.Generator | np.random.RandomState | None = None,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> History:
    """Train the layers of a stack in place.

    Parameters
    ----------
    stack : Stack
    samples : Samples or BlockSamples
        Those in blocks are for 'lbfgs' only.
    options : Options
    state : TrainingState
        Updated in place. With ``options.resume``, the optimizer continues where the last call
        stopped.
    rng : Generator or RandomState
        Used to shuffle the samples; not needed for 'lbfgs'.
    validate : callable, optional
        Called after every epoch; returns the validation score.
    callback : callable(Epoch), optional
        Called after every epoch. Training stops if it returns a true value.

    Returns
    -------
    History
        ``state.history``.
    """
    state.begin(samples, options)
    if options.epochs == 0:
        return state.history
    if options.solver == "lbfgs":
        with _suitable_threads(stack, len(samples)):
            run_lbfgs(stack, samples, options, state, validate=validate, callback=callback)
        return state.history

    assert isinstance(samples, Samples)

    def make_stepper() -> Stepper:
        kind = PerSample if options.per_sample else MiniBatch
        return kind(stack, samples, options, state)

    assert rng is not None
    batch = 0 if options.per_sample else min(options.batch_size, len(samples))
    with _suitable_threads(stack, batch):
        stepper = make_stepper()
        watch = Watch(stack, samples, options, state, stepper.l2)
        run_epochs(stepper, make_stepper, watch, rng=rng, validate=validate, callback=callback)
    return state.history


def _suitable_threads(stack: Stack, batch: int) -> AbstractContextManager[None]:
    """Return a context that limits BLAS to one thread, unless a pass over a batch is expensive.

    An expensive pass gets all threads, in BLAS or in the compiled loops. A `batch` of 0 stands for
    the per-sample loop, which does not use BLAS; the setting is then left unchanged.

    NumPy and SciPy each ship their own BLAS. In a loop that calls both for a few milliseconds at a
    time, their threads compete for the processor. On two cores, this makes the loop six times
    slower.
    """
    several = batch == 0 or batch * stack.n_parameters > WORTH_SEVERAL_THREADS
    return stack.threads(batch) if several else one_blas_thread()


def run_epochs(
    stepper: Stepper,
    make_stepper: Callable[[], Stepper],
    watch: Watch,
    *,
    rng: np.random.Generator | np.random.RandomState,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> None:
    """Run the epochs of `watch.options` and record them in `watch.state`.

    `make_stepper` creates a new stepper after a divergence. Regardless of how training ends, the
    layers hold the parameters of a completed epoch. This is the best epoch if there is both a
    stopping rule and a validation score, and the last epoch otherwise.
    """
    options, state = watch.options, watch.state
    n_samples = state.history.n_samples
    in_order, published = np.arange(n_samples), True
    try:
        while state.call.epochs < options.epochs:
            order = rng.permutation(n_samples) if options.shuffle else in_order
            start, published = time.perf_counter(), False
            try:
                loss = stepper.run_epoch(order, state.next_rate(options))
                if watch.single_step:
                    stepper.publish()
                watch.check(loss)
            except BaseException as failure:
                stepper.restore()
                if not isinstance(failure, FailedEpochError):
                    raise
                stepper.publish()
                watch.recover(failure)
                stepper = make_stepper()
                continue
            stepper.snapshot()
            seconds = time.perf_counter() - start
            state.samples += state.call.per_epoch
            if validate is not None or callback is not None:
                stepper.publish()
                # do not publish again: that would overwrite a callback's changes to the network
                published = True
            state.add(loss, seconds, watch.stack, options, validate=validate, callback=callback)
            if state.history.stopped or state.stagnates(options):
                break
        else:
            state.history.exhausted = options.n_iter_no_change is not None
    finally:
        if not published:
            stepper.publish()
        if state.call.best_weights is not None:
            watch.stack.restore(state.call.best_weights)
            state.call.best_weights = None
    if options.resume:
        watch.end_call()
    if options.growth is not None and not options.resume:
        state.call.loss_at_end = watch.current_loss()
