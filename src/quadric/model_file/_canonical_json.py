"""JSON with one spelling for each value, and a reader that believes nothing."""

import json
import math
import re
from typing import Any

from quadric.errors import ModelFileError

DEEPEST = 64
# bytes of the parser's objects, with the pointers to them
LIST, DICT, ENTRY, TEXT, NUMBER = 100, 190, 80, 57, 36
KEY = re.compile(rb'"([^"\\]*)\\?":')


def canonical(value: Any) -> str:
    """The one spelling: sorted keys, no blanks, ASCII, floats by their shortest digits."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def parse(text: str) -> Any:
    """The value, or ModelFileError: no repeated keys, no NaN, no deep nesting."""
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constants, parse_float=_finite
        )
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

    Each kind of object is counted by a character that it cannot be written without. A key that
    occurs often is kept once.
    """
    keys = text.count(b":")
    texts = max(0, text.count(b'"') // 2 - keys)
    commas = text.count(b",")
    different = len({match[1] for match in KEY.finditer(text)})
    dicts = text.count(b"{")
    return (
        LIST * text.count(b"[")
        + DICT * dicts  # with room for a few entries
        + ENTRY * max(0, keys - 3 * dicts)
        + TEXT * (texts + different)
        + NUMBER * max(0, commas - texts)
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ModelFileError("a name stands twice in the description")
    return made


def _no_constants(name: str) -> Any:
    raise ModelFileError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ModelFileError(f"{digits[:30]} is too large a number")
    return value


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
