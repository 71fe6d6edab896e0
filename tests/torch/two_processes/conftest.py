"""Two processes that communicate through gloo: `test_distributed` starts them with torchrun."""

import faulthandler
import gc
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist


@pytest.fixture(scope="session", autouse=True)
def _process_group():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    faulthandler.dump_traceback_later(100, exit=True)
    yield
    gc.collect()  # a remaining model would keep the process group and its threads alive
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    """Wait for the other process, unless the test has failed: an error or a hang ends both."""
    torch.manual_seed(0)
    result = yield
    dist.barrier()
    return result
