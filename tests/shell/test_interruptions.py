"""Commands that cannot run to the end: interrupted imports, and compilation switched off."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.commands import assert_error

pytestmark = pytest.mark.slow


@pytest.mark.unix
@pytest.mark.parametrize("package", ["typer", "polars"])
def test_faults_R9_ctrl_c_during_imports_exits_without_a_traceback(place, tmp_path, package):
    (tmp_path / f"{package}.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(300)\n"
    )
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        [sys.executable, "-m", "quadric", "predict", place / "iris.quadric", place / "iris.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": search},
    )
    assert running.stdout.readline() == "importing\n"
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert (running.returncode, errors.strip()) == (130, "Stopped.")


def without_compilation(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "quadric", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )


@pytest.mark.parametrize(
    "arguments",
    [["predict"], ["evaluate"], ["certify"], ["explain", "--permutation"], ["report"]],
    ids=" ".join,
)
def test_faults_R9_without_compilation_commands_fail_in_one_line(place, tmp_path, arguments):
    name, *options = arguments
    files = [place / "iris.quadric", place / "iris.csv"]
    result = without_compilation(name, *files, *options, cwd=tmp_path)
    assert_error(result, "Unset NUMBA_DISABLE_JIT.")


def test_faults_R9_training_without_compilation_fails_in_one_line(place, tmp_path):
    options = ["-t", "species", "--hidden", "none", "-o", tmp_path / "model.quadric"]
    result = without_compilation("train", place / "iris.csv", *options, cwd=tmp_path)
    assert_error(result, "Unset NUMBA_DISABLE_JIT.")
