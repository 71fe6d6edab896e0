"""Which form of a triangle is faster, from measurement: `python -m benchmarks.torch_forms`."""

from __future__ import annotations

__all__ = ["MONOMIALS", "UNPACKED", "choose"]

UNPACKED, MONOMIALS = "unpacked", "monomials"


def choose(n: int, m: int) -> str:
    """The form for n inputs and m neurons."""
    return MONOMIALS if m >= 48 else UNPACKED
