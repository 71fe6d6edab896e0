"""The objective: the loss of a stack of layers, its gradient and the penalty.

Losses and gradients are sums over blocks of rows, added in the order of the rows. Memory is
therefore bounded by a block, and the result does not depend on who computes which block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from quadric.activations import get_activation
from quadric.arrays import Array, Matrix
from quadric.layers import Layer
from quadric.losses import Loss

__all__ = [
    "Samples",
    "accuracy",
    "add_l2",
    "copy_into",
    "gradients",
    "logits",
    "mean_loss",
    "penalty",
]

BLOCK_ROWS = 1536


@dataclass(frozen=True)
class Samples:
    """Checked training data: inputs, targets, sample weights and a constant input offset."""

    X: Matrix
    Y: Array
    weight: Array | None = None
    offset: Array | None = None

    def __len__(self) -> int:
        return len(self.Y)

    def take(self, rows: Array) -> Samples:
        """Some of the samples, the offset added to their inputs."""
        X = self.X[rows]
        if self.offset is not None:
            X = (X.toarray() if sparse.issparse(X) else X) + self.offset
        return Samples(X, self.Y[rows], None if self.weight is None else self.weight[rows])


def _blocks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n_rows))


def logits(
    layers: Sequence[Layer],
    activations: Sequence[str],
    X: Matrix,
    look: Callable[[Array], None] | None = None,
) -> Array:
    """z of the last layer for every row of X; `look` is called with the z of every layer."""
    out = np.empty((X.shape[0], layers[-1].n_outputs), dtype=layers[0].dtype)
    for rows in _blocks(X.shape[0]):
        a = X[rows]
        for l, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
            z = layer.forward(a)[0]
            if look is not None:
                look(z)
            if l < len(layers) - 1:
                a = get_activation(activation).function(z)
        out[rows] = z
    return out


def mean_loss(
    loss: Loss, activation: str, z: Array, Y: Array, weight: Array | None = None
) -> float:
    """The loss summed over outputs, times the sample weight, averaged over samples."""
    values = loss.value(activation, z, Y)
    if weight is not None:
        values = values * weight
    return float(values.mean(dtype=np.float64))


def accuracy(z: Array, Y: Array, weight: Array | None = None) -> float:
    """The share of rows whose largest logit is at the largest target (of one output: its side)."""
    if z.shape[1] == 1:
        right = (z[:, 0] > 0) == (Y[:, 0] > 0.5)
    else:
        right = z.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.average(right, weights=weight))


def penalty(layers: Sequence[Layer], l2: float) -> float:
    """l2/2 times the sum of squares of all weights."""
    return l2 * sum(layer.penalty() for layer in layers) if l2 else 0.0


def add_l2(layers: Sequence[Layer], grads: Sequence[Layer], l2: float) -> None:
    """Add l2 times the weights to their gradients, in place."""
    if l2:
        for layer, grad in zip(layers, grads, strict=True):
            held, into = layer.arrays(), grad.arrays()
            for name in layer.weights:
                into[name] += l2 * held[name]


def copy_into(layers: Sequence[Layer], source: Sequence[Layer]) -> None:
    """Copy the parameters of `source` into the arrays of `layers`."""
    for layer, other in zip(layers, source, strict=True):
        given = other.arrays()
        for name, array in layer.arrays().items():
            array[...] = given[name]


def gradients(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: Loss,
    X: Matrix,
    Y: Array,
    sample_weight: Array | None = None,
) -> tuple[float, list[Layer]]:
    """The mean loss over the batch, each sample times its weight, and its gradients."""
    n_rows = X.shape[0]
    total, sums = 0.0, None
    for rows in _blocks(n_rows):
        weight = None if sample_weight is None else sample_weight[rows]
        value, parts = _block_gradients(
            layers, activations, loss, Samples(X[rows], Y[rows], weight), n_rows
        )
        total += value
        if sums is None:
            sums = parts
        else:
            for into, part in zip(sums, parts, strict=True):
                held = into.arrays()
                for name, array in part.arrays().items():
                    held[name] += array
    assert sums is not None  # empty data is refused before this
    return total, sums


def _block_gradients(
    layers: Sequence[Layer], activations: Sequence[str], loss: Loss, block: Samples, n_rows: int
) -> tuple[float, list[Layer]]:
    """The block's share of the mean over `n_rows` rows, and its gradients."""
    caches, outputs, a = [], [], block.X
    for layer, activation in zip(layers, activations, strict=True):
        z, cache = layer.forward(a)
        caches.append(cache)
        if len(caches) < len(layers):
            a = get_activation(activation).function(z)
            outputs.append(a)
    values, delta = loss.value_and_delta(activations[-1], z, block.Y)
    if block.weight is not None:
        values = values * block.weight
        delta *= block.weight[:, None]
    delta /= delta.dtype.type(n_rows)

    grads: list[Layer] = []
    for l in range(len(layers) - 1, -1, -1):
        grad, d_input = layers[l].backward(delta, caches.pop(), inputs=l > 0)
        grads.append(grad)
        if d_input is not None:
            slope = get_activation(activations[l - 1]).slope
            assert slope is not None  # softmax stands last
            delta = d_input
            delta *= slope(outputs.pop())
    return float(values.sum(dtype=np.float64)) / n_rows, grads[::-1]
