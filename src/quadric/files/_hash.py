"""The hash of a model file: SHA-256 of its description and its tensors."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from quadric.files._canonical_json import canonical, expect


def digest(
    text: Sequence[bytes | memoryview], tensors: Mapping[str, tuple[str, tuple[int, ...], Any]]
) -> str:
    """SHA-256 of the description and of every tensor's name, dtype, shape and bytes.

    The description is given as the pieces of its text.
    """
    found = hashlib.sha256(struct.pack("<Q", sum(map(len, text))))
    for piece in text:
        found.update(piece)
    for name in sorted(tensors):
        dtype, shape, content = tensors[name]
        entry = canonical([name, dtype, list(shape)]).encode("ascii")
        found.update(struct.pack("<Q", len(entry)) + entry)
        found.update(content)
    return found.hexdigest()


def without_hash(text: bytes, claimed: Any) -> list[memoryview]:
    """The two pieces of text that were hashed, without copies."""
    field = f'"hash":"{claimed}",'.encode("ascii", "replace")
    place = text.find(field)
    expect(place >= 0, "its description is not canonical JSON")
    whole = memoryview(text)
    return [whole[:place], whole[place + len(field) :]]
