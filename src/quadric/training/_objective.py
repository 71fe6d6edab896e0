"""The objective: the loss of a stack of layers, its gradient and the penalty.

Losses and gradients are sums over blocks of rows, added in the order of the rows. Memory is
therefore bounded by a block, and the result does not depend on who computes which block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from quadric._utils.arrays import Array, Matrix
from quadric.core._activations import get_activation
from quadric.core._layers import Layer
from quadric.core._losses import Loss

BLOCK_ROWS = 1536
BLOCK_NUMBERS = 2**21  # in one array of a block: fewer rows where layers have thousands of neurons


def squared(X: Matrix) -> Matrix:
    """The squares of a CSR matrix's entries; SciPy's own product takes three times the memory."""
    return sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)


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


def widest(layers: Iterable[tuple[str, int, int]]) -> int:
    """The most numbers per row in an array that layers of (kind, inputs, neurons) make."""
    # a quadratic layer makes sparse inputs dense
    return max(max(n if kind == "quadratic" else 1, m) for kind, n, m in layers)


def block_rows(width: int) -> int:
    """How many rows of so many numbers are computed at once."""
    return max(16, min(BLOCK_ROWS, BLOCK_NUMBERS // width))


def _blocks(n_rows: int, width: int) -> Iterator[slice]:
    size = block_rows(width)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def _blocks_for(layers: Sequence[Layer], n_rows: int) -> Iterator[slice]:
    return _blocks(n_rows, widest((one.kind, one.n_inputs, one.n_outputs) for one in layers))


def logit_blocks(
    layers: Sequence[Layer], activations: Sequence[str], X: Matrix, *, finite: bool = True
) -> Iterator[tuple[slice, Array]]:
    """Rows, and z of the last layer for them, block by block.

    With `finite`, ValueError where a z of any layer is not finite: further on it could become NaN,
    or a probability.
    """
    dtype = layers[0].dtype
    for rows in _blocks_for(layers, X.shape[0]):
        with np.errstate(over="ignore", invalid="ignore"):
            a = X[rows] if sparse.issparse(X) else np.ascontiguousarray(X[rows], dtype=dtype)
            for l, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
                z = layer.forward(a)[0]
                if finite:
                    _check_finite(z, l, X[rows])
                if l < len(layers) - 1:
                    a = get_activation(activation).function(z)
        yield rows, z


def _check_finite(z: Array, l: int, X: Matrix) -> None:
    if not np.isfinite(z).all():
        raise ValueError(
            f"X holds values so large (up to {abs(X).max():g}) that a neuron of layer {l} is not "
            f"finite in {z.dtype}. Scale the features as they were scaled in training."
        )


def logits(
    layers: Sequence[Layer], activations: Sequence[str], X: Matrix, *, finite: bool = False
) -> Array:
    """z of the last layer for every row of X; see `logit_blocks`."""
    out = np.empty((X.shape[0], layers[-1].n_outputs), dtype=layers[0].dtype)
    for rows, z in logit_blocks(layers, activations, X, finite=finite):
        out[rows] = z
    return out


def mean_loss(
    loss: Loss, activation: str, z: Array | None, Y: Array, weight: Array | None = None
) -> float:
    """The loss summed over outputs, times the sample weight, averaged; None stands for z = 0."""
    values = np.empty(len(Y), dtype=Y.dtype)
    for rows in _blocks(*Y.shape):
        given = np.zeros_like(Y[rows]) if z is None else z[rows]
        values[rows] = loss.value(activation, given, Y[rows])
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
    *,
    finite: bool = False,
) -> tuple[float, list[Layer]]:
    """The mean loss over the batch, each sample times its weight, and its gradients.

    With `finite`, ValueError where a z is not finite; training sees it by its loss.
    """
    n_rows = X.shape[0]
    total, sums = 0.0, None
    for rows in _blocks_for(layers, n_rows):
        weight = None if sample_weight is None else sample_weight[rows]
        value, parts = _block_gradients(
            layers, activations, loss, Samples(X[rows], Y[rows], weight), n_rows, finite
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
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: Loss,
    block: Samples,
    n_rows: int,
    finite: bool,
) -> tuple[float, list[Layer]]:
    """The block's share of the mean over `n_rows` rows, and its gradients."""
    caches, outputs, a = [], [], block.X
    for l, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
        z, cache = layer.forward(a)
        if finite:
            _check_finite(z, l, block.X)
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
