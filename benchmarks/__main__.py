"""Run all benchmarks, or only the named ones: `python -m benchmarks [name ...]`."""

import importlib
import os
import sys

# Use one thread, because times are compared per core. Set this before NumPy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

BENCHMARKS = ("start_up", "sgd_step", "mini_batch", "predict")

if __name__ == "__main__":
    wanted = sys.argv[1:] or BENCHMARKS
    unknown = set(wanted) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()
        print()
