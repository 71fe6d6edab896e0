"""Torch layers on two processes, replicated (DDP) and sharded (FSDP2), match one process."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

distributed = torch.distributed
if not (distributed.is_available() and distributed.is_gloo_available()):
    pytest.skip("needs torch.distributed with gloo", allow_module_level=True)

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/torch_distributed.py"
TESTS = "tests/torch/two_processes"
PYTEST = ("-m", "pytest", "-q", "-x", "-s", "-p", "no:faulthandler", "-p", "no:cacheprovider")


def torchrun(*command):
    """Return exit code, output and errors of two processes; stop them at a time limit."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", *command),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes first
        return "timeout", *process.communicate(timeout=60)
    return process.returncode, output, errors


def launch(*command):
    code, output, errors = torchrun(*command)
    assert code == 0, f"exit code {code}\n{output}\n{errors}"
    return output


@pytest.mark.full  # the checks below cover the same layers
def test_the_example_on_two_processes_matches_one():
    output = launch(EXAMPLE, "--steps", "10")
    assert re.findall(".* processes, .*", output) == ["2 processes, ddp", "2 processes, fsdp"]
    assert re.findall("784-.*: loss 2", output) == 2 * [
        "784-30-10, float64: loss 2",
        "784-100-10, float64: loss 2",
    ]
    differences = re.findall("  the same as one process: .* (.*) in gradients, (.*) in par", output)
    assert len(differences) == 4
    for gradients, parameters in differences:
        assert 0 < float(gradients) < 1e-12
        assert 0 < float(parameters) < 1e-12


@pytest.mark.slow
def test_the_example_runs_on_one_process(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(sys, "argv", [EXAMPLE, "--steps", "2", "--dtype", "float32"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(ROOT / EXAMPLE), run_name="__main__")
    assert stopped.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith("one process, nothing to compare with")
    assert output.count("float32: loss 2.") == 2


@pytest.mark.slow
def test_all_checks_pass_on_two_processes():
    output = launch(*PYTEST, f"{TESTS}/test_replicated.py", f"{TESTS}/test_sharded.py")
    assert re.findall(r"(\d+) passed", output) == ["24", "24"]


@pytest.mark.full  # checks the launcher of these tests, not the layers
@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_failure_in_one_process_is_reported(how):
    code, output, errors = torchrun(*PYTEST, f"{TESTS}/test_launcher.py::test_{how}")
    assert code == 1
    assert not re.search(r"\d passed", output)
    sign = "this is what went wrong" if how == "raises" else "Timeout (0:00:02)!"
    assert sign in output + errors
    assert f"test_{how}" in output + errors
