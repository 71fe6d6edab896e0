"""The hash of a model file: SHA-256 of its description and its tensors."""

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from quadric.model_file._canonical_json import canonical, expect


def digest(text: str, tensors: Mapping[str, tuple[str, tuple[int, ...], Any]]) -> str:
    """SHA-256 of the description and of every tensor's name, dtype, shape and bytes."""
    found = hashlib.sha256(struct.pack("<Q", len(text)))
    found.update(text.encode("ascii"))
    for name in sorted(tensors):
        dtype, shape, content = tensors[name]
        entry = canonical([name, dtype, list(shape)]).encode("ascii")
        found.update(struct.pack("<Q", len(entry)) + entry)
        found.update(content)
    return found.hexdigest()


def without_hash(text: str, claimed: Any) -> str:
    """The text that was hashed; serializing the description again would take more memory."""
    before, found, after = text.partition(f'"hash":"{claimed}",')
    expect(found and text.isascii(), "its description is not canonical JSON")
    return before + after
