"""What flows through the preprocessing: a matrix of numbers, or single columns of any type."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadric.onnx._graph import Graph

MISSING_TEXT = ""  # ONNX has no missing text: an empty one stands for it


@dataclass(frozen=True)
class Matrix:
    """A tensor of shape (batch, width), in the graph's dtype."""

    tensor: str
    width: int


@dataclass(frozen=True)
class Column:
    """A tensor of shape (batch, 1); kind is 'float', 'string', or 'int64' (categories).

    The kind of a column that no step uses is None: the graph has no such tensor.
    `complete`: missing values have been replaced.
    """

    tensor: str
    kind: str | None
    complete: bool = False


Table = Matrix | list[Column]


def as_matrix(graph: Graph, table: Table) -> Matrix:
    """The numbers of a table side by side."""
    if isinstance(table, Matrix):
        return table
    if any(column.kind != "float" for column in table):
        raise TypeError("a step wants numbers and is given text or categories")
    tensors = [column.tensor for column in table]
    joined = tensors[0] if len(tensors) == 1 else graph.add("Concat", *tensors, axis=1)
    return Matrix(joined, len(table))


def as_columns(graph: Graph, table: Table) -> list[Column]:
    if isinstance(table, list):
        return table
    single = (as_matrix(graph, pick(graph, table, [j])) for j in range(table.width))
    return [Column(column.tensor, "float") for column in single]


def pick(graph: Graph, table: Table, indices: Sequence[int]) -> Table:
    """Some columns, in this order."""
    if isinstance(table, list):
        return [table[j] for j in indices]
    if list(indices) == list(range(table.width)):
        return table
    where = graph.constant(np.asarray(indices, dtype=np.int64))
    return Matrix(graph.add("Gather", table.tensor, where, axis=1), len(indices))


def beside(graph: Graph, parts: Sequence[Table]) -> Table:
    """Tables side by side; columns stay single only where some are not real numbers."""
    if any(isinstance(part, list) and any(c.kind != "float" for c in part) for part in parts):
        return [column for part in parts for column in as_columns(graph, part)]
    matrices = [as_matrix(graph, part) for part in parts]
    if len(matrices) == 1:
        return matrices[0]
    joined = graph.add("Concat", *(matrix.tensor for matrix in matrices), axis=1)
    return Matrix(joined, sum(matrix.width for matrix in matrices))
