"""What a user's module does besides what its class says: hooks, a forward of its own, no values."""

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy


def has_own_forward(module: nn.Module, of: type[nn.Module]) -> bool:
    """Whether `module` computes something else than class `of` does."""
    forward: Any = type(module).forward
    return "forward" in vars(module) or forward is not of.forward


def has_forward_hooks(module: nn.Module) -> bool:
    """Whether something else runs, too, when the module does."""
    return bool(module._forward_pre_hooks or module._forward_hooks)


def has_hooks(module: nn.Module) -> bool:
    """Whether something else runs, too, forwards or backwards."""
    backward = module._backward_pre_hooks or module._backward_hooks
    return bool(backward) or has_forward_hooks(module)


def lacks_values(tensor: Tensor) -> str:
    """Why the numbers of a parameter cannot be copied, and what to do; empty where they can."""
    if is_lazy(tensor):
        return "has no shape yet: run a batch through the model first"
    if is_sharded(tensor):
        return (
            "is sharded, its numbers are not all here: do this before sharding, or load the full "
            "tensors, full_tensor() of each in state_dict(), into a module that is not sharded"
        )
    if tensor.is_meta:
        return "is on the meta device, without numbers: load or initialise the model first"
    if not tensor.is_floating_point():
        return f"must hold real floating-point numbers. Got {tensor.dtype} instead"
    return ""


def is_sharded(tensor: Any) -> bool:
    return hasattr(tensor, "full_tensor")


def shard_like(parameter: Any, whole: Tensor) -> Tensor:
    """`whole`, sharded as the parameter is; where the processes differ, rank 0's is taken."""
    if not is_sharded(parameter):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.detach(), parameter.device_mesh, parameter.placements)
