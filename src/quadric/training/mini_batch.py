"""Epochs of mini-batches: the layers' own equations, through BLAS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from quadric.arrays import Array, Matrix
from quadric.layers import Layer
from quadric.losses import Loss
from quadric.training import backprop
from quadric.training.loop import NonFiniteError
from quadric.training.optimizers import Optimizer

__all__ = ["MiniBatch"]


class MiniBatch:
    """A stepper that updates the layers' own arrays, one batch at a time.

    The gradient of a batch is the sum over its samples, each times its weight, divided by their
    number, and `l2` counts in proportion to their mean weight: a weight is the size of a step.
    With ``by_weight`` the sum and the penalty are divided by the batch's sum of weights instead,
    as scikit-learn's networks do it.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        activations: Sequence[str],
        loss: Loss,
        X: Matrix,
        Y: Array,
        *,
        optimizer: Optimizer,
        batch_size: int,
        l2: float,
        clip: float | None,
        sample_weight: Array | None,
        offset: Array | None,
        by_weight: bool = False,
    ) -> None:
        self.layers, self.activations, self.loss = layers, activations, loss
        self.by_weight = by_weight
        self.X, self.Y, self.sample_weight, self.offset = X, Y, sample_weight, offset
        self.optimizer, self.batch_size, self.l2, self.clip = optimizer, batch_size, l2, clip
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = [layer.copy() for layer in self.layers]

    def restore(self) -> None:
        for layer, saved in zip(self.layers, self.saved, strict=True):
            arrays = saved.arrays()
            for name, array in layer.arrays().items():
                array[...] = arrays[name]

    def publish(self) -> None:
        """Nothing to do: the layers themselves are trained."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """One step for each batch of `order`; returns the mean loss."""
        total = 0.0
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            weights = None if self.sample_weight is None else self.sample_weight[rows]
            l2, mean_weight = self.l2, 1.0
            if weights is not None:
                mean_weight = float(weights.mean(dtype=np.float64))
                if mean_weight == 0:
                    continue
            if self.by_weight:
                weights = None if weights is None else weights / weights.dtype.type(mean_weight)
                l2 /= mean_weight * len(rows)
            else:
                l2 *= mean_weight
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                value, grads = backprop.gradients(
                    self.layers,
                    self.activations,
                    self.loss,
                    self._batch(rows),
                    self.Y[rows],
                    weights,
                )
                if not np.isfinite(value):
                    raise NonFiniteError(
                        sample=int(rows[0]) if len(rows) == 1 else None, layer=None
                    )
                self._clip(grads)
                backprop.add_l2(self.layers, grads, l2)
                self.optimizer.step(self.layers, grads, rate)
            total += value * len(rows)
        if not all(np.isfinite(a).all() for layer in self.layers for a in layer.arrays().values()):
            raise NonFiniteError(sample=None, layer=None)
        if self.by_weight:
            l2 = self.l2 / min(self.batch_size, len(order))
        else:
            l2 = self.l2 * (1.0 if self.sample_weight is None else float(self.sample_weight.mean()))
        return total / len(order) + backprop.penalty(self.layers, l2)

    def _batch(self, rows: Array) -> Matrix:
        batch = self.X[rows]
        if self.offset is None:
            return batch
        return (batch.toarray() if sparse.issparse(batch) else batch) + self.offset

    def _clip(self, grads: Sequence[Layer]) -> None:
        if self.clip is None:
            return
        norm = np.sqrt(sum(2 * g.penalty() + _squares_of_biases(g) for g in grads))
        if norm > self.clip:
            for grad in grads:
                for array in grad.arrays().values():
                    array *= array.dtype.type(self.clip / norm)


def _squares_of_biases(grad: Layer) -> float:
    arrays = grad.arrays()
    return sum(
        float(np.vdot(array, array)) for name, array in arrays.items() if name not in grad.weights
    )
