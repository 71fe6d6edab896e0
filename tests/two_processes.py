"""Two processes that talk through gloo: starting them, and running checks in both."""

import faulthandler
import gc
import os
import subprocess
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).parent.parent


def launch(*command, seconds=120):
    """Exit code, output and errors of torchrun; nothing is left running when the time is over."""
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         *command],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes before itself
        output, errors = process.communicate(timeout=60)
        return "timeout", output, errors
    return process.returncode, output, errors


def run_checks(checks, *, seconds=100):
    """Run every check in both processes; an error or a standstill in one ends both."""
    import torch
    import torch.distributed as dist

    warnings.simplefilter("error")
    # said of every draw of random numbers into a sharded tensor on a CPU
    warnings.filterwarnings("ignore", "DTensor random operators may not have complete support")
    faulthandler.dump_traceback_later(seconds, exit=True)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    for check in checks:
        torch.manual_seed(0)
        check()
        dist.barrier()
        if dist.get_rank() == 0:
            print("passed:", check.__name__, flush=True)
    gc.collect()  # a model that is left would keep the group, whose threads need Python
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


def one_fails(how):
    """A check that fails in process 1 only, while process 0 waits for it."""
    import torch.distributed as dist

    if dist.get_rank() == 1 and how == "raises":
        raise AssertionError("this is what went wrong")
    if dist.get_rank() == 1:
        time.sleep(60)


if __name__ == "__main__":
    run_checks([lambda: one_fails(sys.argv[1])], seconds=2)
