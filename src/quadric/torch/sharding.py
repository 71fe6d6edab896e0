"""Parameters of which every process holds a part: the DTensors of `fully_shard` (FSDP2).

Whoever does not use them need not load torch.distributed. What changes the order of the entries
needs them all, so that it is a collective: every process has to take part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["first_rank_has", "is_sharded", "reordered", "shard_like"]


def is_sharded(tensor: Any) -> bool:
    return hasattr(tensor, "full_tensor")


def shard_like(parameter: Any, whole: Tensor) -> Tensor:
    """`whole`, sharded as the parameter is; where the processes differ, rank 0's is taken."""
    if not is_sharded(parameter):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.detach(), parameter.device_mesh, parameter.placements)


def reordered(tensor: Any, reorder: Callable[[Tensor], Tensor]) -> Tensor:
    """`reorder` of the tensor; of a sharded one as a whole, and sharded again in the same way."""
    if not is_sharded(tensor):
        return reorder(tensor)
    return shard_like(tensor, reorder(tensor.full_tensor()))


def first_rank_has(parameter: Any, mine: bool) -> bool:
    """What `mine` is on rank 0 of the processes that share the parameter."""
    from torch.distributed.tensor import Replicate, distribute_tensor

    mesh = parameter.device_mesh
    answer = distribute_tensor(torch.tensor(int(mine)), mesh, [Replicate()] * mesh.ndim)
    return bool(answer.to_local().item())
