"""How much memory training needs, estimated from shapes before anything is allocated.

The estimates are upper bounds of what `tests/support/memory_process.py` measures, within 20 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from quadric._utils.arrays import Matrix
from quadric._utils.memory import check_limit, readable
from quadric.core._layers import Layer
from quadric.training._objective import block_rows, widest

COPIES = {"adam": 9, "sgd": 9}  # of all parameters, temporaries included
LBFGS_COPIES = 25  # in float64, and two more for each pair of vectors that is kept
PADDING = 64  # bytes: the compiled loop pads the neurons of a layer to a multiple
PER_SAMPLE = 100  # bytes: labels, weights, orders
KEPT = 2**26  # bytes that the allocator may keep for later when they are freed


@dataclass(frozen=True)
class Shape:
    """A network: its inputs, (kind, neurons) of each layer, and the bytes of a number."""

    n_inputs: int
    layers: Sequence[tuple[str, int]]
    itemsize: int

    @classmethod
    def of(cls, layers: Sequence[Layer]) -> Self:
        each = [(layer.kind, layer.n_outputs) for layer in layers]
        return cls(layers[0].n_inputs, each, layers[0].dtype.itemsize)

    @property
    def sizes(self) -> list[tuple[str, int, int]]:
        """(kind, inputs, neurons) of each layer."""
        inputs = [self.n_inputs, *(m for _, m in self.layers)]
        return [(kind, n, m) for n, (kind, m) in zip(inputs, self.layers, strict=False)]

    @property
    def n_parameters(self) -> int:
        return sum(_parameters(*size) for size in self.sizes)

    @property
    def n_outputs(self) -> int:
        return self.layers[-1][1]

    def block_bytes(self, n_samples: int, arrays: int = 5) -> int:
        """What one block of rows takes: so many arrays of each layer, and what the loss makes."""
        rows = min(n_samples, block_rows(widest(self.sizes)))
        kind, n, _ = self.sizes[0]
        numbers = arrays * sum(m for *_, m in self.sizes) + (arrays - 1) * self.n_outputs
        return rows * (numbers + (n if kind == "quadratic" else 0)) * self.itemsize

    def solver_bytes(self, solver: str, n_rows: int, pairs: int = 10) -> int:
        """What 'lbfgs', 'adam', 'sgd' or 'per sample' takes beside the samples.

        `n_rows` of them are computed at once, if they fit into a block.
        """
        p, s = self.n_parameters, self.itemsize
        if solver == "lbfgs":
            own = (LBFGS_COPIES + 2 * pairs) * 8 * p
        elif solver == "per sample":
            unit = PADDING // s
            padded = sum(_parameters(kind, n, -(-m // unit) * unit) for kind, n, m in self.sizes)
            own = (5 * padded + 5 * p) * s
        else:
            own = COPIES[solver] * p * s
        return own + self.block_bytes(n_rows)

    def drawing_bytes(self, init: str) -> int:
        """What drawing takes: float64 first and, where Q is drawn, whole matrices and places."""
        most, s = 0, self.itemsize
        for kind, n, m in self.sizes:
            own = _parameters(kind, n, m) * (16 + 3 * s)
            if kind == "quadratic" and init != "relinear":
                own = m * n * n * (8 + 5 * s) + 40 * n * n
            most = max(most, own)
        return most + self.n_parameters * s


@dataclass(frozen=True)
class SampleSizes:
    """How many bytes samples take: as the solver takes them, and before, where X is converted."""

    n_samples: int
    X: int
    Y: int
    converted: int = 0

    @classmethod
    def of(cls, X: Matrix, n_outputs: int, itemsize: int, converted: int = 0) -> Self:
        N = X.shape[0]
        return cls(N, matrix_bytes(X, itemsize), N * n_outputs * itemsize, converted)

    @property
    def all(self) -> int:
        return self.X + self.Y


def _parameters(kind: str, n: int, m: int) -> int:
    """How many numbers a layer of m neurons with n inputs holds: of Q its triangle."""
    return {
        "linear": m * (n + 1),
        "quadratic": m * (n * (n + 1) // 2 + n + 1),
        "reduced": 2 * m * (n + 1),
    }[kind]


def compressed_bytes(X: Matrix, itemsize: int) -> int:
    """What the compiled loop's own copy of X takes: only what is mostly zeros is copied."""
    if sparse.issparse(X):
        return 0
    count = int(np.count_nonzero(X))
    # an entry with its place, and the place once more as SciPy keeps it
    return count * (itemsize + 4 + 8) if count <= X.size // 2 else 0


def matrix_bytes(X: Matrix, itemsize: int) -> int:
    """What a copy of X takes, in numbers of so many bytes."""
    if sparse.issparse(X):
        return int(X.nnz * (itemsize + X.indices.itemsize) + X.indptr.nbytes)
    return int(X.shape[0] * X.shape[1] * itemsize)


def kept(needed: int) -> int:
    """What is needed, with what the allocator keeps of memory that was freed."""
    return needed + min(needed // 2, KEPT)


def check_answers(shape: Shape, n_samples: int, each: int, converted: int) -> None:
    """Raise MemoryLimitError if answers of `each` bytes, and a block of rows, would not fit."""
    check_limit(
        kept(n_samples * each + shape.block_bytes(n_samples, arrays=2) + converted),
        f"the answers for {n_samples:,} samples, {each:,} bytes each,",
        "Pass fewer samples at a time.",
    )


def check_backward(shape: Shape, n_samples: int, converted: int) -> None:
    """Raise MemoryLimitError if gradients, and a block of rows, would not fit."""
    own = 3 * shape.n_parameters * shape.itemsize
    check_limit(
        kept(own + shape.block_bytes(n_samples) + converted),
        f"{_largest_layer(shape)}; its gradients",
        _ways(shape),
    )


def check_creation(shape: Shape, init: str) -> None:
    """Raise MemoryLimitError if a new network would not fit."""
    check_limit(shape.drawing_bytes(init), f"{_largest_layer(shape)}; creating it", _ways(shape))


def check_training(shape: Shape, samples: SampleSizes, needed: int) -> None:
    """Raise MemoryLimitError if training needs more than the limit; names what is largest."""
    needed = kept(needed + samples.converted + PER_SAMPLE * samples.n_samples)
    data = samples.all + samples.converted
    if data < COPIES["adam"] * shape.n_parameters * shape.itemsize:
        check_limit(needed, f"{_largest_layer(shape)}; training", _ways(shape))
        return
    check_limit(
        needed,
        f"{samples.n_samples:,} samples of {shape.n_inputs:,} inputs and {shape.n_outputs:,} "
        f"outputs take {readable(data)} as arrays; training",
        "Train on fewer samples at a time (partial_fit), or in float32 (dtype).",
    )


def _largest_layer(shape: Shape) -> str:
    l, (kind, n, m) = max(enumerate(shape.sizes), key=lambda item: _parameters(*item[1]))
    numbers = _parameters(kind, n, m)
    return f"layer {l} ({kind}, {n:,} inputs, {m:,} neurons) has {numbers:,} parameters"


def _ways(shape: Shape) -> str:
    kind, *_ = max(shape.sizes, key=lambda size: _parameters(*size))
    if kind == "quadratic":
        return (
            "Two ways out: make this layer 'reduced' (layer_kinds; 2n + 2 parameters a neuron "
            "instead of n(n+1)/2), or put a smaller layer in front of it (hidden_layer_sizes)."
        )
    return "Make this layer smaller (hidden_layer_sizes), or select features first."
