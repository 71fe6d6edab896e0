"""Train a stack of layers: choose a stepper or L-BFGS, run the epochs, and watch for divergence.

Training has diverged if a value is not finite or the loss has grown. A loss is compared only with
the loss on the same samples at the start of the same call. Therefore new data in `partial_fit`, or
a warm start with other targets, does not count as divergence.

With `resume`, a lowered rate rises again, because the cause may have been a single batch. The more
calls have diverged, the more slowly it rises.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from quadric.core import Stack
from quadric.errors import DivergenceError
from quadric.training._run import (
    Epoch,
    FailedEpochError,
    History,
    Optimizer,
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
    samples: Samples,
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
    samples : Samples
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
        from quadric.training._lbfgs import run_lbfgs  # imports scipy.optimize

        with _suitable_threads(stack, len(samples)):
            run_lbfgs(stack, samples, options, state, validate=validate, callback=callback)
        return state.history

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
    watch: "Watch",
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
            stopped = state.add(
                loss, seconds, watch.stack, options, validate=validate, callback=callback
            )
            if stopped or state.stagnates(options):
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


# ---- divergence --------------------------------------------------------------------------

RECOVERIES = 12  # maximum number of times that the rate is lowered
LOWER_BY = 10.0
LOSS_ROWS = 1000  # maximum number of samples for the network's loss at the start and at the end
SMALL_LOSS = 1e-3  # the smallest reference loss, so that tiny losses may grow
STEP_GROWTH = 1.5  # of a loss that is already too large; tolerates the effect of momentum
RECENT = 0.1  # the share of the last call in the typical loss
LONGEST_WAIT = 128  # calls until a lowered rate is doubled, or until failures are forgotten


class Watch:
    """The divergence rule of one call to `train`.

    If ``options.growth`` is set, the loss of an epoch is compared with the larger of two losses at
    the start: the loss of the network on up to 1000 samples, and the loss on all samples if all
    logits were zero. The latter is replaced by its average over the last calls if that is larger,
    because a call with `resume` may have a single sample, whose target may be near zero.

    If a call with `resume` is a single step, its loss was computed before the step. Then the loss
    after the step is compared with it. A loss of more than `growth` times the loss for logits of
    zero must not grow further. Otherwise a rate that is too high could raise it a little with every
    call, and no call would count as diverged.

    Parameters
    ----------
    l2 : float
        The coefficient of the L2 penalty in the losses that the stepper reports.
    """

    def __init__(
        self, stack: Stack, samples: Samples, options: Options, state: TrainingState, l2: float
    ) -> None:
        self.stack, self.options, self.state, self.l2 = stack, options, state, l2
        self.reference, self.limit = np.nan, np.inf
        self.at_start = stack.snapshot() if options.recover else []
        self.in_a_row = 0
        self.single_step = options.resume and options.batch_size >= len(samples)
        self.damping_at_start = state.schedule.damping
        if options.growth is None:
            return
        self.weighted, weight = samples, samples.weight
        if weight is not None and options.by_weight and not options.per_sample:
            self.weighted = replace(samples, weight=weight / weight.mean(dtype=np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            zero = stack.mean_loss(None, samples.Y, self.weighted.weight)
        if np.isfinite(zero):
            state.schedule.typical_loss += RECENT * (zero - state.schedule.typical_loss)
        else:
            zero = 0.0
        self.zero = max(zero, state.schedule.typical_loss, SMALL_LOSS) + stack.penalty(l2)
        if not self.single_step:
            state.call.loss_at_start = self.current_loss()
            self._set_limit(state.call.loss_at_start, options.growth, options.growth)

    def current_loss(self) -> float:
        """Return the objective on up to 1000 evenly spaced samples."""
        n_samples = len(self.weighted)
        subset = self.weighted.take(np.arange(0, n_samples, -(-n_samples // LOSS_ROWS)))
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.stack.mean_loss(self.stack.logits(subset.X), subset.Y, subset.weight)
        return value + self.stack.penalty(self.l2)

    def _set_limit(self, loss_at_start: float, growth: float, zero_growth: float) -> None:
        start = loss_at_start if np.isfinite(loss_at_start) else 0.0
        self.reference = max(start, self.zero)
        self.limit = max(growth * start, zero_growth * self.zero)

    def check(self, loss: float) -> None:
        """Raise FailedEpochError if the loss of a finished epoch has grown too much."""
        if self.single_step and self.options.growth is not None:
            self._set_limit(loss, STEP_GROWTH, self.options.growth)
            loss = self.current_loss()
            if not np.isfinite(loss):
                raise FailedEpochError
        if loss > self.limit:
            raise FailedEpochError(loss=loss, reference=self.reference)
        self.in_a_row = 0

    def end_call(self) -> None:
        """Double a lowered rate after 2**(failed_calls - 1) good calls, at most LONGEST_WAIT.

        At the full rate, LONGEST_WAIT good calls reset `failed_calls`.
        """
        schedule = self.state.schedule
        if self.state.call.recoveries:
            schedule.failed_calls, schedule.good_calls = schedule.failed_calls + 1, 0
            return
        schedule.good_calls += 1
        wait = LONGEST_WAIT
        if schedule.damping < 1:
            wait = min(wait, 2 ** min(schedule.failed_calls - 1, wait))
        if schedule.good_calls >= wait:
            if schedule.damping == 1:
                schedule.failed_calls = 0
            schedule.damping, schedule.good_calls = min(1.0, 2 * schedule.damping), 0

    def recover(self, failure: FailedEpochError) -> None:
        """Lower the rate after a failed epoch has been undone, or raise DivergenceError."""
        state, call = self.state, self.state.call
        state.optimizer = Optimizer()  # the failed step has also corrupted its memory
        if not self.options.recover or call.recoveries == RECOVERIES:
            rate = state.next_rate(self.options)
            state.schedule.damping = self.damping_at_start  # the rate is not the cause
            raise DivergenceError(
                epoch=call.epochs,
                learning_rate=rate,
                recoveries=call.recoveries,
                history=state.history,
                **vars(failure),
            ) from None
        call.recoveries += 1
        self.in_a_row += 1
        if self.in_a_row > 1:  # the previous epoch was already diverging
            self.stack.restore(self.at_start)
        state.schedule.damping /= LOWER_BY
