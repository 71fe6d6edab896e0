"""Checks of JSON values that are read from a file: types, ranges and fields."""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

Check = Callable[[Any], bool]


def expect(condition: bool, what: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} is not valid")


def check_fields(
    state: Any, fields: Mapping[str, Check], what: str, optional: Collection[str] = ()
) -> None:
    """Raise ValueError unless `state` is a dict of these fields whose values pass their checks."""
    expect(isinstance(state, dict), what)
    missing, unknown = set(fields) - set(state) - set(optional), set(state) - set(fields)
    if missing or unknown:
        raise ValueError(
            f"{what} has missing or unknown fields: {', '.join(sorted(missing | unknown))[:200]}"
        )
    for name, value in state.items():
        expect(fields[name](value), f"{name!r} in {what}")


def anything(value: Any) -> bool:
    return True


def is_text(value: Any) -> bool:
    return type(value) is str


def is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_count(value: Any) -> bool:
    """Whether this is a whole number from 0 to 2**53."""
    return type(value) is int and 0 <= value <= 2**53


def is_number(value: Any, most: float = sys.float_info.max) -> bool:
    """Whether this is a finite number of at most this size."""
    return type(value) in (int, float) and abs(value) <= most


def is_distinct_texts(value: Any) -> bool:
    """Whether this is a list of distinct strings."""
    return is_list(value) and all(map(is_text, value)) and len(set(value)) == len(value)


def one_of(*choices: str) -> Check:
    """Return a check for one of these strings."""
    return lambda value: value in choices
