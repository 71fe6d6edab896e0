"""Streaming in separate processes: little memory, and the same bytes after kills."""

import json
import os
import resource
import signal
import time

import numpy as np
import polars as pl
import pytest

from quadric import QuadraticClassifier, files
from quadric.apps.shell.tables._streaming import FORM
from quadric.files import _safetensors as container
from tests.support import killing
from tests.support.tables import start


def make_parquet(path, rows, chunk=200_000):
    """Write eight numbers, a category and a label in row groups, with little memory."""
    from quadric.apps.shell.tables._prediction import write_batches

    def frames():
        rng = np.random.default_rng(0)
        for first in range(0, rows, chunk):
            n = min(chunk, rows - first)
            X = rng.normal(size=(n, 8))
            colour = rng.choice(["red", "green", "blue"], n)
            inside = (X[:, :3] ** 2).sum(axis=1) + X[:, 3] < 3 - (colour == "red")
            yield pl.DataFrame(X, schema=[f"x{i}" for i in range(8)]).with_columns(
                colour=pl.Series(colour), label=pl.Series(np.where(inside, "in", "out"))
            )

    write_batches(path, frames())


def peak_of(process, limit=600):
    """Wait for a process; return its result and its peak memory in MB."""
    peak = 0.0
    end = time.monotonic() + limit
    while process.poll() is None and time.monotonic() < end:
        peak = max(peak, memory_of(process.pid))
        time.sleep(0.05)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    return json.loads(out), peak


def memory_of(pid):
    try:
        with open(f"/proc/{pid}/status") as stream:
            lines = [line for line in stream if line.startswith("VmHWM")]
        return int(lines[0].split()[1]) / 1024 if lines else 0.0
    except OSError:
        return 0.0


def stored_state(path):
    _, arrays = container.read(path, FORM)
    return json.loads(arrays["state"].tobytes())["state"]


def kill_when_training(process, checkpoint, stage):
    """Send SIGKILL as soon as a checkpoint of the stage exists."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if checkpoint.exists():
            try:
                state = stored_state(checkpoint)
            except (OSError, ValueError):
                continue
            if state["stage"] == stage and state.get("buffers", 1) < 20:
                os.kill(process.pid, signal.SIGKILL)
                break
        time.sleep(0.005)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def check_killed_and_resumed(tmp_path, rows, limit, *more):
    make_parquet(tmp_path / "big.parquet", rows)
    first = start(tmp_path, "big.parquet", "--checkpoint-every", "2", *more)
    kill_when_training(first, tmp_path / "a.quadric.checkpoint", "second")
    assert not (tmp_path / "a.quadric").exists()
    found, peak = peak_of(
        start(tmp_path, "big.parquet", "--checkpoint-every", "2", "--resume", *more)
    )
    assert found["rows"] == rows
    assert found["scores"]["this model"] > 0.9
    assert found["scores"]["this model"] > found["scores"]["logistic regression"] + 0.1
    assert not (tmp_path / "a.quadric.checkpoint").exists()
    resumed = (tmp_path / "a.quadric").read_bytes()
    _, whole_peak = peak_of(start(tmp_path, "big.parquet", "--checkpoint-every", "2", *more))
    assert (tmp_path / "a.quadric").read_bytes() == resumed
    assert max(peak, whole_peak) < limit
    assert files.load(tmp_path / "a.quadric").n_features_in_ == 9
    return peak, whole_peak


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_killed_and_resumed_stream_takes_little_memory(tmp_path):
    check_killed_and_resumed(tmp_path, 20_000, 600, "--buffer", "2000", "--epochs", "2")


@pytest.mark.unix
@pytest.mark.full
def test_two_million_rows_killed_and_resumed(tmp_path):
    peaks = check_killed_and_resumed(tmp_path, 2_000_000, 600)
    print("peak memory in MB, resumed and whole:", peaks)


def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 2**20


def check_small_batches(count, most_growth):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 2)), np.array([0, 1, 0, 1])
    model = QuadraticClassifier((), random_state=0)
    at = {}
    for k in range(count):
        model.partial_fit(X, y, classes=[0, 1])
        if k + 1 in (count // 4, count):
            at[k + 1] = resident()
    assert len(model.loss_curve_) <= 20_000
    assert at[count] - at[count // 4] < most_growth
    return at


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_small_batches_take_constant_memory(monkeypatch):
    from quadric.estimators import _base as fitting

    monkeypatch.setattr(fitting, "KEPT_LOSSES", 100)
    check_small_batches(200, 2.0)
    model = QuadraticClassifier((), random_state=0)
    for _ in range(150):
        model.partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    assert 100 <= len(model.loss_curve_) < 200
    assert model.loss_curve_[-1] == model.loss_
    assert model.t_ == 300


@pytest.mark.unix
@pytest.mark.full
def test_a_million_small_batches_take_constant_memory():
    print("resident memory in MB:", check_small_batches(1_000_000, 8.0))


def kill(count, rows):
    outcome = killing.streams(count, 0, rows)
    assert outcome["kills"] == count
    return outcome


@pytest.mark.slow
def test_killed_streams_give_the_same_bytes():
    kill(1, 2500)


@pytest.mark.full
def test_30_killed_streams_give_the_same_bytes(capsys):
    outcome = kill(30, 30_000)
    with capsys.disabled():
        print(f"\n30 killed streams: {json.dumps(outcome)}")
    assert outcome["stages"]["second pass"] > 5
