"""The generic module test of the installed torch, `NewModuleTest`, applied to our modules."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="torch's tests need expecttest")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_generic_module_test_passes_for_every_module():
    """It fails only for a module with wrong gradients, so there is no list of exceptions.

    The test compares contiguous and other inputs, pickles the module, checks first and second
    derivatives by all inputs and parameters against differences, also under vmap, and converts
    dtypes. It cannot check forward mode, because it does not pass the parameters to the module;
    `test_forward_mode` does.
    """
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.torch_modules"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    outcomes = json.loads(run.stdout)
    assert "Jacobian mismatch" in outcomes.pop("wrong")
    assert len(outcomes) == 21
    assert not any(outcomes.values()), "\n".join(outcomes.values())
