"""A process group of one process, for wrapped or sharded modules."""

from contextlib import contextmanager

import pytest


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
