"""Checks of users' modules: hooks, an overridden forward, parameters without values."""

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy


def has_own_forward(module: nn.Module, base: type[nn.Module]) -> bool:
    """Whether `module` overrides the forward of class `base`."""
    forward: Any = type(module).forward
    return "forward" in vars(module) or forward is not base.forward


def has_hooks(module: nn.Module, *, backward: bool) -> bool:
    """Whether the module has forward hooks or, if `backward`, any hooks."""
    hooks = [module._forward_pre_hooks, module._forward_hooks]
    if backward:
        hooks += [module._backward_pre_hooks, module._backward_hooks]
    return any(hooks)


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor is a DTensor, as the parameters under `fully_shard` (FSDP2) are.

    The class itself is not imported: it would load torch.distributed.
    """
    return hasattr(tensor, "full_tensor")


def check_has_values(name: str, tensor: Tensor) -> None:
    """Raise ValueError, with the next step, unless the values of a parameter can be copied."""
    problems = [
        (is_lazy(tensor), "has no shape yet: run a batch through the model first"),
        (
            is_sharded(tensor),
            "is sharded, and this process holds only a part of it: do this before sharding, or "
            "load the full tensors (full_tensor() of each entry of state_dict()) into a module "
            "that is not sharded",
        ),
        (
            tensor.is_meta,
            "is on the meta device and has no values: load or initialise the model first",
        ),
        (
            not tensor.is_floating_point(),
            f"must hold real floating-point numbers. Got {tensor.dtype} instead",
        ),
    ]
    for found, problem in problems:
        if found:
            raise ValueError(f"{name} {problem}.")
