"""Layers to and from the padded, input-major buffer that the compiled loop works on."""

from __future__ import annotations

import numpy as np

from quadric import kernels

KIND_CODES = {
    "linear": kernels.LINEAR,
    "quadratic": kernels.QUADRATIC,
    "reduced": kernels.REDUCED,
}
ACTIVATION_CODES = {
    "identity": kernels.IDENTITY,
    "logistic": kernels.LOGISTIC,
    "tanh": kernels.TANH,
    "relu": kernels.RELU,
    "softmax": kernels.SOFTMAX,
}


def aligned_zeros(size, dtype):
    """Zeros whose first element lies on a register boundary: a load across one costs double."""
    unit = kernels.UNIT_BYTES // dtype.itemsize
    raw = np.zeros(size + unit, dtype=dtype)
    start = -(raw.ctypes.data // dtype.itemsize) % unit
    return raw[start : start + size]


class PackedNetwork:
    """The parameters of a stack of layers in one contiguous buffer, with its table of offsets."""

    def __init__(self, layers, activations, offset=None):
        self.dtype = layers[0].W.dtype
        self.offset = offset
        unit = kernels.UNIT_BYTES // self.dtype.itemsize
        table = np.full((len(layers), kernels.TABLE_COLUMNS), -1, dtype=np.int64)
        size = 0

        def reserve(length):
            nonlocal size
            start, size = size, size + length
            return start

        for row, layer, activation in zip(table, layers, activations, strict=True):
            m, n = layer.W.shape
            pad = -(-m // unit) * unit
            row[kernels.KIND] = KIND_CODES[layer.kind]
            row[kernels.N_IN], row[kernels.N_OUT], row[kernels.PAD] = n, m, pad
            row[kernels.ACTIVATION] = ACTIVATION_CODES[activation]
            row[kernels.W] = reserve(n * pad)
            if layer.kind == "quadratic":
                row[kernels.Q] = reserve(n * (n + 1) // 2 * pad)
            if layer.kind == "reduced":
                row[kernels.U] = reserve(n * pad)
        # the offset's u is a part of the weights, so it shrinks with them; r follows from both
        self.n_penalised = size
        first, pad = table[0], table[0, kernels.PAD]
        self.folds_offset = offset is not None and layers[0].kind != "quadratic"
        if self.folds_offset:
            first[kernels.W_U], first[kernels.W_R] = reserve(pad), reserve(pad)
            if layers[0].kind == "reduced":
                first[kernels.U_U], first[kernels.U_R] = reserve(pad), reserve(pad)
            self.n_penalised = size
        for row in table:
            row[kernels.B] = reserve(row[kernels.PAD])
            if row[kernels.KIND] == kernels.REDUCED:
                row[kernels.C] = reserve(row[kernels.PAD])
        self.theta = aligned_zeros(size, self.dtype)

        size = 0
        widest = max(int(row[kernels.N_IN]) for row in table)
        n = int(table[0, kernels.N_IN])
        first[kernels.INPUT] = reserve(-(-n // unit) * unit)
        for l, row in enumerate(table):
            pad = int(row[kernels.PAD])
            for column in (kernels.Z, kernels.A, kernels.DELTA):
                row[column] = reserve(pad)
            if row[kernels.KIND] == kernels.REDUCED:
                row[kernels.V1], row[kernels.V2] = reserve(pad), reserve(pad)
            if l > 0:
                row[kernels.INPUT] = table[l - 1, kernels.A]
                row[kernels.INPUT_AT] = 0
                if row[kernels.KIND] == kernels.QUADRATIC:
                    inputs = int(row[kernels.N_IN])
                    row[kernels.V] = reserve(inputs * pad)
                    row[kernels.MONOMIALS] = reserve((inputs * (inputs + 1) // 2 // unit + 2) * unit)
        first[kernels.INPUT_AT] = widest
        self.work = aligned_zeros(size, self.dtype)
        self.index = np.concatenate([np.arange(widest), np.zeros(n, dtype=np.int64)])
        self.table = table

    def _rows(self, row, column, count):
        start, pad, m = row[column], row[kernels.PAD], row[kernels.N_OUT]
        return self.theta[start : start + count * pad].reshape(count, pad)[:, :m]

    def _fields(self, layers):
        for row, layer in zip(self.table, layers, strict=True):
            n = int(row[kernels.N_IN])
            yield layer, "W", self._rows(row, kernels.W, n)
            yield layer, "b", self._rows(row, kernels.B, 1)
            if layer.kind == "quadratic":
                yield layer, "Q", self._rows(row, kernels.Q, n * (n + 1) // 2)
            if layer.kind == "reduced":
                yield layer, "U", self._rows(row, kernels.U, n)
                yield layer, "c", self._rows(row, kernels.C, 1)
