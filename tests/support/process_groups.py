"""Networks and process groups of one or two processes, for wrapped or sharded modules."""

import tempfile
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from torch import nn

from quadric.torch import Linear, Quadratic, Reduced


def network(seed=0, dtype=torch.float64):
    """Return a network with 10011 packed rows and 7 neurons, which cannot be divided evenly."""
    torch.manual_seed(seed)
    layers = (Linear(9, 141), nn.Sigmoid(), Quadratic(141, 7), nn.Tanh(), Reduced(7, 3))
    return nn.Sequential(*layers).to(dtype)


def batch(seed=1):
    """Return the same batch on both processes; their shares are the even and the odd rows."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(24, 9, dtype=torch.float64, generator=generator)


def share_of(X):
    """Return the rows of this process."""
    return X[dist.get_rank() :: 2]


@contextmanager
def shared_directory():
    """Yield a temporary directory for both processes, created by rank 0."""
    with tempfile.TemporaryDirectory() as directory:
        path = [directory]
        dist.broadcast_object_list(path)
        yield path[0]
        dist.barrier()


@contextmanager
def one_process(directory):
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("torch was built without gloo")
    store = distributed.FileStore(str(directory / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def shard(module):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(module, mesh=init_device_mesh("cpu", (1,)))
