"""Run a Python script in a process of its own."""

import os
import subprocess
import sys


def output_of(script, **environment):
    """Run a script with warnings as errors, and return its output."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
