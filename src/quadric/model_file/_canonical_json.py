"""Canonical JSON with one representation for each value, a strict parser, and `expect`."""

import json
import math
import re
from typing import Any

from quadric.errors import ModelFileError

DEEPEST = 64
INT64 = range(-(2**63), 2**63)  # the integers that a model file can hold
# bytes per object that the parser creates, including the pointer to it
LIST, DICT, ENTRY, TEXT, NUMBER = 100, 190, 80, 57, 36
KEY = re.compile(rb'"([^"\\]*)\\?":')


def expect(condition: object, problem: str) -> None:
    """Raise ModelFileError with a description of the problem unless the condition is true."""
    if not condition:
        raise ModelFileError(problem)


def canonical(value: Any) -> str:
    """The canonical text: sorted keys, no whitespace, ASCII only, shortest form of each float."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def parse(text: str) -> Any:
    """Parse the text; raise ModelFileError for repeated keys, NaN, infinity or deep nesting."""
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constants, parse_float=_finite
        )
    except RecursionError:
        raise ModelFileError("the description is nested too deeply") from None
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the description is not valid JSON ({error})") from None
    _check_depth(value)
    return value


def memory_estimate(text: bytes) -> int:
    """An upper estimate of the bytes that `parse` needs, computed without parsing.

    Each type of object is counted by a character that is always part of it. Equal keys share one
    object.
    """
    keys = text.count(b":")
    texts = max(0, text.count(b'"') // 2 - keys)
    dicts = text.count(b"{")
    return (
        LIST * text.count(b"[")
        + DICT * dicts  # with room for a few entries
        + ENTRY * max(0, keys - 3 * dicts)
        + TEXT * (texts + len({match[1] for match in KEY.finditer(text)}))
        + NUMBER * max(0, text.count(b",") - texts)
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    expect(len(made) == len(pairs), "the description contains a repeated key")
    return made


def _no_constants(name: str) -> Any:
    raise ModelFileError(f"{name} is not valid JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    expect(math.isfinite(value), f"the number {digits[:30]} is too large")
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
    expect(not level, f"the description is nested more than {DEEPEST} levels deep")
