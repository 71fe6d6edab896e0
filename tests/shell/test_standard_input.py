"""Processes that are stopped while they wait for a table on standard input."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.unix]

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def waiting(place, tmp_path):
    """`quadric predict`, which has copied some rows and waits for more, and its directory."""
    running = subprocess.Popen(
        [sys.executable, "-m", "quadric", "predict", place / "iris.quadric", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        # nohup ignores this signal, and so would the process
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    running.stdin.write((place / "iris.csv").read_bytes() * 100)
    running.stdin.flush()
    deadline, asleep = time.monotonic() + 120, 0
    while asleep < 20 and time.monotonic() < deadline:
        assert running.poll() is None, running.stderr.read()
        asleep = asleep + 1 if _has_spool(running.pid) and _sleeps(running.pid) else 0
        time.sleep(0.05)
    assert asleep == 20
    yield running, tmp_path
    running.kill()
    running.communicate()


def _has_spool(pid):
    """Whether the process has the copy of its standard input open."""
    names = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(os.readlink(link))
        except FileNotFoundError:
            continue
    return any(os.path.basename(name).startswith("quadric-") for name in names)


def _sleeps(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_faults_R5_a_killed_process_leaves_no_copy_of_its_standard_input(waiting, number):
    running, directory = waiting
    running.send_signal(number)
    assert running.wait(60) == -number
    assert list(directory.iterdir()) == []


@linux
def test_faults_R5_ctrl_c_stops_a_command_that_waits_for_input(waiting):
    running, directory = waiting
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert running.stderr.read().decode().splitlines()[-1] == "Stopped."
    assert list(directory.iterdir()) == []


@linux
def test_faults_R5_parquet_can_be_read_from_standard_input(place, tmp_path):
    pl.read_csv(place / "iris.csv").write_parquet(tmp_path / "iris.parquet")
    result = subprocess.run(
        [sys.executable, "-m", "quadric", "predict", place / "iris.quadric", "-"],
        input=(tmp_path / "iris.parquet").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 151
