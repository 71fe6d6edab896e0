"""The input column from which each output column of a preprocessing step is computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from quadric.checks import Array
from quadric.models._operations import Affine, Beside, OneHot, Operation, Select, width_after


@dataclass(frozen=True)
class Origin:
    """Where a column comes from.

    Attributes
    ----------
    column : int
        The input column, or -1 if the values are computed from several columns.
    encoding : int
        0 for most columns. The columns of one one-hot encoding share a positive number; at most one
        of them is 1 in a row, and the others are 0.
    """

    column: int
    encoding: int = 0


def unchanged(n: int) -> list[Origin]:
    """The origins of n columns before any operation."""
    return [Origin(i) for i in range(n)]


def origins_after(
    operations: Sequence[Operation], origins: list[Origin], numbers: "count[int] | None" = None
) -> list[Origin]:
    """The origins of the columns after the operations, given those before them."""
    numbers = count(1) if numbers is None else numbers
    for operation in operations:
        match operation:
            case Affine() if operation.A.ndim == 2:
                origins = [_of_sum(row, origins) for row in operation.A]
            case Select():
                origins = [origins[i] for i in operation.indices]
            case OneHot():
                encoded = [(o, c.width) for o, c in zip(origins, operation.columns, strict=True)]
                origins = []
                for origin, width in encoded:
                    origins += [Origin(origin.column, next(numbers))] * width
            case Beside():
                parts = [
                    origins_after(b.operations, [origins[i] for i in b.columns], numbers)
                    for b in operation.branches
                ]
                origins = [origin for part in parts for origin in part]
            case _:
                if width_after([operation], len(origins)) != len(origins):
                    raise AssertionError(f"{type(operation).__name__} changes the columns")
                origins = [Origin(origin.column) for origin in origins]
    return origins


def _of_sum(weights: Array, origins: list[Origin]) -> Origin:
    """The origin of a weighted sum of columns."""
    columns = {origins[i].column for i in np.flatnonzero(weights)}
    return Origin(columns.pop() if len(columns) == 1 else -1)
