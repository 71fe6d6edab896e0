"""Start two processes that communicate through gloo, and run checks in both.

torchrun --standalone --nproc-per-node 2 -m tests.torch.two_processes sharded
"""

import faulthandler
import gc
import importlib
import os
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from quadric.torch import Linear, Quadratic, Reduced

ROOT = Path(__file__).parents[2]


def launch(*command, seconds=120):
    """Return exit code, output and errors of torchrun; stop all processes at the time limit."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            *command,
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes first
        output, errors = process.communicate(timeout=60)
        return "timeout", output, errors
    return process.returncode, output, errors


def run_checks(checks, *, seconds=100):
    """Run every check in both processes; an error or a hang in one ends both."""
    warnings.simplefilter("error")
    # torch warns about every random draw into a sharded tensor on a CPU
    warnings.filterwarnings("ignore", "DTensor random operators may not have complete support")
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    faulthandler.dump_traceback_later(seconds, exit=True)
    for check in checks:
        torch.manual_seed(0)
        check()
        dist.barrier()
        if dist.get_rank() == 0:
            print("passed:", check.__name__, flush=True)
    gc.collect()  # a remaining model would keep the process group and its threads alive
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


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


def raises():
    """A check that fails in process 1 only, while process 0 waits for it."""
    if dist.get_rank() == 1:
        raise AssertionError("this is what went wrong")


def hangs():
    """A check that never ends in process 1."""
    if dist.get_rank() == 1:
        time.sleep(60)


def main(*names):
    """Run one of the checks above, or all checks of the modules tests.torch.NAME_checks."""
    if names == ("raises",):
        run_checks([raises])
    elif names == ("hangs",):  # with the default, process 0 would wait longer
        run_checks([hangs], seconds=2 if os.environ["RANK"] == "1" else 20)
    else:
        modules = [importlib.import_module(f"tests.torch.{name}_checks") for name in names]
        run_checks([check for module in modules for check in module.CHECKS])


if __name__ == "__main__":
    main(*sys.argv[1:])
