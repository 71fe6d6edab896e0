"""What a user's module does besides what its class says: hooks, a forward of its own, no values."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

__all__ = ["has_hooks", "has_own_forward", "lacks_values"]


def has_own_forward(module: nn.Module, of: type[nn.Module]) -> bool:
    """Whether `module` computes something else than class `of` does."""
    forward: Any = type(module).forward
    return "forward" in vars(module) or forward is not of.forward


def has_hooks(module: nn.Module) -> bool:
    """Whether something else runs, too, when the module does, forwards or backwards."""
    kept = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    return any(getattr(module, name) for name in kept)


def lacks_values(tensor: Tensor) -> str:
    """Why the numbers of a parameter cannot be copied, and what to do; empty where they can."""
    if hasattr(tensor, "full_tensor"):
        return (
            "is sharded: its numbers are not all here. Do this before sharding, or take full "
            "tensors first (unshard() of the module that was given to fully_shard, or "
            "full_tensor() of each parameter)"
        )
    if tensor.is_meta:
        return "is on the meta device, without numbers: load or initialise the model first"
    if not tensor.is_floating_point():
        return f"must hold real floating-point numbers. Got {tensor.dtype} instead"
    return ""
