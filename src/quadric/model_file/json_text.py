"""JSON with one spelling for each value, and a reader that believes nothing."""

from __future__ import annotations

import json
from typing import Any

from quadric.errors import ModelFileError

__all__ = ["canonical", "memory_estimate", "parse"]

DEEPEST = 64
# of a list, a dict, a text (two quotes), an entry of a list, and an entry of a dict, with pointers
SIZES = {b"[": 65, b"{": 190, b'"': 28, b",": 36, b":": 60}


def canonical(value: Any) -> str:
    """The one spelling: sorted keys, no blanks, ASCII, floats by their shortest digits."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def parse(text: str) -> Any:
    """The value, or ModelFileError: no repeated keys, no NaN, no deep nesting."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constants)
    except RecursionError:
        raise ModelFileError("the description is nested too deeply") from None
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the description is not JSON ({error})") from None
    _check_depth(value)
    return value


def memory_estimate(text: bytes) -> int:
    """An upper estimate of the bytes that `parse` takes for its objects, from a look at the text.

    Each kind of object is counted by a character that it cannot be written without.
    """
    return sum(size * text.count(mark) for mark, size in SIZES.items())


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ModelFileError("a name stands twice in the description")
    return made


def _no_constants(name: str) -> Any:
    raise ModelFileError(f"{name} is not JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise ModelFileError(f"the description is nested more than {DEEPEST} levels deep")
