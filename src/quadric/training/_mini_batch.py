"""Epochs of mini-batches: the layers' own equations."""

from collections.abc import Sequence

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Layer
from quadric.core._losses import Loss
from quadric.training import _objective as objective
from quadric.training._divergence import NonFiniteError
from quadric.training._objective import Samples
from quadric.training._optimizers import Optimizer
from quadric.training._options import Options


class MiniBatch:
    """A stepper that updates the layers' own arrays, one batch at a time.

    The gradient of a batch is the sum over its samples, each times its weight, divided by their
    number, and `l2` counts in proportion to their mean weight: a weight is the size of a step.
    With ``by_weight`` the sum and the penalty are divided by the batch's sum of weights instead,
    as scikit-learn's networks do it.

    Attributes
    ----------
    l2 : float
        The factor of the penalty in the loss that `run_epoch` returns.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        activations: Sequence[str],
        loss: Loss,
        samples: Samples,
        options: Options,
        optimizer: Optimizer,
    ) -> None:
        self.layers, self.activations, self.loss = layers, activations, loss
        self.samples, self.options, self.optimizer = samples, options, optimizer
        if options.by_weight:
            self.l2 = options.l2 / min(options.batch_size, len(samples))
        else:
            self.l2 = options.l2 * (1.0 if samples.weight is None else float(samples.weight.mean()))
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = [layer.copy() for layer in self.layers]

    def restore(self) -> None:
        objective.copy_into(self.layers, self.saved)

    def publish(self) -> None:
        """Nothing to do: the layers themselves are trained."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """One step for each batch of `order`; returns the mean loss."""
        total, size = 0.0, self.options.batch_size
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                total += self._step(rows, rate) * len(rows)
        if not all(np.isfinite(a).all() for layer in self.layers for a in layer.arrays().values()):
            raise NonFiniteError(sample=None, layer=None)
        return total / len(order) + objective.penalty(self.layers, self.l2)

    def _step(self, rows: Array, rate: float) -> float:
        """One update; returns the mean loss of the batch before it."""
        batch, l2 = self.samples.take(rows), self.options.l2
        weight, mean_weight = batch.weight, 1.0
        if weight is not None:
            mean_weight = float(weight.mean(dtype=np.float64))
            if mean_weight == 0:
                return 0.0
        if self.options.by_weight:
            weight = None if weight is None else weight / weight.dtype.type(mean_weight)
            l2 /= mean_weight * len(rows)
        else:
            l2 *= mean_weight
        value, grads = objective.gradients(
            self.layers, self.activations, self.loss, batch.X, batch.Y, weight
        )
        if not np.isfinite(value):
            raise NonFiniteError(sample=int(rows[0]) if len(rows) == 1 else None, layer=None)
        self._clip(grads)
        objective.add_l2(self.layers, grads, l2)
        self.optimizer.step(self.layers, grads, rate)
        return value

    def _clip(self, grads: Sequence[Layer]) -> None:
        if self.options.clip is None:
            return
        norm = np.sqrt(sum(2 * g.penalty() + _squares_of_biases(g) for g in grads))
        if norm > self.options.clip:
            for grad in grads:
                for array in grad.arrays().values():
                    array *= array.dtype.type(self.options.clip / norm)


def _squares_of_biases(grad: Layer) -> float:
    arrays = grad.arrays()
    return sum(
        float(np.vdot(array, array)) for name, array in arrays.items() if name not in grad.weights
    )
