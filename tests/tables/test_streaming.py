"""Training on tables larger than memory: the same bits when killed and resumed, little memory."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from quadric import QuadraticClassifier, model_file
from quadric.errors import TableError
from quadric.model_file import _safetensors as container
from quadric.tables import Settings, Wishes, open_table, train
from quadric.tables._unchanged import Version, sample_digest
from quadric.tables.streaming import Stream, train_stream
from quadric.tables.streaming._checkpoint import FORM, Checkpoint
from quadric.tables.streaming._estimator_state import put_state, state_of
from tests.support.damaged_checkpoints import content_of
from tests.support.streams import StopError, go, parameters, stop_after, write_table

ROOT = Path(__file__).parents[2]


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "table.csv")


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
    from quadric.tables.streaming._learner import Learner

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
        Checkpoint(table.with_suffix(".ck")),
    )  # fmt: skip
    assert np.isfinite(reduced.report.scores["this model"])


@pytest.mark.parametrize(
    ("stage", "calls"), [("first", 1), ("first", 5), ("second", 3), ("second", 20), ("third", 2)]
)
def test_stopped_and_resumed_gives_the_same_bits(table, stage, calls):
    expected = go(table)
    table.with_suffix(".checkpoint").unlink()
    with pytest.raises(StopError):
        go(table, progress=stop_after(calls, f"{stage} pass"))
    state = Checkpoint(table.with_suffix(".checkpoint"))
    seen = []
    resumed = go(table, resume=True, progress=lambda text, done, total: seen.append((text, done)))
    for one, other in zip(parameters(expected), parameters(resumed), strict=True):
        assert one.tobytes() == other.tobytes()
    assert resumed.report.scores == expected.report.scores
    assert resumed.schema == expected.schema
    assert content_of(resumed) == content_of(expected)  # the records of training included
    assert state.path.exists()  # the caller removes it once the model is saved
    trained = [done for text, done in seen if text.startswith("second")]
    if stage == "second":  # what was done is not done again
        assert len(trained) == 24 - 2 * (calls // 2) + (0 if calls % 2 else 2)
        assert not [text for text, _ in seen if text.startswith("first")]
    if stage == "third":
        assert not trained


def test_buffers_do_not_depend_on_how_the_file_is_read(table, monkeypatch):
    from quadric.tables import _source as reading

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


def test_other_content_of_the_same_size_and_time_is_refused(table):
    """Wherever in the file it is, and whatever the times say that a program may set."""
    with pytest.raises(StopError):
        go(table, progress=stop_after(5, "second pass"))
    times = table.stat().st_atime_ns, table.stat().st_mtime_ns
    before = open_table(table).fingerprint()
    text = table.read_text()
    place = text.index("red", len(text) // 2)
    table.write_text(text[:place] + "RED" + text[place + 3 :])
    os.utime(table, ns=times)
    with pytest.raises(TableError, match=r"belongs to another run: (status|content) was"):
        go(table, resume=True)
    now = open_table(table).fingerprint()
    assert now["content"] != before["content"]
    assert (now["size"], now["modified"]) == (before["size"], before["modified"])


@pytest.mark.parametrize("size", [0, 100, 5_000_000])
def test_a_sample_of_a_file_has_both_ends_and_the_middle(tmp_path, size):
    def digest(content):
        (tmp_path / "a").write_bytes(content)
        with (tmp_path / "a").open("rb") as stream:
            return sample_digest(stream, len(content))

    whole = bytes(size)
    places = {0, size // 2, size - 1} if size < 2**22 else {0, 2_450_000, size - 1}
    seen = {digest(whole[:at] + b"x" + whole[at + 1 :]) for at in places if size}
    assert len({digest(whole), digest(whole + b"x"), *seen}) == 2 + len(seen)


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
    arrays = {name: array.copy() for name, array in state_of(half).items()}
    other.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    put_state(other, arrays)
    for k in (1, 2):
        other.partial_fit(X[300 * k : 300 * k + 300], y[300 * k : 300 * k + 300])
    assert other.network_.layers[0].Q.tobytes() == whole.network_.layers[0].Q.tobytes()
    assert other.loss_ == whole.loss_
    assert other.loss_curve_ == whole.loss_curve_


def test_a_divergence_lowers_the_rate(table, monkeypatch):
    from quadric.tables.streaming import _learner as learner

    monkeypatch.setattr(learner, "RATE", 1e4)  # far too long a step
    trained = go(table)
    assert "Training diverged" in " ".join(trained.notes)
    assert all(np.isfinite(array).all() for array in parameters(trained))
    assert trained.report.scores["this model"] > trained.report.scores["most frequent class"]


# ---- a file that changes -------------------------------------------------------------------


def cut(path):
    os.truncate(path, 2 * path.stat().st_size // 3)


def cut_to_the_header(path):
    os.truncate(path, path.read_bytes().index(b"\n") + 1)


def append(path):
    with path.open("a") as stream:
        stream.write("1,1,red,1000,in\n" * 700)


def append_a_class(path):
    with path.open("a") as stream:
        stream.write("1,1,red,1000,between\n")


def rewrite(path):
    """Other content of the same size, and the same time of modification."""
    before = path.stat()
    content = path.read_bytes().replace(b",in\n", b",ab\n")
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def replace_it(path):
    """Another file of the same size, moved into its place."""
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b",in\n", b",ab\n"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)


def remove(path):
    path.unlink()


def alarm(*_):
    raise AssertionError("the run does not end")


@pytest.fixture
def no_hang():
    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("stage", ["first", "second", "third"])
@pytest.mark.parametrize(
    "change", [cut, cut_to_the_header, append, append_a_class, rewrite, replace_it, remove]
)
def test_a_file_that_changes_during_the_run(table, change, stage, monkeypatch, no_hang):
    """One line, whatever happens to the file; no row is used that was not there at first."""
    from quadric.tables import _source as reading
    from quadric.tables.streaming._learner import Learner

    learned = []
    original = Learner.learn

    def spy(self, X, y, progress):
        learned.extend(np.asarray(X["z"]))
        original(self, X, y, progress)

    monkeypatch.setattr(Learner, "learn", spy)
    monkeypatch.setattr(reading, "BLOCK", 5000)  # several blocks in a pass, as in a long file
    there = set(np.asarray(open_table(table).read()["z"].cast(pl.Float64)))
    calls = [0]

    def progress(text, done, total):
        if text.startswith(stage):
            calls[0] += 1
            if calls[0] == 2:
                change(table)

    with pytest.raises(TableError, match=r"changed while it was read: .* Start again") as caught:
        go(table, progress=progress)
    assert "\n" not in str(caught.value)
    assert set(learned) <= there


@pytest.mark.parametrize("change", [cut, replace_it, remove])
@pytest.mark.parametrize("stage", ["first", "second", "third"])
def test_a_parquet_file_that_changes_during_the_run(tmp_path, change, stage, no_hang):
    table, calls = write_table(tmp_path / "table.parquet"), [0]

    def progress(text, done, total):
        if text.startswith(stage):
            calls[0] += 1
            if calls[0] == 2:
                change(table)

    with pytest.raises(TableError, match="changed while it was read"):
        go(table, progress=progress)


def test_rows_are_counted_even_if_nothing_tells_of_a_change(table, monkeypatch, no_hang):
    """Some file systems give the same times and numbers to all files."""
    monkeypatch.setattr(Version, "check", lambda self, path: None)
    for change, words in (
        (append, "other rows than the 2,400"),
        (cut, "changed while it was read: there are"),
        (cut_to_the_header, "there are 0 rows, and were"),
        (rewrite, "'label' has a new class"),
    ):
        write_table(table)
        calls = [0]

        def progress(text, done, total, change=change, calls=calls):
            if text.startswith("second"):
                calls[0] += 1
                if calls[0] == 8:  # the end of an epoch
                    change(table)

        with pytest.raises(TableError, match=words):
            go(table, progress=progress)


def test_the_command_says_in_one_line_that_its_file_changed(table):
    lines = table.read_text().splitlines(keepends=True)
    writer = table.open("a")

    def write():
        writer.write(lines[-1] * 50)
        writer.flush()

    process = start(table.parent, "table.csv", "--buffer", "50", "--epochs", "50")
    while process.poll() is None:
        write()
        time.sleep(0.01)
    out, err = process.communicate()
    writer.close()
    assert process.returncode == 1, err
    assert out == ""
    assert err.startswith("error: table.csv changed while it was read: ")
    assert err.count("\n") == 1
    assert not (table.parent / "a.quadric").exists()


# ---- few rows, and rows that are not there ---------------------------------------------------


def test_buffers_without_a_row_to_learn_from(tmp_path):
    """The first rows have no target, or are held out, and a checkpoint is written all the same."""
    table = tmp_path / "table.csv"
    rows = "".join(f"{i},{i % 7},{'' if i < 5 else 'ab'[i % 2]}\n" for i in range(60))
    table.write_text("x,z,y\n" + rows)
    wishes, stream = Wishes("y"), Stream(buffer=1, epochs=2, every=1)
    expected = go(table, wishes, stream)
    for calls in (1, 4, 30):
        with pytest.raises(StopError):
            go(table, wishes, stream, progress=stop_after(calls + 1, "second"))
        resumed = go(table, wishes, stream, resume=True)
        for one, other in zip(parameters(expected), parameters(resumed), strict=True):
            assert one.tobytes() == other.tobytes()


def test_all_rows_held_out(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n1,a\n2,b\n3,\n")
    seed = next(n for n in range(99) if np.random.default_rng([n, 1, 0]).random(3).max() < 0.9)
    settings, checkpoint = Settings(seed=seed, test_size=0.9), Checkpoint(tmp_path / "checkpoint")
    with pytest.raises(TableError, match=r"no row is left to train on.* smaller --test-size"):
        train_stream(open_table(table), Wishes("y"), settings, Stream(epochs=1), checkpoint)


def test_targets_too_small_to_be_squared(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "".join(f"{i % 9},{(i % 7) * 1e-180!r}\n" for i in range(90)))
    trained = go(table, Wishes("y", task="regression"), Stream(epochs=2))
    assert all(np.isfinite(array).all() for array in parameters(trained))


def test_ctrl_c_stops_the_run_and_not_just_one_buffer(table, monkeypatch):
    from quadric.training._mini_batch import MiniBatch

    calls = [0]
    original = MiniBatch.run_epoch

    def interrupt(self, *arguments, **options):
        calls[0] += 1
        if calls[0] == 9:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    expected = go(table)
    monkeypatch.setattr(MiniBatch, "run_epoch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        go(table)
    monkeypatch.undo()
    for one, other in zip(parameters(expected), parameters(go(table, resume=True)), strict=True):
        assert one.tobytes() == other.tobytes()


# ---- memory --------------------------------------------------------------------------------


def make_parquet(path, rows, chunk=200_000):
    """Eight numbers, a category and a label, in row groups, without holding it all."""
    from quadric.tables._writing import write_batches

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


def stored_state(path):
    _, arrays = container.read(path, FORM)
    return json.loads(arrays["state"].tobytes())["state"]


def kill_when_training(process, checkpoint, stage):
    """SIGKILL once a checkpoint of the stage is there."""
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
    from quadric.estimators import _base as fitting

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


# ---- kills ---------------------------------------------------------------------------------


def kill(count, rows):
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_streams", str(count), "0", str(rows)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout)
    assert outcome["kills"] == count
    return outcome


def test_killed_streams_give_the_same_bytes():
    kill(2, 5000)


@pytest.mark.full
def test_30_killed_streams(capsys):
    outcome = kill(30, 30_000)
    with capsys.disabled():
        print(f"\n30 killed streams: {json.dumps(outcome)}")
    assert outcome["stages"]["second pass"] > 5
