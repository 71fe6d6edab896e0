"""Run all benchmarks or only those named: `python -m benchmarks [name ...]`."""

import importlib
import os
import sys

# One thread, set before NumPy is imported, because times are compared per core.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

BENCHMARKS = ("start_up", "sgd_step", "mini_batch", "predict")

if __name__ == "__main__":
    wanted = sys.argv[1:] or BENCHMARKS
    unknown = set(wanted) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}: {', '.join(BENCHMARKS)}")
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()
        print()
