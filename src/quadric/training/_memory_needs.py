"""Estimates of the memory that training needs, computed from shapes before allocating anything.

The estimates are upper bounds on the memory that `tests/support/memory.py` measures, and
exceed it by at most 20 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Self

import numpy as np
from scipy import sparse

from quadric.checks import Matrix
from quadric.core import LAYERS, Layer, Stack, block_rows, columns_needed
from quadric.training._divergence import LOSS_ROWS
from quadric.training._run import Options, Samples
from quadric.utils import check_limit, readable

COPIES = 9  # number of copies of all parameters in 'adam' and 'sgd', including temporaries
LBFGS_COPIES = 25  # the same for 'lbfgs', in float64; each correction pair adds two
PADDING = 64  # bytes; the compiled loop pads rows of neurons to a multiple of this
PER_SAMPLE = 100  # bytes per sample for labels, weights and orders
KEPT = 2**26  # bytes that the allocator may keep after they are freed


@dataclass(frozen=True)
class Architecture:
    """Number of inputs, (kind, neurons) of each layer, and the bytes per number."""

    n_inputs: int
    layers: Sequence[tuple[str, int]]
    itemsize: int

    @classmethod
    def of(cls, layers: Sequence[Layer], itemsize: int | None = None) -> Self:
        """Return the architecture of layers; `itemsize` is theirs by default."""
        shapes = tuple([(layer.kind, layer.n_outputs) for layer in layers])
        return cls._known(layers[0].n_inputs, shapes, itemsize or layers[0].dtype.itemsize)

    @classmethod
    @lru_cache(maxsize=128)  # so that the prediction of a single row takes less time
    def _known(cls, n_inputs: int, layers: Sequence[tuple[str, int]], itemsize: int) -> Self:
        return cls(n_inputs, layers, itemsize)

    @cached_property
    def sizes(self) -> list[tuple[str, int, int]]:
        """(kind, inputs, neurons) of each layer."""
        inputs = [self.n_inputs, *(m for _, m in self.layers)]
        return [(kind, n, m) for n, (kind, m) in zip(inputs, self.layers, strict=False)]

    @cached_property
    def n_parameters(self) -> int:
        return sum(_n_parameters(*size) for size in self.sizes)

    @property
    def n_outputs(self) -> int:
        return self.layers[-1][1]

    @cached_property
    def block_rows(self) -> int:
        """Number of rows that are computed at once."""
        return block_rows(max(columns_needed(*size) for size in self.sizes))

    def block_bytes(self, n_samples: int, arrays: int = 5) -> int:
        """Return the bytes of one block of rows, with `arrays` arrays per layer."""
        rows = min(n_samples, self.block_rows)
        numbers = arrays * sum(m for _, m in self.layers) + (arrays - 1) * self.n_outputs
        numbers += self.n_inputs if self.layers[0][0] == "quadratic" else 0
        return rows * numbers * self.itemsize

    def solver_bytes(self, options: Options, X: Matrix) -> int:
        """Return the bytes that the solver needs beyond the samples."""
        p, s, block = self.n_parameters, self.itemsize, self.block_bytes(X.shape[0])
        if options.solver == "lbfgs":  # L-BFGS also squares X
            return max((LBFGS_COPIES + 2 * options.pairs) * 8 * p + block, matrix_bytes(X, 8))
        # rows copied at once: those of a batch, or those that `Watch` evaluates
        most = options.batch_size if sparse.issparse(X) else max(options.batch_size, LOSS_ROWS)
        rows = min(most, X.shape[0]) * (self.n_inputs + self.n_outputs) * s
        if not options.per_sample:
            return COPIES * p * s + block + rows
        unit = PADDING // s
        padded = sum(_n_parameters(kind, n, -(-m // unit) * unit) for kind, n, m in self.sizes)
        return (5 * padded + 5 * p) * s + block + rows + _compressed_bytes(X, s)

    def drawing_bytes(self, init: str) -> int:
        """Return the bytes needed to draw initial values, in float64 and with full matrices Q."""
        s = self.itemsize
        of_layers = (
            m * n * n * (8 + 5 * s) + 40 * n * n
            if kind == "quadratic" and init != "relinear"
            else _n_parameters(kind, n, m) * (16 + 3 * s)
            for kind, n, m in self.sizes
        )
        return max(of_layers) + self.n_parameters * s


def _n_parameters(kind: str, n: int, m: int) -> int:
    return sum(prod(shape) for shape in LAYERS[kind].shapes(n, m).values())


def _compressed_bytes(X: Matrix, itemsize: int) -> int:
    """Return the bytes of the compiled loop's CSR copy of an X that is mostly zeros."""
    if sparse.issparse(X):
        return 0
    count = int(np.count_nonzero(X))
    # each entry, its column, and the column again as SciPy stores it
    return count * (itemsize + 4 + 8) if count <= X.size // 2 else 0


