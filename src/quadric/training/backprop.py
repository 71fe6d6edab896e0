"""Forward and backward through a stack of layers, for a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from quadric.activations import get_activation
from quadric.arrays import Array, Matrix
from quadric.layers import Layer
from quadric.losses import Loss

__all__ = ["add_l2", "gradients", "logits", "mean_loss", "penalty"]

# V, of shape (batch, m, n), is the largest thing a quadratic layer makes: rows are taken in
# chunks that keep it in the processor's cache, and any number of rows within memory.
CHUNK_BYTES = 2 * 2**20


def _chunks(layers: Sequence[Layer], n_rows: int) -> Iterator[slice]:
    largest = max((layer.W.nbytes for layer in layers if layer.kind == "quadratic"), default=0)
    rows = max(1, CHUNK_BYTES // largest) if largest else max(1, n_rows)
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def logits(
    layers: Sequence[Layer],
    activations: Sequence[str],
    X: Matrix,
    look_at_first: Callable[[Array], None] | None = None,
) -> Array:
    """z of the last layer for every row of X; `look_at_first` is shown the first layer's z."""
    out = np.empty((X.shape[0], layers[-1].n_outputs), dtype=layers[0].dtype)
    for rows in _chunks(layers, X.shape[0]):
        a = X[rows]
        for l, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
            z = layer.forward(a)[0]
            if l == 0 and look_at_first is not None:
                look_at_first(z)
            if l < len(layers) - 1:
                a = get_activation(activation).function(z)
        out[rows] = z
    return out


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


def mean_loss(loss: Loss, activation: str, z: Array, Y: Array) -> float:
    """The loss summed over outputs and averaged over samples."""
    return float(loss.value(activation, z, Y).mean(dtype=np.float64))


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
    for rows in _chunks(layers, n_rows):
        weight = None if sample_weight is None else sample_weight[rows]
        value, parts = _gradients_of_chunk(
            layers, activations, loss, X[rows], Y[rows], weight, n_rows
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


def _gradients_of_chunk(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: Loss,
    X: Matrix,
    Y: Array,
    sample_weight: Array | None,
    n_rows: int,
) -> tuple[float, list[Layer]]:
    caches, outputs, a = [], [], X
    for layer, activation in zip(layers, activations, strict=True):
        z, cache = layer.forward(a)
        caches.append(cache)
        if len(caches) < len(layers):
            a = get_activation(activation).function(z)
            outputs.append(a)
    values, delta = loss.value_and_delta(activations[-1], z, Y)
    if sample_weight is not None:
        values = values * sample_weight
        delta = delta * sample_weight[:, None]
    delta = delta / delta.dtype.type(n_rows)

    grads: list[Layer] = []
    for l in range(len(layers) - 1, -1, -1):
        grad, d_input = layers[l].backward(delta, caches.pop(), inputs=l > 0)
        grads.append(grad)
        if d_input is not None:
            slope = get_activation(activations[l - 1]).slope
            assert slope is not None  # softmax stands last
            delta = d_input * slope(outputs.pop())
    return float(values.sum(dtype=np.float64)) / n_rows, grads[::-1]
