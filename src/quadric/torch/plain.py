"""Which tensors can be computed with by address: those that are numbers in memory, and no more."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

__all__ = ["is_plain", "is_tracing"]


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether these are ordinary numbers in memory, and nobody is following what happens to them.

    So no vmap, no forward mode, no tracing, no compiling, no mode that sees every operation.
    """
    if (
        torch.compiler.is_compiling()
        or is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
    ):
        return False
    try:
        return all(
            type(tensor) in (Tensor, Parameter)
            and (tensor.data_ptr() != 0 or tensor.numel() == 0)
            and not tensor.is_neg()  # of numbers that are to be read with the other sign
            for tensor in tensors
            if tensor is not None
        )
    except RuntimeError:  # the tensors of vmap have no address
        return False


def is_tracing() -> bool:
    return torch._C._get_tracing_state() is not None
