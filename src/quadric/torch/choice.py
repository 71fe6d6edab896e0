"""Which form of a triangle is faster, from measurement: `python -m benchmarks.torch_forms`."""

from __future__ import annotations

import torch

__all__ = ["COMPILED", "MONOMIALS", "UNPACKED", "choose"]

COMPILED, UNPACKED, MONOMIALS = "compiled", "unpacked", "monomials"

# The compiled form wins wherever it is possible, but for one or two neurons with large batches of
# many inputs: its loops take four neurons at once.
FEW_NEURONS, LARGE_BATCH = 2, 2**18  # neurons, up to: samples times inputs^2, for one neuron

# Of the two that are made of torch's operations: the work of monomials beside the products does not
# grow with the number of neurons, that of an unpacked block does; so monomials win from some number
# on. Where, was measured for batches of 32, 256 and 2048, between which it moves little but for 128
# inputs, where this is at worst twice as slow as the better one.
NEURONS_FROM = {4: 4, 8: 16, 16: 24, 32: 32, 64: 48}  # inputs, up to: neurons, from
OTHERWISE = 64


def choose(B: int, n: int, m: int, dtype: torch.dtype, *, compiled: bool) -> str:
    """The form for B samples, n inputs of a block and m neurons.

    `compiled` says whether the compiled one is possible.
    """
    if compiled and (m > FEW_NEURONS or B * n * n < m * m * LARGE_BATCH):
        return COMPILED
    if dtype == torch.float16:  # in which the squares of inputs above 256 are infinite
        return UNPACKED
    least = next((m for most, m in NEURONS_FROM.items() if n <= most), OTHERWISE)
    return MONOMIALS if m >= least else UNPACKED
