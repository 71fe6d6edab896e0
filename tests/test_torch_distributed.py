"""Layers of torch on two processes: replicated (DDP) and sharded (FSDP2), the same as on one."""

import importlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests import two_processes  # noqa: E402

distributed = torch.distributed
if not (distributed.is_available() and distributed.is_gloo_available()):
    pytest.skip("needs torch.distributed with gloo", allow_module_level=True)

EXAMPLE = "examples/torch_distributed.py"


def launch(*command):
    code, output, errors = two_processes.launch(*command)
    assert code == 0, f"exit code {code}\n{output}\n{errors}"
    return output


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_example_on_two_processes(strategy):
    output = launch(EXAMPLE, "--strategy", strategy, "--steps", "10")
    assert output.startswith(f"2 processes, {strategy}\n784-30-10, float64: loss 2.")
    assert output.count("\n784-") == 2
    differences = re.findall("  the same as one process: .* (.*) in gradients, (.*) in par", output)
    assert len(differences) == 2
    for gradients, parameters in differences:
        assert 0 < float(gradients) < 1e-12
        assert 0 < float(parameters) < 1e-12


def test_example_on_one_process():
    result = subprocess.run(
        [sys.executable, EXAMPLE, "--steps", "2", "--dtype", "float32"],
        cwd=two_processes.ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("one process, nothing to compare with")
    assert result.stdout.count("float32: loss 2.") == 2


@pytest.mark.parametrize("script", ["replicated", "sharded"])
def test_checks(script):
    checks = importlib.import_module(f"tests.{script}_process").CHECKS
    output = launch("-m", f"tests.{script}_process")
    assert output.splitlines() == [f"passed: {check.__name__}" for check in checks]


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_failure_in_one_process_is_shown(how):
    code, output, errors = two_processes.launch("-m", "tests.two_processes", how)
    assert code == 1
    assert "passed" not in output
    assert "in one_fails" in errors
    assert ("this is what went wrong" if how == "raises" else "Timeout (0:00:02)!") in errors
