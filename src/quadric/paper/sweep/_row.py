"""A finished run as the values of a row, and back: only what was written comes back."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

from quadric.paper.sweep._environment import Environment
from quadric.paper.sweep._recipe import Recipe
from quadric.paper.sweep._task import Result, Task

Key = tuple[str, str, str]  # the recipe, the engine and the checksum of the data

# Of the columns of the table `runs`, in their order.
TYPES = (
    str, str, str,  # the key
    int, int, str, int,  # the task
    str, float, int,  # the result; its accuracies as JSON
    str, str, str, str, str,  # the environment
    str,  # when it was finished
    str,  # the digest of all others
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A finished run as it is stored; `finished_at` is in UTC, as ISO 8601 writes it."""

    task: Task
    result: Result
    environment: Environment
    finished_at: str


def to_values(key: Key, row: Row) -> tuple[Any, ...]:
    # JSON writes the shortest text that reads back as the same number
    result = (json.dumps(row.result.accuracies), float(row.result.seconds), row.result.steps)
    values = (*key, *astuple(row.task), *result, *astuple(row.environment), row.finished_at)
    return (*values, digest(values))


def from_values(values: Sequence[Any]) -> tuple[Key, Row]:
    """The run of these values; ValueError, or TypeError, if it is none."""
    if tuple(map(type, values)) != TYPES:
        raise ValueError("a value has another type")
    if values[-1] != digest(values[:-1]):
        raise ValueError("the digest is that of other values")
    accuracies, seconds, steps = json.loads(values[7]), *values[8:10]
    if not isinstance(accuracies, list) or not all(
        type(number) is float and 0 <= number <= 1 for number in accuracies
    ):
        raise ValueError("accuracies must be numbers from 0 to 1")
    if not (0 <= seconds < math.inf and steps >= 0):
        raise ValueError("seconds and steps must be finite and not negative")
    datetime.fromisoformat(values[15])
    row = Row(
        Task(*values[3:7]),
        Result(tuple(accuracies), seconds, steps),
        Environment(*values[10:15]),
        values[15],
    )
    return (values[0], values[1], values[2]), row


def check_whole(row: Row, recipe: Recipe) -> None:
    if len(row.result.accuracies) != len(recipe.epochs):
        raise ValueError(
            f"the recipe asks for {len(recipe.epochs)} accuracies, and there are "
            f"{len(row.result.accuracies)}"
        )


def digest(values: Sequence[Any]) -> str:
    """So that damage that leaves a plausible number does not pass; no protection from forgery."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
