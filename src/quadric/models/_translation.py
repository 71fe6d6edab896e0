"""What translators of operations share: the kinds of the columns, and the walk over the steps.

`onnx` translates operations to nodes of a graph, and `codegen` to expressions.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from quadric.models._operations import (
    Affine,
    Beside,
    Impute,
    OneHot,
    Operation,
    Ordinal,
    Select,
    is_missing,
)

Features = TypeVar("Features")
Kinds = list[str | None]
GENERALITY = ("int64", "float", "string")  # a column used as two kinds gets the more general one


def translated(
    steps: dict[str, list[Operation]],
    features: Features,
    translate: Callable[[Features, Operation], Features],
) -> Features:
    """Return the features after all steps; `translate` applies one operation to features.

    A TypeError or ValueError names the step.
    """
    for name, inside in steps.items():
        try:
            features = reduce(translate, inside, features)
        except UnicodeEncodeError:
            raise
        except (TypeError, ValueError) as error:
            raise type(error)(f"step {name!r} cannot be exported: {error}") from None
    return features


def kind_of_values(values: Any) -> str:
    """Return 'string', 'int64' or 'float', the type of a column with these categories."""
    array = np.asarray(values)
    present = [value for value in array if not is_missing(value)]
    if any(isinstance(value, str) for value in present):
        return "string"
    whole = all(isinstance(value, (bool, int, np.integer, np.bool_)) for value in present)
    return "int64" if whole and len(present) == len(array) else "float"


def kinds_before(operations: Sequence[Operation], kinds: Kinds) -> Kinds:
    """Return the kinds of the columns before the operations, given the kinds needed after them."""
    for operation in reversed(operations):
        match operation:
            case OneHot() | Ordinal():
                kinds = [kind_of_values(column.values) for column in operation.columns]
            case Impute():  # whole numbers with missing values are floats
                kinds = ["string" if isinstance(v, str) else "float" for v in operation.fill]
            case Affine():
                kinds = ["float"] * len(operation.center)
            case Select():
                kinds = _combined([(operation.indices, kinds)], operation.n)
            case Beside():
                branches = [
                    (branch.columns, kinds_before(branch.operations, part))
                    for branch, part in operation.split(kinds)
                ]
                kinds = _combined(branches, operation.n)
            case _:
                kinds = ["float"] * len(kinds)
    return kinds


def _combined(parts: Iterable[tuple[Any, Kinds]], n: int) -> Kinds:
    """Return, for each of n columns, the most general kind that the parts need, or None."""
    kinds: Kinds = [None] * n
    for columns, needed in parts:
        for i, kind in zip(columns, needed, strict=True):
            kinds[i] = max(filter(None, (kinds[i], kind)), key=GENERALITY.index, default=None)
    return kinds
