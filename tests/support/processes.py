"""Run a helper or a script in a process of its own, which may crash.

    python -m tests.support.processes MODULE NUMBER ...

This command prints, as JSON, what the function `run` of the module returns for these numbers.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path


def answer_of(module, *numbers):
    """Return what `run` of a module in this package returns in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.processes", module, *map(str, numbers)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr[-3000:]) == (0, "")
    return json.loads(done.stdout)


def output_of(script, **environment):
    """Run a script with warnings as errors, and return its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    module = importlib.import_module(f"tests.support.{sys.argv[1]}")
    print(json.dumps(module.run(*map(int, sys.argv[2:]))))
