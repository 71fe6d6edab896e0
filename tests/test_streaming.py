"""Training on tables larger than memory: the same bits when killed and resumed, little memory."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from quadric import QuadraticClassifier, model_file
from quadric.errors import TableError
from quadric.streaming import Stream, train_stream
from quadric.streaming.checkpoint import Checkpoint
from quadric.streaming.learner import put_state, state_of
from quadric.tables import Settings, Wishes, open_table, train


class StopError(Exception):
    """Stands for a killed process."""


def stop_after(calls, stage):
    """A progress function that stops the run in mid-pass."""
    seen = [0]

    def progress(text, done, total):
        if stage in text:
            seen[0] += 1
            if seen[0] == calls:
                raise StopError

    return progress


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = 2400
    x, z = rng.normal(3, 2, n), rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n)
    inside = (x - 3) ** 2 / 4 + z**2 < 1.2 + 0.8 * (colour == "red")
    pl.DataFrame(
        {
            "x": [None if i % 50 == 7 else v for i, v in enumerate(x)],
            "z": z,
            "colour": colour,
            "size": 1000 + 50 * (x * z + z**2),
            "label": [None if i % 100 == 9 else ("in" if v else "out")
                      for i, v in enumerate(inside)],
        }
    ).write_csv(tmp_path / "table.csv")  # fmt: skip
    return tmp_path / "table.csv"


def go(table, wishes=None, stream=None, **options):
    wishes = wishes or Wishes("label", drop=["size"])
    stream = stream or Stream(buffer=300, epochs=3, every=2)
    path = table.with_suffix(".checkpoint")
    return train_stream(open_table(table), wishes, Settings(), stream, path, **options)


def parameters(trained):
    return [
        array for layer in trained.model[-1].network_.layers for array in layer.arrays().values()
    ]


def test_streaming_learns(table):
    trained = go(table, stream=Stream(buffer=300, epochs=20))
    scores = trained.report.scores
    assert scores["this model"] > 0.93
    assert scores["logistic regression"] < 0.75
    assert 0.5 < scores["most frequent class"] < 0.7
    assert trained.schema.missing_targets == 24
    assert trained.report.trained + trained.report.held_out == 2376
    assert 0.2 < trained.report.held_out / 2376 < 0.3
    assert trained.report.confusion.counts.sum() == trained.report.held_out
    whole = train(open_table(table), Wishes("label", drop=["size"]), Settings())
    assert scores["this model"] > whole.report.scores["this model"] - 0.03


def test_rows_held_out_are_not_learned(table, monkeypatch):
    from quadric.streaming.learner import Learner

    learned = []
    original = Learner.learn

    def spy(self, X, y, progress):
        learned.append(np.asarray(X["z"]))
        original(self, X, y, progress)

    monkeypatch.setattr(Learner, "learn", spy)
    trained = go(table, stream=Stream(buffer=300, epochs=2))
    first, second = np.concatenate(learned[:8]), np.concatenate(learned[8:])
    assert len(first) == trained.report.trained
    assert set(first) == set(second)
    assert first.tolist() != second.tolist()  # another order in every epoch


def test_streaming_regression_in_any_units(table):
    wishes = Wishes("size", drop=["label", "colour"])
    trained = go(table, wishes, Stream(buffer=300, epochs=30))
    assert trained.report.scores["this model"] > 0.95
    assert abs(trained.report.scores["the mean"]) < 0.02
    reduced = train_stream(
        open_table(table), wishes, Settings(kind="reduced", hidden=(8,)), Stream(epochs=30),
        table.with_suffix(".ck"),
    )  # fmt: skip
    assert np.isfinite(reduced.report.scores["this model"])


@pytest.mark.parametrize(
    ("stage", "calls"), [("first", 1), ("first", 5), ("second", 3), ("second", 20), ("third", 2)]
)
def test_stopped_and_resumed_gives_the_same_bits(table, stage, calls):
    expected = go(table)
    with pytest.raises(StopError):
        go(table, progress=stop_after(calls, f"{stage} pass"))
    state = Checkpoint(table.with_suffix(".checkpoint"), {})
    seen = []
    resumed = go(table, resume=True, progress=lambda text, done, total: seen.append((text, done)))
    for one, other in zip(parameters(expected), parameters(resumed), strict=True):
        assert one.tobytes() == other.tobytes()
    assert resumed.report.scores == expected.report.scores
    assert resumed.schema == expected.schema
    assert state.path.exists()  # the caller removes it once the model is saved
    trained = [done for text, done in seen if text.startswith("second")]
    if stage == "second":  # what was done is not done again
        assert len(trained) == 24 - 2 * (calls // 2) + (0 if calls % 2 else 2)
        assert not [text for text, _ in seen if text.startswith("first")]
    if stage == "third":
        assert not trained


def test_buffers_do_not_depend_on_how_the_file_is_read(table, monkeypatch):
    from quadric.tables import reading

    expected = go(table)
    monkeypatch.setattr(reading, "BLOCK", 1000)
    for one, other in zip(parameters(expected), parameters(go(table)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_checkpoint_of_another_run_is_refused(table):
    with pytest.raises(StopError):
        go(table, progress=stop_after(5, "second pass"))
    with pytest.raises(TableError, match=r"belongs to another run: target was 'label'"):
        go(table, Wishes("colour", drop=["size"]), resume=True)
    with pytest.raises(TableError, match=r"epochs was 3"):
        go(table, stream=Stream(buffer=300, epochs=4), resume=True)
    table.write_text(table.read_text() + "1,1,red,1,in\n")
    with pytest.raises(TableError, match=r"size was"):
        go(table, resume=True)
    path = table.with_suffix(".checkpoint")
    for content in (b"", b"nonsense", path.read_bytes()[:-200]):
        path.write_bytes(content)
        with pytest.raises(TableError, match=r"no checkpoint, or a damaged one. Start again"):
            go(table, resume=True)


def test_a_checkpoint_is_no_pickle(tmp_path):
    checkpoint = Checkpoint(tmp_path / "a", {"x": 1})
    np.savez(tmp_path / "a", description=np.array([{"run": {"x": 1}}], dtype=object))
    os.replace(tmp_path / "a.npz", tmp_path / "a")
    with pytest.raises(TableError, match="damaged"):
        checkpoint.load()


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "adam"},
        {"solver": "sgd", "learning_rate": "adaptive"},
        {"solver": "sgd", "batch_size": 1, "momentum": 0.0, "alpha": 0.1},
    ],
)
def test_an_estimator_continues_from_its_state(options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 3)), rng.integers(0, 3, 900)

    def fresh():
        return QuadraticClassifier((), random_state=0, shuffle=False, **options)

    whole, half, other = fresh(), fresh(), fresh()
    for k in range(3):
        whole.partial_fit(X[300 * k : 300 * k + 300], y[300 * k : 300 * k + 300], classes=[0, 1, 2])
    half.partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    arrays, numbers = state_of(half)
    arrays = {name: array.copy() for name, array in arrays.items()}
    other.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    put_state(other, arrays, json.loads(json.dumps(numbers)))
    for k in (1, 2):
        other.partial_fit(X[300 * k : 300 * k + 300], y[300 * k : 300 * k + 300])
    assert other.network_.layers[0].Q.tobytes() == whole.network_.layers[0].Q.tobytes()
    assert other.loss_ == whole.loss_
    assert other.loss_curve_ == whole.loss_curve_


def test_a_divergence_lowers_the_rate(table, monkeypatch):
    from quadric.streaming import learner

    monkeypatch.setattr(learner, "RATE", 1e4)  # far too long a step
    trained = go(table)
    assert "Training diverged" in " ".join(trained.notes)
    assert all(np.isfinite(array).all() for array in parameters(trained))
    assert trained.report.scores["this model"] > trained.report.scores["most frequent class"]


# ---- memory --------------------------------------------------------------------------------


def make_parquet(path, rows, chunk=200_000):
    """Eight numbers, a category and a label, in row groups, without holding it all."""
    from quadric.tables.writing import write_batches

    def frames():
        rng = np.random.default_rng(0)
        for start in range(0, rows, chunk):
            n = min(chunk, rows - start)
            X = rng.normal(size=(n, 8))
            colour = rng.choice(["red", "green", "blue"], n)
            inside = (X[:, :3] ** 2).sum(axis=1) + X[:, 3] < 3 - (colour == "red")
            yield pl.DataFrame(X, schema=[f"x{i}" for i in range(8)]).with_columns(
                colour=pl.Series(colour), label=pl.Series(np.where(inside, "in", "out"))
            )

    write_batches(path, frames())


def start(directory, data, *more):
    command = [sys.executable, "-m", "quadric", "train", data, "-t", "label", "-o", "a.quadric",
               "--stream", "--json", *more]  # fmt: skip
    return subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def peak_of(process, limit=600):
    """Wait for a process; its result and its peak memory in MB."""
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


def kill_when_training(process, checkpoint, stage):
    """SIGKILL once a checkpoint of the stage is there."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if checkpoint.exists():
            try:
                with np.load(io.BytesIO(checkpoint.read_bytes())) as file:
                    state = json.loads(file["description"].tobytes())["state"]
            except (OSError, ValueError, EOFError):
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
    assert model_file.load(tmp_path / "a.quadric").n_features_in_ == 9
    return peak, whole_peak


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_killed_and_resumed_in_little_memory(tmp_path):
    check_killed_and_resumed(tmp_path, 150_000, 600, "--buffer", "5000", "--epochs", "2")


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


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_small_batches_at_constant_memory(monkeypatch):
    from quadric.estimators import fitting

    monkeypatch.setattr(fitting, "KEPT_LOSSES", 100)
    check_small_batches(4000, 2.0)
    model = QuadraticClassifier((), random_state=0)
    for _ in range(250):
        model.partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    assert 100 <= len(model.loss_curve_) < 200
    assert model.loss_curve_[-1] == model.loss_
    assert model.t_ == 500


@pytest.mark.full
def test_a_million_small_batches():
    print("resident memory in MB:", check_small_batches(1_000_000, 8.0))
