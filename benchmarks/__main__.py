"""Compare quadric with its peers, or run single benchmarks.

python -m benchmarks compare [--quick | --resume]   all peers side by side
python -m benchmarks check               the ratios against the committed ones
python -m benchmarks page                docs/results/comparison.md from the committed results
python -m benchmarks [name ...]          single benchmarks; by default, all of BENCHMARKS
"""

import importlib
import os
import sys

from benchmarks.two_checkouts import THREAD_VARIABLES

# Use one thread, because times are compared per core. Set this before NumPy is imported.
for variable in THREAD_VARIABLES:
    os.environ.setdefault(variable, "1")

COMMANDS = {"compare": "_command", "check": "_check", "page": "_page"}
BENCHMARKS = ("start_up", "sgd_step", "mini_batch", "predict")


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] in COMMANDS:
        module = importlib.import_module(f"benchmarks.compare.{COMMANDS[arguments[0]]}")
        return module.main(arguments[1:])
    unknown = set(arguments) - set(BENCHMARKS)
    if unknown:
        known = ", ".join((*COMMANDS, *BENCHMARKS))
        sys.exit(f"there is no {', '.join(sorted(unknown))}; choose from {known}")
    for name in arguments or BENCHMARKS:
        importlib.import_module(f"benchmarks.{name}").main()
        print()
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