def matrix_bytes(X: Matrix, itemsize: int) -> int:
    """Return the bytes of a copy of X with `itemsize` bytes per number."""
    if sparse.issparse(X):
        return int(X.nnz * (itemsize + X.indices.itemsize) + X.indptr.nbytes)
    return int(X.shape[0] * X.shape[1] * itemsize)


def converted_bytes(given: Any, X: Matrix) -> int:
    """Return the bytes of X if it is a converted copy of `given`, else 0."""
    return 0 if X is given else matrix_bytes(X, X.dtype.itemsize)


def _with_freed(needed: int) -> int:
    """Return the bytes needed, plus the freed memory that the allocator may keep."""
    return needed + min(needed // 2, KEPT)


def check_answers(network: Architecture, n_samples: int, each: int, converted: int) -> None:
    """Raise MemoryLimitError if a block and `each` bytes per sample do not fit in memory."""
    check_limit(
        _with_freed(n_samples * each + network.block_bytes(n_samples, arrays=2) + converted),
        f"the predictions for {n_samples:,} samples, {each:,} bytes each,",
        "Pass fewer samples at a time.",
    )


def check_backward(network: Architecture, n_samples: int, converted: int) -> None:
    """Raise MemoryLimitError if the gradients and a block of rows do not fit in memory."""
    own = 3 * network.n_parameters * network.itemsize + network.block_bytes(n_samples)
    _check_network(network, _with_freed(own + converted), "its gradients")


def check_creation(network: Architecture, init: str) -> None:
    """Raise MemoryLimitError if a new network does not fit in memory."""
    _check_network(network, network.drawing_bytes(init), "creating it")


def check_fit(stack: Stack, samples: Samples, options: Options, *, given: Any) -> None:
    """Raise MemoryLimitError if `Network.fit`, called with `given` as X, exceeds the limit."""
    network, X = Architecture.of(stack.layers), samples.X
    needed, itemsize = network.solver_bytes(options, X), network.itemsize
    if samples.offset is not None:
        shifted = len(samples)  # rows of X that are copied at once to add the offset
        if options.solver == "lbfgs":  # squares X after the offset has made it dense
            needed = max(needed, 8 * prod(X.shape))
        elif not options.per_sample:
            shifted = min(options.batch_size, shifted)
        elif sparse.issparse(X) or _compressed_bytes(X, itemsize):
            shifted = 0  # the compiled loop adds the offset to sparse rows itself
        needed += shifted * X.shape[1] * itemsize
    check_training(network, X, needed, converted_bytes(given, X))


def check_training(network: Architecture, X: Matrix, needed: int, converted: int) -> None:
    """Raise MemoryLimitError, naming the largest part, if training needs more than the limit.

    `converted` is the size of the converted copy of X, if there is one.
    """
    n_samples, s = X.shape[0], network.itemsize
    needed = _with_freed(needed + converted + PER_SAMPLE * n_samples)
    data = matrix_bytes(X, s) + n_samples * network.n_outputs * s + converted
    if data < COPIES * network.n_parameters * network.itemsize:
        _check_network(network, needed, "training")
    else:
        check_limit(
            needed,
            f"{n_samples:,} samples of {network.n_inputs:,} inputs and "
            f"{network.n_outputs:,} outputs take {readable(data)} as arrays; training",
            "Train on fewer samples at a time (partial_fit), or in float32 (dtype).",
        )


def _check_network(network: Architecture, needed: int, purpose: str) -> None:
    """Check the limit; the error names the largest layer and suggests how to make it smaller."""
    l, (kind, n, m) = max(enumerate(network.sizes), key=lambda item: _n_parameters(*item[1]))
    ways = "Make this layer smaller (hidden_layer_sizes), or select features first."
    if kind == "quadratic":
        ways = (
            "Either make this layer 'reduced' (layer_kinds; 2n + 2 parameters per neuron instead "
            "of n(n+1)/2 + n + 1), or put a smaller layer in front of it (hidden_layer_sizes)."
        )
    check_limit(
        needed,
        f"layer {l} ({kind}, {n:,} inputs, {m:,} neurons) has {_n_parameters(kind, n, m):,} "
        f"parameters; {purpose}",
        ways,
    )
