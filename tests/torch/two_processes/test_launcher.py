"""Tests that fail, each only in process 1, while process 0 waits for it."""

import faulthandler
import time

import torch.distributed as dist


def test_raises():
    assert dist.get_rank() == 0, "this is what went wrong"


def test_hangs():
    if dist.get_rank() == 1:
        faulthandler.dump_traceback_later(2, exit=True)
        time.sleep(60)
