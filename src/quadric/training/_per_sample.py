"""Epochs of one sample at a time: the friendly side of the compiled loop in `kernels`."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from quadric._utils.arrays import Array, Matrix
from quadric.core import Stack
from quadric.kernels import _layout as layout
from quadric.kernels import _rows as rows
from quadric.kernels import _sgd as sgd
from quadric.training._divergence import NonFiniteError
from quadric.training._packing import PackedLayers
from quadric.training._run import Options, Samples, TrainingState

LOSS_CODES = {
    "binary_cross_entropy": layout.BINARY_CROSS_ENTROPY,
    "cross_entropy": layout.CROSS_ENTROPY,
    "squared_error": layout.SQUARED_ERROR,
}


WORTH_COMPRESSING = 10_000  # entries; loading the compiled functions costs more for fewer


class PerSample:
    """A stepper that trains a packed copy of the layers; `publish` copies it back.

    With ``options.resume`` it continues on the packed copy in `state`, bit for bit.

    Attributes
    ----------
    l2 : float
        Factor of the penalty in the loss that `run_epoch` returns: a sample's step has the size
        of its weight.
    """

    def __init__(
        self, stack: Stack, samples: Samples, options: Options, state: TrainingState
    ) -> None:
        self.stack, self.options, self.n_samples = stack, options, len(samples)
        X, offset, weight = samples.X, samples.offset, samples.weight
        self.l2 = options.l2 * (1.0 if weight is None else float(weight.mean()))
        dtype = stack.layers[0].dtype
        if not sparse.issparse(X):
            X = _compress(X)
            if offset is not None and not sparse.issparse(X):
                X, offset = X + offset, None  # exact, and no slower for dense rows
        self.packed = _resumed(stack, samples.offset, state) or PackedLayers(stack, offset)
        if options.resume:
            state.packed = self.packed
            state.memory = {"theta": self.packed.theta, "scale": self.packed.scale}
        self.table = _read_only(self.packed.table)
        indptr, indices, data = _as_rows(X, dtype)
        offset_use, dots = layout.NO_OFFSET, None
        if offset is not None:
            offset_use = layout.ADDED_TO_INPUTS
            if self.packed.folds_offset:
                offset_use, dots = layout.FOLDED_INTO_WEIGHTS, X @ offset
        self.samples = layout.SampleArrays(
            form=layout.CSR if sparse.issparse(X) else layout.DENSE,
            indptr=_read_only(indptr),
            indices=_read_only(indices),
            data=_read_only(data),
            Y=_read_only(np.ascontiguousarray(samples.Y, dtype=dtype)),
            weights=_read_only(np.ones(len(samples), dtype) if weight is None else weight),
            offset_use=offset_use,
            offset=_read_only(np.empty(0, dtype) if offset is None else offset),
            offset_dots=_read_only(np.ascontiguousarray([] if dots is None else dots, dtype=dtype)),
        )
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = self.packed.theta.copy(), self.packed.scale.copy()

    def restore(self) -> None:
        self.packed.theta[...], self.packed.scale[...] = self.saved

    def publish(self) -> None:
        self.packed.read_into(self.stack.layers)

    def run_epoch(self, order: Array, rate: float) -> float:
        """One compiled pass over the samples; returns the mean loss, penalty included."""
        packed, options = self.packed, self.options
        loss = LOSS_CODES[self.stack.loss_name]
        clip = math.inf if options.clip is None else float(options.clip)
        epoch = sgd.sgd_epoch(
            packed.memory,
            self.table,
            self.samples,
            _read_only(order.astype(np.int64, copy=False)),
            layout.Step(loss, float(rate), float(options.l2), clip),
        )
        if epoch.position >= 0:
            raise NonFiniteError(sample=int(order[epoch.position]), layer=epoch.layer)
        packed.settle()
        if not math.isfinite(packed.theta.sum(dtype=np.float64)):
            raise NonFiniteError(sample=None, layer=None)
        loss_mean = epoch.loss_sum / self.n_samples
        if self.l2:
            self.publish()
            loss_mean += self.stack.penalty(self.l2)
        return float(loss_mean)


def _resumed(stack: Stack, offset: Array | None, state: TrainingState) -> PackedLayers | None:
    """Return the packed copy of the last call, unless the layers have changed since."""
    packed: PackedLayers | None = state.packed
    if packed is None and "theta" in state.memory:
        packed = PackedLayers(stack, offset)
        packed.theta[...], packed.scale[...] = state.memory["theta"], state.memory["scale"]
    return packed if packed is not None and packed.holds(stack) else None


def _read_only(array: Array) -> Array:
    """A read-only view: numba compiles for read-only arrays once, whatever the user passed."""
    view = array.view()
    view.flags.writeable = False
    return view


def _as_rows(X: Matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """(indptr, indices, data) as the compiled loop takes them; dense rows have no indptr."""
    if sparse.issparse(X):
        return (
            np.ascontiguousarray(X.indptr, dtype=np.int64),
            np.ascontiguousarray(X.indices, dtype=np.int32),
            np.ascontiguousarray(X.data, dtype=dtype),
        )
    return np.empty(0, np.int64), np.empty(0, np.int32), X.reshape(-1)


def _compress(X: Array) -> Matrix:
    """A dense matrix that is mostly zeros as CSR; any other as it is.

    Finding the non-zeros again for every sample of every epoch costs as much as the step itself.
    """
    n_samples, n = X.shape
    if X.size < WORTH_COMPRESSING:
        return X
    flat = _read_only(X.reshape(-1))
    counts = np.zeros(n_samples, dtype=np.int64)
    rows.count_nonzeros(flat, n, counts)
    indptr = np.zeros(n_samples + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    if indptr[-1] > X.size // 2:
        return X
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], X.dtype)
    rows.compress_rows(flat, n, _read_only(indptr), indices, values)
    return sparse.csr_array((values, indices, indptr), shape=X.shape)
