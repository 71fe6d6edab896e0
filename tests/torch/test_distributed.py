"""Torch layers on two processes, replicated (DDP) and sharded (FSDP2), match one process."""

import importlib
import re
import runpy
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

distributed = torch.distributed
if not (distributed.is_available() and distributed.is_gloo_available()):
    pytest.skip("needs torch.distributed with gloo", allow_module_level=True)

from tests.torch import two_processes  # noqa: E402

EXAMPLE = "examples/torch_distributed.py"


def launch(*command):
    code, output, errors = two_processes.launch(*command)
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
        runpy.run_path(str(two_processes.ROOT / EXAMPLE), run_name="__main__")
    assert stopped.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith("one process, nothing to compare with")
    assert output.count("float32: loss 2.") == 2


@pytest.mark.slow
def test_all_checks_pass_on_two_processes():
    scripts = ["replicated", "sharded"]
    modules = [importlib.import_module(f"tests.torch.{script}_checks") for script in scripts]
    names = [check.__name__ for module in modules for check in module.CHECKS]
    output = launch("-m", "tests.torch.two_processes", *scripts)
    assert output.splitlines() == [f"passed: {name}" for name in names]


@pytest.mark.full  # checks the launcher of these tests, not the layers
@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_failure_in_one_process_is_reported(how):
    code, output, errors = two_processes.launch("-m", "tests.torch.two_processes", how)
    assert code == 1
    assert "passed" not in output
    assert f"in {how}" in errors
    assert ("this is what went wrong" if how == "raises" else "Timeout (0:00:02)!") in errors
