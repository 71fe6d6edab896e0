"""Layers to and from the padded, input-major buffer that the compiled loop works on."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.core import Layer, Stack, parameters
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
        """Return zeros that begin on a page, so that no load crosses a cache line."""
        page = 4096 // self.dtype.itemsize
        raw = np.zeros(self.size + page, dtype=self.dtype)
        start = -(raw.ctypes.data // self.dtype.itemsize) % page
        return raw[start : start + self.size]


class PackedLayers:
    """The parameters of a stack of layers in one buffer, with the table of its offsets.

    Attributes
    ----------
    theta, scale : arrays
        The parameters. Those under the L2 penalty are stored first, divided by ``scale[0]``.
    work : array
        Values of the sample at hand, such as its activations.
    memory : `kernels._layout.Memory`
        All buffers, as the compiled loop takes them.
    table : structured array
        One record for each layer, see `kernels._layout`.
    folds_offset : bool
        Whether the offset is folded into the first layer, which is then linear or reduced.
    """

    def __init__(self, stack: Stack, offset: Array | None) -> None:
        first = stack.layers[0]
        self.offset = offset
        self.folds_offset = offset is not None and first.kind != "quadratic"
        self.table = np.empty(len(stack.layers), dtype=layout.LAYER)
        self.table.view(np.int64)[...] = -1
        theta, work = _Space(first.dtype), _Space(first.dtype)
        for row, layer, activation in zip(self.table, stack.layers, stack.activations, strict=True):
            row["kind"], row["activation"] = KIND_CODES[layer.kind], ACTIVATION_CODES[activation]
            row["n_in"], row["n_out"] = layer.n_inputs, layer.n_outputs
            row["pad"] = theta.padded(layer.n_outputs)
            for name in layer.weights:
                row[name] = theta.reserve(_n_rows(layer, name) * int(row["pad"]))
        if self.folds_offset:  # u and r are parts of the weights, and shrink with them
            for name in (f"{weight}_{part}" for weight in first.weights for part in "ur"):
                self.table[0][name] = theta.reserve(first.n_outputs)
        n_penalised = theta.size
        for row, layer in zip(self.table, stack.layers, strict=True):
            for name in [name for name in layer.fields if name not in layer.weights]:
                row[name] = theta.reserve(layer.n_outputs)
        self._place_activations(stack.layers, work)
        widest = max(layer.n_inputs for layer in stack.layers)
        self.table[0]["where"] = widest
        self.theta, self.scale, self.work = theta.allocate(), np.ones(1), work.allocate()
        where = np.concatenate([np.arange(widest), np.zeros(first.n_inputs, np.int64)])
        self.memory = layout.Memory(self.theta, self.scale, n_penalised, self.work, where)
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
                # a row of monomials may run over its end by less than a register
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


def _n_rows(layer: Layer, name: str) -> int:
    """Return the number of stored rows of a parameter: numbers per neuron."""
    return layer.arrays()[name].size // layer.n_outputs
