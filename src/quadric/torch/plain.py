"""Which tensors can be computed with by address: those that are numbers in memory, and no more."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

__all__ = ["is_plain", "is_tracing", "is_watched"]


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether these are ordinary numbers in memory, and nobody is following what happens to them.

    So no transform of torch.func, no forward mode, no tracing, no compiling, no dispatch mode.
    """
    if (
        torch.compiler.is_compiling()
        or is_tracing()
        or is_watched()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return False
    try:
        for tensor in tensors:
            if tensor is None:
                continue
            if type(tensor) is not Parameter and type(tensor) is not Tensor:
                return False
            if tensor.data_ptr() == 0 and tensor.numel() > 0:
                return False
            if tensor.is_neg():  # numbers that are to be read with the other sign
                return False
    except RuntimeError:  # tensors of vmap have no address
        return False
    return True


def is_tracing() -> bool:
    return torch._C._get_tracing_state() is not None


def is_watched() -> bool:
    """Whether a dispatch mode sees every operation: to count, to fake, to record them."""
    return not torch.compiler.is_compiling() and torch._C._len_torch_dispatch_stack() > 0
