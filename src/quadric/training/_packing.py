"""Layers to and from the padded, input-major buffer that the compiled loop works on."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Layer, parameters
from quadric.core._stack import Stack
from quadric.kernels import _lanes as lanes
from quadric.kernels import _layout as layout

KIND_CODES = {
    "linear": layout.LINEAR,
    "quadratic": layout.QUADRATIC,
    "reduced": layout.REDUCED,
}
ACTIVATION_CODES = {
    "identity": layout.IDENTITY,
    "logistic": layout.LOGISTIC,
    "tanh": layout.TANH,
    "relu": layout.RELU,
    "softmax": layout.SOFTMAX,
}
OFFSET_PARTS = {"linear": ("W_u", "W_r"), "reduced": ("W_u", "W_r", "U_u", "U_r")}


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
    memory : `kernels.layout.Memory`
        These buffers, as the compiled loop takes them.
    table : structured array
        One record for each layer, see `kernels.layout`.
    folds_offset : bool
        Whether the first layer holds the offset's u and r (it is linear or reduced).
    """

    def __init__(self, stack: Stack, offset: Array | None) -> None:
        layers, dtype = stack.layers, stack.layers[0].dtype
        self.offset = offset
        self.folds_offset = offset is not None and layers[0].kind != "quadratic"
        self.table = np.empty(len(layers), dtype=layout.LAYER)
        self.table.view(np.int64)[...] = -1
        weights = _Space(dtype)
        self._place_weights(stack, weights)
        self.n_penalised = weights.size
        for row, layer in zip(self.table, layers, strict=True):
            row["b"] = weights.reserve(layer.n_outputs)
            if layer.kind == "reduced":
                row["c"] = weights.reserve(layer.n_outputs)
        self.theta, self.scale = weights.allocate(), np.ones(1)

        sample = _Space(dtype)
        self._place_activations(layers, sample)
        self.work = sample.allocate()
        widest = max(layer.n_inputs for layer in layers)
        self.table[0]["where"] = widest
        self.index = np.concatenate([np.arange(widest), np.zeros(layers[0].n_inputs, np.int64)])
        self.memory = layout.Memory(self.theta, self.scale, self.n_penalised, self.work, self.index)
        self._write(layers)

    def _place_weights(self, stack: Stack, space: _Space) -> None:
        for row, layer, activation in zip(self.table, stack.layers, stack.activations, strict=True):
            n, m = layer.n_inputs, layer.n_outputs
            pad = space.padded(m)
            row["kind"] = KIND_CODES[layer.kind]
            row["activation"] = ACTIVATION_CODES[activation]
            row["n_in"], row["n_out"], row["pad"] = n, m, pad
            row["W"] = space.reserve(n * pad)
            if layer.kind == "quadratic":
                row["Q"] = space.reserve(n * (n + 1) // 2 * pad)
            if layer.kind == "reduced":
                row["U"] = space.reserve(n * pad)
        if self.folds_offset:  # u and r are parts of the weights, and shrink with them
            first = self.table[0]
            for name in OFFSET_PARTS[stack.layers[0].kind]:
                first[name] = space.reserve(int(first["pad"]))

    def _place_activations(self, layers: Sequence[Layer], space: _Space) -> None:
        self.table[0]["x"] = space.reserve(layers[0].n_inputs)
        for l, (row, layer) in enumerate(zip(self.table, layers, strict=True)):
            n, pad = layer.n_inputs, int(row["pad"])
            for name in ("z", "a", "delta"):
                row[name] = space.reserve(pad)
            if layer.kind == "reduced":
                row["v1"], row["v2"] = space.reserve(pad), space.reserve(pad)
            if l > 0:
                row["x"], row["where"] = self.table[l - 1]["a"], 0
                if layer.kind == "quadratic":
                    row["V"] = space.reserve(n * pad)
                    # a row of monomials may run over its end by less than a register
                    row["monomials"] = space.reserve(n * (n + 1) // 2 + space.unit)

    def _rows(self, row: Any, name: str, count: int) -> Array:
        """Return `count` stored rows of the layer's neurons, without the padding."""
        start, pad, m = row[name], row["pad"], row["n_out"]
        return self.theta[start : start + count * pad].reshape(count, pad)[:, :m]

    def _fields(self, layers: Sequence[Layer]) -> Iterator[tuple[str, Array, Array]]:
        """Yield (name, the layer's array, the rows in which it is stored here)."""
        for row, layer in zip(self.table, layers, strict=True):
            n = layer.n_inputs
            counts = {"W": n, "b": 1, "packed": n * (n + 1) // 2, "U": n, "c": 1}
            for name, array in layer.arrays().items():
                stored = "Q" if name == "packed" else name
                yield name, array, self._rows(row, stored, counts[name])

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

    def holds(self, stack: Stack) -> bool:
        """Return whether the layers are equal to what `read_into` would write."""
        copies = stack.snapshot()
        self.read_into(copies)
        pairs = zip(parameters(copies), parameters(stack.layers), strict=True)
        return all(np.array_equal(one, other) for one, other in pairs)

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
                # not `@`: a product by BLAS may depend on the number of threads
                r[...] = np.einsum("i,ik->k", self.offset, weights)
