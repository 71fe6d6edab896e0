"""Canonical JSON with one text for each value, a strict parser, and the hash of a file."""

import hashlib
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from quadric.errors import ModelFileError, expect

DEEPEST = 64
INT64 = range(-(2**63), 2**63)  # the integers that a model file can hold
# bytes per object that the parser creates, including the pointer to it
LIST, DICT, ENTRY, TEXT, NUMBER = 100, 190, 130, 57, 36
WIDE_TEXT, WIDE_CHARACTER = 25, 3  # in addition, if a character is not ASCII
KEY = re.compile(rb'"([^"\\]*)\\?":')


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

    Each type of object is counted by a character that is always part of it, so the text must not
    contain any of these characters as an escape (see `has_plain_escapes`). Equal keys share one
    object, unless they contain escapes.
    """
    keys = text.count(b":")
    texts = max(0, text.count(b'"') // 2 - keys)
    dicts = text.count(b"{")
    plain_keys, repeated = set(), 0
    for match in KEY.finditer(text):
        repeated += match[1] in plain_keys
        plain_keys.add(match[1])
    return (
        LIST * text.count(b"[")
        + DICT * dicts  # with room for a few entries
        + ENTRY * max(0, keys - 3 * dicts)
        + TEXT * (texts + keys - repeated)
        + NUMBER * max(0, text.count(b",") - texts)
        + _extra_for_wide_texts(text)
    )


def has_plain_escapes(text: bytes) -> bool:
    r"""Whether the text has no escapes except `\"` and `\\`, the only ones that a header needs."""
    rest = text.replace(rb"\\", b"")
    return rest.count(b"\\") == rest.count(rb"\"")


def _extra_for_wide_texts(text: bytes) -> int:
    r"""What strings with characters outside ASCII, written as `\\u....`, need in addition."""
    escape, quote = rb"\\u", rb"\\\""
    if quote in text and escape in text:  # a string may continue after a quote
        return WIDE_CHARACTER * len(text) + WIDE_TEXT * text.count(escape)
    needed, place = 0, text.find(escape)
    while place >= 0:
        begin, end = text.rfind(b'"', 0, place), text.find(b'"', place)
        needed += WIDE_TEXT + WIDE_CHARACTER * (end - begin)
        place = text.find(escape, end) if end >= 0 else -1
    return needed


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


# ---------------------------------------------------------------------------------- hash


def digest(
    text: Sequence[bytes | memoryview], tensors: Mapping[str, tuple[str, tuple[int, ...], Any]]
) -> str:
    """SHA-256 of the description and of every tensor's name, dtype, shape and bytes.

    The description is given as the pieces of its text.
    """
    sha = hashlib.sha256(struct.pack("<Q", sum(map(len, text))))
    for piece in text:
        sha.update(piece)
    for name in sorted(tensors):
        dtype, shape, content = tensors[name]
        entry = canonical([name, dtype, list(shape)]).encode("ascii")
        sha.update(struct.pack("<Q", len(entry)) + entry)
        sha.update(content)
    return sha.hexdigest()


def without_hash(text: bytes, claimed: Any) -> list[memoryview]:
    """The two pieces of text that were hashed, without copies."""
    field = f'"hash":"{claimed}",'.encode("ascii", "replace")
    place = text.find(field)
    expect(place >= 0, "its description is not canonical JSON")
    whole = memoryview(text)
    return [whole[:place], whole[place + len(field) :]]
