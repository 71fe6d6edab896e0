"""The forward and backward passes of a stack of layers.

Losses and gradients are sums over blocks of rows, added in the order of the rows. The size of
a block limits the memory needed, and the result does not depend on where a block is computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix
from quadric.core._activations_and_losses import ACTIVATIONS, LOSSES, Loss, infer_loss
from quadric.core._layers import Layer, Quadratic, parameters
from quadric.utils import threads_for_loops

BLOCK_ROWS = 1536
BLOCK_NUMBERS = 2**21  # per array of a block, so that wide layers process fewer rows at once
WORTH_THREADS = 2**25  # multiplications of a pass above which it pays to set the number of threads


def block_rows(width: int) -> int:
    """Number of rows that are computed at once if the widest array has `width` columns."""
    return max(16, min(BLOCK_ROWS, BLOCK_NUMBERS // width))


def columns_needed(kind: str, n: int, m: int) -> int:
    """Number of columns of the widest array that a layer with n inputs and m neurons creates."""
    return max(n, m) if kind == "quadratic" else m  # a quadratic layer makes X dense


@dataclass(frozen=True)
class Stack:
    """A sequence of layers, their activations, and the loss of the last layer.

    Parameters
    ----------
    layers : sequence of Layer
        Updated in place by training.
    activations : sequence of str
    loss : str, optional
        Inferred from the last activation by default.
    """

    layers: Sequence[Layer]
    activations: Sequence[str]
    loss: str | None = None

    @property
    def loss_name(self) -> str:
        return self.loss or infer_loss(self.activations[-1])

    @property
    def loss_function(self) -> Loss:
        return LOSSES[self.loss_name]

    @property
    def n_parameters(self) -> int:
        return sum(array.size for array in parameters(self.layers))

    def logit_blocks(self, X: Matrix, *, finite: bool = True) -> Iterator[tuple[slice, Array]]:
        """Yield a slice of rows and the logits of these rows, block by block.

        With `finite`, raise ValueError if a pre-activation of any layer is not finite, because a
        later layer could turn it into NaN or into a plausible probability.
        """
        dtype = self.layers[0].dtype
        for rows in self._blocks(X.shape[0]):
            block = X[rows]
            with self.threads(block.shape[0]), np.errstate(over="ignore", invalid="ignore"):
                a = block if sparse.issparse(X) else np.ascontiguousarray(block, dtype)
                for l, layer in enumerate(self.layers):
                    z = layer.forward(a)[0]
                    if finite:
                        _check_finite(z, l, block)
                    if l < len(self.layers) - 1:
                        a = ACTIVATIONS[self.activations[l]].function(z)
            yield rows, z

    def logits(self, X: Matrix) -> Array:
        """Return the logits of every row of X, which may be infinite or NaN."""
        z = np.empty((X.shape[0], self.layers[-1].n_outputs), dtype=self.layers[0].dtype)
        for rows, block in self.logit_blocks(X, finite=False):
            z[rows] = block
        return z

    def mean_loss(self, z: Array | None, Y: Array, weight: Array | None = None) -> float:
        """Return the mean over samples of weight times loss; if z is None, all logits are zero."""
        values = np.empty(len(Y), dtype=Y.dtype)
        for rows in _slices(len(Y), block_rows(Y.shape[1])):
            logits = np.zeros_like(Y[rows]) if z is None else z[rows]
            values[rows] = self.loss_function.value(self.activations[-1], logits, Y[rows])
        if weight is not None:
            values = values * weight
        return float(values.mean(dtype=np.float64))

    def gradients(
        self, X: Matrix, Y: Array, weight: Array | None = None, *, finite: bool = False
    ) -> tuple[float, list[Layer]]:
        """Return the mean over samples of weight times loss, and its gradients.

        With `finite`, raise ValueError if a pre-activation is not finite. Training does not
        need this check, because the loss reveals such values.
        """
        total = 0.0
        sums: list[Layer] = []
        with self.threads(X.shape[0]):
            for rows in self._blocks(X.shape[0]):
                factors = None if weight is None else weight[rows]
                value, grads = self._block_gradients(X[rows], Y[rows], factors, X.shape[0], finite)
                total += value
                if sums:
                    for into, part in zip(parameters(sums), parameters(grads), strict=True):
                        into += part
                else:
                    sums = grads
        return total, sums

    def _block_gradients(
        self, X: Matrix, Y: Array, weight: Array | None, n_rows: int, finite: bool
    ) -> tuple[float, list[Layer]]:
        """Return the block's share of the mean loss over `n_rows` rows, and its gradients."""
        caches, outputs = [], [X]
        for l, layer in enumerate(self.layers):
            z, cache = layer.forward(outputs[-1])
            if finite:
                _check_finite(z, l, X)
            caches.append(cache)
            if l < len(self.layers) - 1:
                outputs.append(ACTIVATIONS[self.activations[l]].function(z))
        values, delta = self.loss_function.value_and_delta(self.activations[-1], z, Y)
        if weight is not None:
            values = values * weight
            delta *= weight[:, None]
        delta /= delta.dtype.type(n_rows)

        grads: list[Layer] = []
        for l in range(len(self.layers) - 1, -1, -1):
            grad, d_input = self.layers[l].backward(delta, caches.pop(), inputs=l > 0)
            grads.append(grad)
            if d_input is not None:
                slope = ACTIVATIONS[self.activations[l - 1]].slope
                assert slope is not None  # only the last activation may lack a slope
                delta = d_input
                delta *= slope(outputs.pop())
        return float(values.sum(dtype=np.float64)) / n_rows, grads[::-1]

    def threads(self, n_rows: int) -> AbstractContextManager[None]:
        """Return a context that gives the threads to compiled loops if they do most of the work."""
        in_loops = sum(layer.packed.size for layer in self.layers if isinstance(layer, Quadratic))
        worth = 2 * in_loops > self.n_parameters and n_rows * in_loops > WORTH_THREADS
        return threads_for_loops() if worth else nullcontext()

    def shifted(self, offset: Array | None) -> Self:
        """Return a stack whose output for X is the output of this stack for X + offset."""
        if offset is None:
            return self
        return replace(self, layers=(self.layers[0].shifted(offset), *self.layers[1:]))

    def penalty(self, l2: float) -> float:
        """Return l2/2 times the sum of squares of all weights."""
        return l2 * sum(layer.penalty() for layer in self.layers) if l2 else 0.0

    def add_l2(self, grads: Sequence[Layer], l2: float) -> None:
        """Add l2 times the weights to their gradients, in place."""
        if l2:
            for layer, grad in zip(self.layers, grads, strict=True):
                for name in layer.weights:
                    grad.arrays()[name] += l2 * layer.arrays()[name]

    def snapshot(self) -> list[Layer]:
        """Return a copy of all layers."""
        return [layer.copy() for layer in self.layers]

    def restore(self, saved: Sequence[Layer]) -> None:
        """Copy the parameters of a snapshot into the layers."""
        for array, value in zip(parameters(self.layers), parameters(saved), strict=True):
            array[...] = value

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        sizes = [(layer.kind, layer.n_inputs, layer.n_outputs) for layer in self.layers]
        return _slices(n_rows, block_rows(max(columns_needed(*size) for size in sizes)))


def _slices(n_rows: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def _check_finite(z: Array, l: int, X: Matrix) -> None:
    if not np.isfinite(z).all():
        raise ValueError(
            f"X contains values so large (up to {abs(X).max():g}) that a pre-activation of layer "
            f"{l} is not finite in {z.dtype}. Scale the features as they were scaled in training."
        )
