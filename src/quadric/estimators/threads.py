"""One BLAS thread for small problems: several only wait for one another.

NumPy and SciPy bring a BLAS each; in a loop that calls both, with products of a few milliseconds
and less, their threads take the processor from each other (measured: six times slower on two
cores).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from quadric.layers import Layer

__all__ = ["suitable_threads"]

WORTH_SEVERAL = 1e8  # multiplications in one pass over the batch


@cache
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def suitable_threads(layers: Sequence[Layer], batch: int) -> Iterator[None]:
    """Within it BLAS has one thread, unless a pass over a batch of that size is much work."""
    numbers = sum(
        layer.W.size * (layer.n_inputs if layer.kind == "quadratic" else 1) for layer in layers
    )
    if batch * numbers > WORTH_SEVERAL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
