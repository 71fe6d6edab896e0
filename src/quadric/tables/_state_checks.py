"""Checks of JSON values that are read from a file: types, ranges and fields."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

Check = type | Callable[[Any], bool]


def expect(condition: bool, what: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} is not valid")


def check_fields(
    state: Any, fields: Mapping[str, Check], what: str, optional: Collection[str] = ()
) -> None:
    """Raise ValueError unless `state` is a dict of these fields with valid values.

    A field is checked by its type or by a function.
    """
    expect(isinstance(state, dict), what)
    wrong = (set(fields) ^ set(state)) - set(optional)
    if wrong:
        raise ValueError(f"{what} has missing or unknown fields: {', '.join(sorted(wrong))[:200]}")
    for name, value in state.items():
        check = fields[name]
        valid = type(value) is check if isinstance(check, type) else check(value)
        expect(valid, f"{name!r} in {what}")


def is_count(value: Any) -> bool:
    """Whether this is a whole number from 0 to 2**53."""
    return type(value) is int and 0 <= value <= 2**53


def is_distinct_texts(value: Any) -> bool:
    """Whether this is a list of distinct strings."""
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return texts and len(set(value)) == len(value)


def in_range(least: float, most: float) -> Check:
    """Return a check for a number in this range."""
    return lambda value: type(value) in (int, float) and least <= value <= most


def one_of(*choices: str) -> Check:
    """Return a check for one of these strings."""
    return lambda value: value in choices
