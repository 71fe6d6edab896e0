"""Sums over rows that do not depend on how the rows are divided.

Rows belong to blocks of `BLOCK_ROWS` rows in their global order, and sums follow a fixed binary
tree over the numbers of the blocks. Whoever holds a contiguous range of blocks adds what the tree
adds within that range. The remaining additions are the same for every division, so that the
results are bit-identical for any number of ranges.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix
from quadric.core import Stack, parameters
from quadric.training._run import Samples

BLOCK_ROWS = 4096


class Block(NamedTuple):
    """Consecutive rows: inputs, targets or codes of classes, and weights."""

    X: Matrix
    y: Array | None
    weight: Array | None


# Sums over all rows of a value that is computed from each block: `total(function, *arguments)` is
# the sum of `function(block, *arguments)`, which are 1-d arrays of float64.
Total: TypeAlias = Callable[..., Array]

# ---- the tree --------------------------------------------------------------------------------


class Node(NamedTuple):
    """The sum over the blocks from `start` to `start + size`, as far as they exist.

    `size` is a power of two, and `start` is a multiple of it.
    """

    start: int
    size: int
    total: Array


def add_node(nodes: list[Node], node: Node) -> None:
    """Append the next node of a range to a list, and replace siblings by their parent."""
    nodes.append(node)
    while len(nodes) > 1 and nodes[-2].size == node.size and not nodes[-2].start % (2 * node.size):
        left = nodes[-2]
        nodes[-2:] = [Node(left.start, 2 * left.size, left.total + node.total)]
        node = nodes[-1]


def nodes_of(start: int, values: Iterable[Array]) -> list[Node]:
    """Return the few nodes that cover a range of blocks, from the values of its blocks."""
    nodes: list[Node] = []
    for number, value in enumerate(values, start):
        add_node(nodes, Node(number, 1, value))
    return nodes


def total_of(ranges: Iterable[Sequence[Node]]) -> Array:
    """Return the sum over all blocks from the nodes of ranges, in the order of the blocks."""
    nodes: list[Node] = []
    for some in ranges:
        for node in some:
            add_node(nodes, node)
    total = nodes.pop().total
    while nodes:  # the right siblings of these have no blocks beyond the last one
        total = nodes.pop().total + total
    return total


def divide(n_blocks: int, shares: Sequence[int]) -> list[int]:
    """Return where ranges begin and end, in proportion to the shares.

    The limits are multiples of a power of two, so that few nodes cover each range.
    """
    unit = 1
    while unit * 32 * len(shares) <= n_blocks:
        unit *= 2
    ends = np.cumsum(shares) / sum(shares) * n_blocks
    return [0, *(round(end / unit) * unit for end in ends[:-1]), n_blocks]


# ---- samples in blocks -----------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How a block becomes samples.

    Attributes
    ----------
    dtype : dtype
        The dtype of the inputs and targets.
    n_outputs : int
    n_classes : int
        The targets are codes of this many classes; 0 if they are numbers.
    class_weight : array of shape (n_classes,), optional
    mean, scale : arrays of shape (n_outputs,), optional
        For targets that are standardized.
    """

    dtype: np.dtype[Any]
    n_outputs: int
    n_classes: int = 0
    class_weight: Array | None = None
    mean: Array | None = None
    scale: Array | None = None

    def samples(self, block: Block) -> Samples:
        """Return the samples of a block."""
        X, y, weight = block
        assert y is not None
        if not sparse.issparse(X):
            X = np.ascontiguousarray(X, self.dtype)
        elif X.dtype != self.dtype:
            X = X.astype(self.dtype)
        if self.n_classes:
            last = max(self.n_classes, 2)  # the only class of all samples is not the last of two
            Y = (y[:, None] == np.arange(last - self.n_outputs, last)).astype(self.dtype)
            if self.class_weight is not None:
                by_class = self.class_weight[y]
                weight = by_class if weight is None else weight * by_class
        else:
            Y = y.reshape(len(y), self.n_outputs)
            if self.mean is not None:
                Y = (Y - self.mean) / self.scale
            Y = Y.astype(self.dtype)
        return Samples(X, Y, None if weight is None else weight.astype(self.dtype))


@dataclass(frozen=True)
class BlockSamples:
    """Samples in blocks that may be anywhere; the engine only needs sums over them.

    Parameters
    ----------
    n_samples, n_inputs : int
    total : callable
        See `Total`.
    encoding : Encoding
    some : Samples
        Some of the samples, for choices that do not need all of them.
    """

    n_samples: int
    n_inputs: int
    total: Total
    encoding: Encoding
    some: Samples | None = None
    weight: None = field(default=None, init=False)

    def __len__(self) -> int:
        return self.n_samples

    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.total(_weights, self.encoding)[0])

    def mean_squares(self) -> Array:
        """The mean square of each input."""
        return self.total(_squares) / self.n_samples

    def moments(self, *, centered: bool) -> tuple[Array, Array]:
        """Weighted mean and standard deviation of each target; without `centered`, around 0."""
        count = self.total_weight()
        mean = self.total(_targets, self.encoding) / count
        mean = mean if centered else np.zeros_like(mean)
        squares = self.total(_squared_targets, self.encoding, mean)
        return mean, np.sqrt(squares / count)

    def standardized(self, mean: Array, scale: Array) -> Self:
        """Return the samples with standardized targets."""
        encoding = replace(self.encoding, mean=mean, scale=scale)
        return replace(self, encoding=encoding)

    def mean_and_gradient(self, stack: Stack, divisor: float) -> tuple[float, Array]:
        """Return the sum of weight times loss, and its gradient, both divided by `divisor`."""
        found = self.total(_share, self.encoding, stack, divisor)
        return float(found[0]), found[1:]


def _share(block: Block, encoding: Encoding, stack: Stack, divisor: float) -> Array:
    """The block's share of the mean loss, followed by its gradient in the order of the layers."""
    samples = encoding.samples(block)
    mean, grads = stack.gradients(samples.X, samples.Y, samples.weight, divisor=divisor)
    return np.concatenate([[mean], *(array.ravel() for array in parameters(grads))], dtype=float)


def _weights(block: Block, encoding: Encoding) -> Array:
    samples = encoding.samples(block)
    weight = samples.weight
    return np.array([len(samples) if weight is None else weight.sum(dtype=np.float64)], dtype=float)


def _squares(block: Block) -> Array:
    X = block.X
    squares = X.multiply(X) if sparse.issparse(X) else np.square(X, dtype=np.float64)
    return np.asarray(squares.sum(axis=0), dtype=np.float64).ravel()


def _targets(block: Block, encoding: Encoding) -> Array:
    samples = encoding.samples(block)
    return _weighted(samples, samples.Y.astype(np.float64))


def _squared_targets(block: Block, encoding: Encoding, mean: Array) -> Array:
    samples = encoding.samples(block)
    return _weighted(samples, np.square(samples.Y - mean))


def _weighted(samples: Samples, values: Array) -> Array:
    """The sum of weight times value for each column."""
    if samples.weight is not None:
        values = values * samples.weight[:, None]
    result: Array = values.sum(axis=0)
    return result
