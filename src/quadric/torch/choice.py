"""Which form of a triangle is faster, from measurement: `python -m benchmarks.torch_forms`."""

from __future__ import annotations

import torch

__all__ = ["COMPILED", "MONOMIALS", "UNPACKED", "choose"]

COMPILED, UNPACKED, MONOMIALS = "compiled", "unpacked", "monomials"

# The compiled form wins wherever it is possible. Of the two that are made of torch's operations:
# the work of monomials beside the products does not grow with the number of neurons, that of an
# unpacked block does; so monomials win from some number on. Where, was measured for batches of
# 32, 256 and 2048, between which it moves little.
NEURONS_FROM = {4: 4, 8: 16, 16: 24, 32: 32}  # inputs, up to: neurons, from
OTHERWISE = 48


def choose(n: int, m: int, dtype: torch.dtype) -> str:
    """The form for n inputs and m neurons where the compiled one is not possible."""
    if dtype == torch.float16:  # in which the squares of inputs above 256 are infinite
        return UNPACKED
    least = next((m for most, m in NEURONS_FROM.items() if n <= most), OTHERWISE)
    return MONOMIALS if m >= least else UNPACKED
