"""Parameters of which every process holds a part: the DTensors of `fully_shard` (FSDP2).

Nothing here loads torch.distributed unless such a parameter is given.
"""

from typing import Any

from torch import Tensor


def is_sharded(tensor: Any) -> bool:
    return hasattr(tensor, "full_tensor")


def shard_like(parameter: Any, whole: Tensor) -> Tensor:
    """`whole`, sharded as the parameter is; where the processes differ, rank 0's is taken."""
    if not is_sharded(parameter):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.detach(), parameter.device_mesh, parameter.placements)
