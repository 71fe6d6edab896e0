"""Divergence rule: training has diverged if a value is not finite or the loss has grown.

A loss is compared only with the loss on the same samples at the start of the same call. Therefore
new data in `partial_fit`, or a warm start with other targets, does not count as divergence.
"""

import numpy as np

from quadric.core import Stack
from quadric.errors import DivergenceError
from quadric.training._run import FailedEpochError, Options, Samples, TrainingState

RECOVERIES = 12  # maximum number of times that the rate is lowered
LOWER_BY = 10.0
MOST_ROWS = 1000  # maximum number of samples for the network's loss at the start and at the end
SMALL_LOSS = 1e-3  # the smallest reference loss, so that tiny losses may grow


class Watch:
    """The divergence rule of one call to `train`.

    If ``options.growth`` is set, the loss of an epoch is compared with the larger of two losses at
    the start: the loss of the network on up to 1000 samples, and the loss on all samples if all
    logits were zero.

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
        if options.growth is None:
            return
        weight = samples.weight
        if weight is not None and options.by_weight and not options.per_sample:
            weight = weight / weight.mean(dtype=np.float64)
        self.weighted = Samples(samples.X, samples.Y, weight, samples.offset)
        state.loss_at_start = self.current_loss()
        with np.errstate(over="ignore", invalid="ignore"):
            zero = stack.mean_loss(None, samples.Y, weight)
        losses = [state.loss_at_start, zero + stack.penalty(l2), SMALL_LOSS]
        self.reference = max(value for value in losses if np.isfinite(value))
        self.limit = options.growth * self.reference

    def current_loss(self) -> float:
        """Return the objective on up to 1000 evenly spaced samples."""
        n_samples = len(self.weighted)
        some = self.weighted.take(np.arange(0, n_samples, -(-n_samples // MOST_ROWS)))
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.stack.mean_loss(self.stack.logits(some.X), some.Y, some.weight)
        return value + self.stack.penalty(self.l2)

    def check(self, loss: float) -> None:
        """Raise FailedEpochError if the loss of a finished epoch has grown too much."""
        if loss > self.limit:
            raise FailedEpochError(loss=loss, reference=self.reference)
        self.in_a_row = 0

    def recover(self, failure: FailedEpochError) -> None:
        """Lower the rate after a failed epoch has been undone, or raise DivergenceError."""
        state = self.state
        state.forget()  # the failed step has also corrupted the optimizer's memory
        if not self.options.recover or state.recoveries == RECOVERIES:
            raise DivergenceError(
                epoch=state.epochs,
                learning_rate=state.next_rate(self.options),
                recoveries=state.recoveries,
                history=state.history,
                **vars(failure),
            ) from None
        state.recoveries += 1
        self.in_a_row += 1
        if self.in_a_row > 1:  # the previous epoch was already diverging
            self.stack.restore(self.at_start)
        state.damping /= LOWER_BY
