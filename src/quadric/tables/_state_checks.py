"""Checks of plain values that come from a file: each raises ValueError and names what is wrong."""

import math
from collections.abc import Collection
from typing import Any


def require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} is not as it should be")


def check_fields(
    state: Any, names: Collection[str], what: str, optional: Collection[str] = ()
) -> None:
    """A dict with just these keys."""
    require(isinstance(state, dict), what)
    missing, more = set(names) - set(state) - set(optional), set(state) - set(names)
    if missing or more:
        raise ValueError(f"{what} has other fields: {', '.join(sorted(missing | more))[:200]}")


def check_whole(value: Any, what: str, *, least: int = 0, most: int = 2**53) -> None:
    require(type(value) is int and least <= value <= most, what)


def check_number(value: Any, what: str, *, most: float = math.inf) -> None:
    """A finite number, at most so large."""
    require(type(value) in (int, float) and math.isfinite(value) and abs(value) <= most, what)


def check_names(values: Any, what: str) -> None:
    """A list of different texts."""
    require(isinstance(values, list) and all(type(name) is str for name in values), what)
    require(len(set(values)) == len(values), what)
