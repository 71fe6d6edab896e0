"""The divergence rule: training has diverged if a value is not finite or the loss has grown.

A loss is compared only with the loss on the same samples at the start of the same call. Therefore
new data in `partial_fit`, or a warm start with other targets, does not count as divergence.

With `resume`, a lowered rate rises again, because the cause may have been a single batch. The more
calls have diverged, the more slowly it rises.
"""

from dataclasses import replace

import numpy as np

from quadric.core import Stack
from quadric.errors import DivergenceError
from quadric.training._run import FailedEpochError, Optimizer, Options, Samples, TrainingState

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
