"""Which form of a triangle is faster, from measurement: `python -m benchmarks.torch_forms`."""

from __future__ import annotations

__all__ = ["MONOMIALS", "UNPACKED", "choose"]

UNPACKED, MONOMIALS = "unpacked", "monomials"

# The work of monomials beside the products does not grow with the number of neurons, that of an
# unpacked block does; so monomials win from some number on. Where, was measured for batches of 32,
# 256 and 2048, between which it moves little.
NEURONS_FROM = {4: 4, 8: 16, 16: 24, 32: 32}  # inputs, up to: neurons, from
OTHERWISE = 48


def choose(n: int, m: int) -> str:
    """The form for n inputs and m neurons."""
    least = next((m for most, m in NEURONS_FROM.items() if n <= most), OTHERWISE)
    return MONOMIALS if m >= least else UNPACKED
