"""Per-sample epochs: layers packed for the compiled loop, and the stepper that runs it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix
from quadric.core import Layer, Stack, parameters
from quadric.kernels import (
    ACTIVATION_CODES,
    ADDED_TO_INPUTS,
    CSR,
    DENSE,
    FOLDED_INTO_WEIGHTS,
    KIND_CODES,
    LAYER,
    LOSS_CODES,
    NO_OFFSET,
    UNIT_BYTES,
    Memory,
    SampleArrays,
    Step,
    compress_rows,
    count_nonzeros,
    sgd_epoch,
)
from quadric.training._run import FailedEpochError, Options, Samples, TrainingState

WORTH_COMPRESSING = 10_000  # entries; with fewer, loading the compiled functions is not worthwhile


class _Space:
    """Hands out consecutive sections of a buffer that is allocated at the end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.size = dtype, 0
        self.unit = UNIT_BYTES // dtype.itemsize

    def padded(self, length: int) -> int:
        return -(-length // self.unit) * self.unit

    def reserve(self, length: int) -> int:
        start = self.size
        self.size += self.padded(length)
        return start

    def allocate(self) -> Array:
        """Return zeros that start at a page boundary, so that no load crosses a cache line."""
        page = 4096 // self.dtype.itemsize
        raw = np.zeros(self.size + page, dtype=self.dtype)
        start = -(raw.ctypes.data // self.dtype.itemsize) % page
        return raw[start : start + self.size]


class PackedLayers:
    """The parameters of a stack of layers in one buffer, with a table of their positions.

    Attributes
    ----------
    theta, scale : arrays
        The parameters. The penalized ones are stored first, divided by ``scale[0]``.
    work : array
        Values of the current sample, such as its activations.
    memory : `kernels.Memory`
        All buffers, in the form that the compiled loop expects.
    table : structured array
        One record for each layer; see `kernels._layout`.
    folds_offset : bool
        Whether the offset is folded into the first layer, which is then linear or reduced.
    """

    def __init__(self, stack: Stack, offset: Array | None) -> None:
        first = stack.layers[0]
        self.offset = offset
        self.folds_offset = offset is not None and first.kind != "quadratic"
        self.table = np.empty(len(stack.layers), dtype=LAYER)
        self.table.view(np.int64)[...] = -1
        theta, work = _Space(first.dtype), _Space(first.dtype)
        for row, layer, activation in zip(self.table, stack.layers, stack.activations, strict=True):
            row["kind"], row["activation"] = KIND_CODES[layer.kind], ACTIVATION_CODES[activation]
            row["n_in"], row["n_out"] = layer.n_inputs, layer.n_outputs
            row["pad"] = theta.padded(layer.n_outputs)
            for name in layer.weights:
                row[name] = theta.reserve(_n_rows(layer, name) * int(row["pad"]))
        if self.folds_offset:  # u and r are parts of the weights and shrink with them
            for name in (f"{weight}_{part}" for weight in first.weights for part in "ur"):
                self.table[0][name] = theta.reserve(first.n_outputs)
        n_penalized = theta.size
        for row, layer in zip(self.table, stack.layers, strict=True):
            for name in [name for name in layer.fields if name not in layer.weights]:
                row[name] = theta.reserve(layer.n_outputs)
        self._place_activations(stack.layers, work)
        widest = max(layer.n_inputs for layer in stack.layers)
        self.table[0]["where"] = widest
        self.theta, self.scale, self.work = theta.allocate(), np.ones(1), work.allocate()
        where = np.concatenate([np.arange(widest), np.zeros(first.n_inputs, np.int64)])
        self.memory = Memory(self.theta, self.scale, n_penalized, self.work, where)
        for name, array, rows in self._fields(stack.layers):
            rows[...] = array if name == "packed" else array.T
        self.settle()

    def _place_activations(self, layers: Sequence[Layer], work: _Space) -> None:
        self.table[0]["x"] = work.reserve(layers[0].n_inputs)
        for l, (row, layer) in enumerate(zip(self.table, layers, strict=True)):
            pad = int(row["pad"])
            sizes = dict.fromkeys(("z", "a", "delta"), pad)
            if layer.kind == "reduced":
                sizes |= {"v1": pad, "v2": pad}
            if l > 0:
                row["x"], row["where"] = self.table[l - 1]["a"], 0
            if l > 0 and layer.kind == "quadratic":
                # writing a row of monomials may overrun its end by less than a register
                monomials = _n_rows(layer, "packed") + work.unit
                sizes |= {"V": layer.n_inputs * pad, "monomials": monomials}
            for name, size in sizes.items():
                row[name] = work.reserve(size)

    def _rows(self, row: Any, name: str, count: int) -> Array:
        """Return `count` stored rows of the layer's neurons, without the padding."""
        start, pad, m = row[name], row["pad"], row["n_out"]
        return self.theta[start : start + count * pad].reshape(count, pad)[:, :m]

    def _fields(self, layers: Sequence[Layer]) -> Iterator[tuple[str, Array, Array]]:
        """Yield (name, the layer's array, the rows in which it is stored here)."""
        for row, layer in zip(self.table, layers, strict=True):
            for name, array in layer.arrays().items():
                yield name, array, self._rows(row, name, _n_rows(layer, name))

    def read_into(self, layers: Sequence[Layer]) -> None:
        """Copy the parameters into the layers' arrays."""
        for name, array, rows in self._fields(layers):
            if name in ("W", "packed", "U") and self.scale[0] != 1:
                rows = rows * rows.dtype.type(self.scale[0])
            array[...] = (rows if name == "packed" else rows.T).reshape(array.shape)

    def holds(self, stack: Stack) -> bool:
        """Return whether the layers hold the values that `read_into` would write."""
        copies = stack.snapshot()
        self.read_into(copies)
        pairs = zip(parameters(copies), parameters(stack.layers), strict=True)
        return all(np.array_equal(copy, original) for copy, original in pairs)

    def settle(self) -> None:
        """Fold the offset's u into the weights and recompute r; called once per epoch."""
        if self.offset is None or not self.folds_offset:
            return
        first = self.table[0]
        for name in ("W", "U"):
            if first[f"{name}_u"] >= 0:
                weights = self._rows(first, name, int(first["n_in"]))
                u, r = self._rows(first, f"{name}_u", 1)[0], self._rows(first, f"{name}_r", 1)[0]
                weights += np.multiply.outer(self.offset, u)
                u[...] = 0
                # not `@`: the result of a BLAS product may depend on the number of threads
                r[...] = np.einsum("i,ik->k", self.offset, weights)


def _n_rows(layer: Layer, name: str) -> int:
    """Return the number of stored rows of a parameter, which is its size per neuron."""
    return layer.arrays()[name].size // layer.n_outputs


class PerSample:
    """A stepper that trains a packed copy of the layers; `publish` copies it back.

    With ``options.resume``, it continues bit-identically from the packed copy in `state`.

    Attributes
    ----------
    l2 : float
        Coefficient of the L2 penalty in the loss that `run_epoch` returns. It includes the mean
        sample weight, because a sample's weight scales its step.
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
        self.packed = _resumed(stack, state) or PackedLayers(stack, offset)
        if options.resume:
            assert samples.offset is None  # it could differ from the offset of the last call
            state.packed = self.packed
            state.memory = {"theta": self.packed.theta, "scale": self.packed.scale}
        self.table = _read_only(self.packed.table)
        indptr, indices, data = _as_rows(X, dtype)
        offset_use, dots = NO_OFFSET, None
        if offset is not None:
            offset_use = ADDED_TO_INPUTS
            if self.packed.folds_offset:
                offset_use, dots = FOLDED_INTO_WEIGHTS, X @ offset
        self.samples = SampleArrays(
            form=CSR if sparse.issparse(X) else DENSE,
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
        """Run one compiled pass over the samples; return the mean loss, including the penalty."""
        packed, options = self.packed, self.options
        loss = LOSS_CODES[self.stack.loss_name]
        clip = math.inf if options.clip is None else float(options.clip)
        epoch = sgd_epoch(
            packed.memory,
            self.table,
            self.samples,
            _read_only(order.astype(np.int64, copy=False)),
            Step(loss, float(rate), float(options.l2), clip),
        )
        if epoch.position >= 0:
            raise FailedEpochError(sample=int(order[epoch.position]), layer=epoch.layer)
        packed.settle()
        if not math.isfinite(packed.theta.sum(dtype=np.float64)):
            raise FailedEpochError
        loss_mean = epoch.loss_sum / self.n_samples
        if self.l2:
            self.publish()
            loss_mean += self.stack.penalty(self.l2)
        return float(loss_mean)


def _resumed(stack: Stack, state: TrainingState) -> PackedLayers | None:
    """Return the packed copy from the last call, unless the layers have changed since then."""
    packed: PackedLayers | None = state.packed
    if packed is None and "theta" in state.memory:
        packed = PackedLayers(stack, offset=None)
        packed.theta[...], packed.scale[...] = state.memory["theta"], state.memory["scale"]
    return packed if packed is not None and packed.holds(stack) else None


def _read_only(array: Array) -> Array:
    """Return a read-only view, so that numba compiles only once, whatever the user passed."""
    view = array.view()
    view.flags.writeable = False
    return view


def _as_rows(X: Matrix, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return (indptr, indices, data) for the compiled loop; only data is used for dense rows."""
    if sparse.issparse(X):
        return (
            np.ascontiguousarray(X.indptr, dtype=np.int64),
            np.ascontiguousarray(X.indices, dtype=np.int32),
            np.ascontiguousarray(X.data, dtype=dtype),
        )
    return np.empty(0, np.int64), np.empty(0, np.int32), X.reshape(-1)


def _compress(X: Array) -> Matrix:
    """Convert a dense matrix that is mostly zeros to CSR; return any other matrix unchanged.

    Finding the non-zeros again for every sample of every epoch costs as much as the step itself.
    """
    n_samples, n = X.shape
    if X.size < WORTH_COMPRESSING:
        return X
    flat = _read_only(X.reshape(-1))
    counts = np.zeros(n_samples, dtype=np.int64)
    count_nonzeros(flat, n, counts)
    indptr = np.zeros(n_samples + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    if indptr[-1] > X.size // 2:
        return X
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], X.dtype)
    compress_rows(flat, n, _read_only(indptr), indices, values)
    return sparse.csr_array((values, indices, indptr), shape=X.shape)
