"""Layers to and from the padded, input-major buffer that the compiled loop works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.kernels import lanes, sgd
from quadric.layers import Layer

__all__ = ["PackedLayers"]

KIND_CODES = {
    "linear": sgd.LINEAR,
    "quadratic": sgd.QUADRATIC,
    "reduced": sgd.REDUCED,
}
ACTIVATION_CODES = {
    "identity": sgd.IDENTITY,
    "logistic": sgd.LOGISTIC,
    "tanh": sgd.TANH,
    "relu": sgd.RELU,
    "softmax": sgd.SOFTMAX,
}


class _Space:
    """Hands out consecutive stretches of a buffer that is allocated at the end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.size = dtype, 0
        self.unit = lanes.UNIT_BYTES // dtype.itemsize

    def padded(self, length: int) -> int:
        return -(-length // self.unit) * self.unit

    def reserve(self, length: int) -> int:
        start = self.size
        self.size += self.padded(length)
        return start

    def allocate(self) -> Array:
        """Zeros that begin on a page: no load crosses a cache line, and times do not vary."""
        page = 4096 // self.dtype.itemsize
        raw = np.zeros(self.size + page, dtype=self.dtype)
        start = -(raw.ctypes.data // self.dtype.itemsize) % page
        return raw[start : start + self.size]


class PackedLayers:
    """The parameters of a stack of layers in one buffer, with the table of its offsets.

    Attributes
    ----------
    theta, scale : arrays
        The parameters, those under the L2 penalty first (`n_penalised` of them); the latter are
        what is stored times ``scale[0]``.
    work, index : arrays
        Room for one sample's activations and the list of its inputs.
    table : int array
        One row for each layer, its columns named in `kernels`.
    folds_offset : bool
        Whether the first layer holds the offset's u and r (it is linear or reduced).
    """

    def __init__(
        self, layers: Sequence[Layer], activations: Sequence[str], offset: Array | None
    ) -> None:
        dtype = layers[0].dtype
        self.offset = offset
        self.folds_offset = offset is not None and layers[0].kind != "quadratic"
        self.table = np.full((len(layers), sgd.TABLE_COLUMNS), -1, dtype=np.int64)
        parameters = _Space(dtype)
        self._place_weights(layers, activations, parameters)
        self.n_penalised = parameters.size
        for row, layer in zip(self.table, layers, strict=True):
            row[sgd.B] = parameters.reserve(layer.n_outputs)
            if layer.kind == "reduced":
                row[sgd.C] = parameters.reserve(layer.n_outputs)
        self.theta, self.scale = parameters.allocate(), np.ones(1)

        sample = _Space(dtype)
        self._place_activations(layers, sample)
        self.work = sample.allocate()
        widest = max(layer.n_inputs for layer in layers)
        self.table[0, sgd.INPUT_AT] = widest
        self.index = np.concatenate([np.arange(widest), np.zeros(layers[0].n_inputs, np.int64)])
        self._write(layers)

    def _place_weights(
        self, layers: Sequence[Layer], activations: Sequence[str], space: _Space
    ) -> None:
        for row, layer, activation in zip(self.table, layers, activations, strict=True):
            n, m = layer.n_inputs, layer.n_outputs
            pad = space.padded(m)
            row[sgd.KIND] = KIND_CODES[layer.kind]
            row[sgd.ACTIVATION] = ACTIVATION_CODES[activation]
            row[sgd.N_IN], row[sgd.N_OUT], row[sgd.PAD] = n, m, pad
            row[sgd.W] = space.reserve(n * pad)
            if layer.kind == "quadratic":
                row[sgd.Q] = space.reserve(n * (n + 1) // 2 * pad)
            if layer.kind == "reduced":
                row[sgd.U] = space.reserve(n * pad)
        if self.folds_offset:  # u and r are parts of the weights, and shrink with them
            first = self.table[0]
            for column in (sgd.W_U, sgd.W_R):
                first[column] = space.reserve(first[sgd.PAD])
            if layers[0].kind == "reduced":
                for column in (sgd.U_U, sgd.U_R):
                    first[column] = space.reserve(first[sgd.PAD])

    def _place_activations(self, layers: Sequence[Layer], space: _Space) -> None:
        self.table[0, sgd.INPUT] = space.reserve(layers[0].n_inputs)
        for l, (row, layer) in enumerate(zip(self.table, layers, strict=True)):
            n, pad = layer.n_inputs, int(row[sgd.PAD])
            for column in (sgd.Z, sgd.A, sgd.DELTA):
                row[column] = space.reserve(pad)
            if layer.kind == "reduced":
                row[sgd.V1], row[sgd.V2] = space.reserve(pad), space.reserve(pad)
            if l > 0:
                row[sgd.INPUT], row[sgd.INPUT_AT] = self.table[l - 1, sgd.A], 0
                if layer.kind == "quadratic":
                    row[sgd.V] = space.reserve(n * pad)
                    # a row of monomials may run over its end by less than a register
                    row[sgd.MONOMIALS] = space.reserve(n * (n + 1) // 2 + space.unit)

    def _rows(self, row: Array, column: int, count: int) -> Array:
        """`count` stored rows of the layer's neurons, without the padding."""
        start, pad, m = row[column], row[sgd.PAD], row[sgd.N_OUT]
        return self.theta[start : start + count * pad].reshape(count, pad)[:, :m]

    def _fields(self, layers: Sequence[Layer]) -> Iterator[tuple[str, Array, Array]]:
        """(field, the layer's array, where it is stored here as rows)."""
        columns = {"W": sgd.W, "b": sgd.B, "packed": sgd.Q, "U": sgd.U, "c": sgd.C}
        for row, layer in zip(self.table, layers, strict=True):
            n = layer.n_inputs
            counts = {"W": n, "b": 1, "packed": n * (n + 1) // 2, "U": n, "c": 1}
            for name, array in layer.arrays().items():
                yield name, array, self._rows(row, columns[name], counts[name])

    def _write(self, layers: Sequence[Layer]) -> None:
        for name, array, rows in self._fields(layers):
            rows[...] = array if name == "packed" else array.T
        self.settle()

    def read_into(self, layers: Sequence[Layer]) -> None:
        """Copy the parameters back into the layers' arrays."""
        for name, array, rows in self._fields(layers):
            if name in ("W", "packed", "U") and self.scale[0] != 1:
                rows = rows * rows.dtype.type(self.scale[0])
            array[...] = (rows if name == "packed" else rows.T).reshape(array.shape)

    def holds(self, layers: Sequence[Layer]) -> bool:
        """Whether the layers are just what `read_into` would write."""
        copies = [layer.copy() for layer in layers]
        self.read_into(copies)
        return all(
            np.array_equal(one.arrays()[name], array)
            for one, layer in zip(copies, layers, strict=True)
            for name, array in layer.arrays().items()
        )

    def settle(self) -> None:
        """Fold the offset's u into the weights, and compute r afresh: once an epoch."""
        if self.offset is None or not self.folds_offset:
            return
        first = self.table[0]
        for weights, u, r in (
            (sgd.W, sgd.W_U, sgd.W_R),
            (sgd.U, sgd.U_U, sgd.U_R),
        ):
            if first[u] >= 0:
                W = self._rows(first, weights, int(first[sgd.N_IN]))
                u_row, r_row = self._rows(first, u, 1)[0], self._rows(first, r, 1)[0]
                W += np.multiply.outer(self.offset, u_row)
                u_row[...] = 0
                # not `@`: a product by BLAS may depend on the number of threads
                r_row[...] = np.einsum("i,ik->k", self.offset, W)
