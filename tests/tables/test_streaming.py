"""Streaming trains a model and resumes bit-identically from a checkpoint."""

import os

import numpy as np
import polars as pl
import pytest

from quadric import QuadraticClassifier
from quadric.apps.shell.tables import (
    ColumnOptions,
    Settings,
    Stream,
    open_table,
    train,
    train_stream,
)
from quadric.apps.shell.tables._source import Source, file_version
from quadric.apps.shell.tables._streaming import Checkpoint
from quadric.errors import TableError
from quadric.estimators import restore_training, training_state
from tests.support.damaged_checkpoints import content_of
from tests.support.tables import (
    StopError,
    go,
    parameters,
    record_learned,
    stop_after,
    write_table,
)


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "table.csv")


@pytest.mark.slow
def test_streaming_learns(table):
    trained = go(table, stream=Stream(buffer=300, epochs=20))
    scores = trained.report["scores"]
    assert scores["this model"] > 0.93
    assert scores["logistic regression"] < 0.75
    assert 0.5 < scores["most frequent class"] < 0.7
    assert trained.schema.missing_targets == 24
    assert trained.report["trained"] + trained.report["held_out"] == 2376
    assert 0.2 < trained.report["held_out"] / 2376 < 0.3
    assert np.sum(trained.report["confusion"]) == trained.report["held_out"]
    whole = train(open_table(table), ColumnOptions("label", drop=["size"]), Settings())
    assert scores["this model"] > whole.report["scores"]["this model"] - 0.03


@pytest.mark.slow
def test_held_out_rows_are_not_used_for_training(table, monkeypatch):
    learned = record_learned(monkeypatch)
    trained = go(table, stream=Stream(buffer=300, epochs=2))
    first, second = np.concatenate(learned[:8]), np.concatenate(learned[8:])
    assert len(first) == trained.report["trained"]
    assert set(first) == set(second)
    assert first.tolist() != second.tolist()  # another order in every epoch


@pytest.mark.parametrize(
    ("missing", "message"),
    [("label", r"test\.csv lacks the target 'label'"), ("z", "the table lacks the column 'z'")],
)
def test_a_column_that_the_test_table_lacks_is_reported_before_training(table, missing, message):
    test = table.with_name("test.csv")
    pl.read_csv(table).drop(missing).write_csv(test)
    with pytest.raises(TableError, match=message):
        go(table, test=open_table(test), progress=stop_after(1, "second"))


@pytest.mark.slow
def test_streaming_learns_a_regression_in_any_units(table):
    options = ColumnOptions("size", drop=["label", "colour"])
    trained = go(table, options, Stream(buffer=300, epochs=30))
    assert trained.report["scores"]["this model"] > 0.95
    assert abs(trained.report["scores"]["the mean"]) < 0.02
    reduced = train_stream(
        open_table(table),
        options,
        Settings(kind="reduced", hidden=(8,)),
        Stream(epochs=30),
        Checkpoint(table.with_suffix(".ck")),
    )
    assert np.isfinite(reduced.report["scores"]["this model"])


@pytest.mark.sample(3)
@pytest.mark.slow
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
    resumed = go(table, resume=True, progress=lambda done, total, text: seen.append((text, done)))
    for one, other in zip(parameters(expected), parameters(resumed), strict=True):
        assert one.tobytes() == other.tobytes()
    assert resumed.report["scores"] == expected.report["scores"]
    assert resumed.schema == expected.schema
    assert content_of(resumed) == content_of(expected)  # the records of training included
    assert state.path.exists()  # the caller removes it once the model is saved
    trained = [done for text, done in seen if text.startswith("second")]
    if stage == "second":  # finished work is not repeated
        assert len(trained) == 24 - 2 * (calls // 2) + (0 if calls % 2 else 2)
        assert not [text for text, _ in seen if text.startswith("first")]
    if stage == "third":
        assert not trained


@pytest.mark.slow
def test_buffers_do_not_depend_on_how_the_file_is_read(table, monkeypatch):
    from quadric.apps.shell.tables import _csv_file as reading

    expected = go(table)
    monkeypatch.setattr(reading, "BLOCK", 1000)
    for one, other in zip(parameters(expected), parameters(go(table)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_checkpoint_of_another_run_is_refused(table):
    with pytest.raises(StopError):
        go(table, progress=stop_after(5, "second pass"))
    with pytest.raises(TableError, match=r"belongs to another run: target was 'label'"):
        go(table, ColumnOptions("colour", drop=["size"]), resume=True)
    with pytest.raises(TableError, match=r"epochs was 3"):
        go(table, stream=Stream(buffer=300, epochs=4), resume=True)
    table.write_text(table.read_text() + "1,1,red,1,in\n")
    with pytest.raises(TableError, match=r"size was"):
        go(table, resume=True)


def test_other_content_of_the_same_size_and_time_is_refused(table):
    """The position in the file and the modification time do not matter."""
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
def test_a_sample_of_a_file_includes_both_ends_and_the_middle(tmp_path, size):
    def digest(content):
        (tmp_path / "a").write_bytes(content)
        version = file_version((tmp_path / "a").stat())
        return Source(tmp_path / "a", {tmp_path / "a": version}, (), frames=None).fingerprint()[
            "content"
        ]

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
    arrays = {name: array.copy() for name, array in training_state(half).items()}
    restore_training(other, arrays, n_features=3, classes=[0, 1, 2])
    for k in (1, 2):
        other.partial_fit(X[300 * k : 300 * k + 300], y[300 * k : 300 * k + 300])
    assert other.network_.layers[0].Q.tobytes() == whole.network_.layers[0].Q.tobytes()
    assert other.loss_ == whole.loss_
    assert other.loss_curve_ == whole.loss_curve_


@pytest.mark.slow
def test_a_divergence_lowers_the_rate(table, monkeypatch):
    from quadric.apps.shell.tables import _streaming as learner

    monkeypatch.setattr(learner, "RATE", 1e4)  # a step that is far too large
    trained = go(table)
    assert "Training diverged" in " ".join(trained.notes)
    assert all(np.isfinite(array).all() for array in parameters(trained))
    assert trained.report["scores"]["this model"] > trained.report["scores"]["most frequent class"]


@pytest.mark.slow
def test_buffers_without_training_rows_are_resumed(tmp_path):
    """A checkpoint is written even if the first rows have no target or are held out."""
    table = tmp_path / "table.csv"
    rows = "".join(f"{i},{i % 7},{'' if i < 5 else 'ab'[i % 2]}\n" for i in range(30))
    table.write_text("x,z,y\n" + rows)
    options, stream = ColumnOptions("y"), Stream(buffer=1, epochs=2, every=1)
    expected = go(table, options, stream)
    for calls in (1, 15):
        with pytest.raises(StopError):
            go(table, options, stream, progress=stop_after(calls + 1, "second"))
        resumed = go(table, options, stream, resume=True)
        for one, other in zip(parameters(expected), parameters(resumed), strict=True):
            assert one.tobytes() == other.tobytes()


def test_a_table_whose_rows_are_all_held_out_is_refused(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n1,a\n2,b\n3,\n")
    seed = next(n for n in range(99) if np.random.default_rng([n, 1, 0]).random(3).max() < 0.9)
    settings, checkpoint = Settings(seed=seed, test_size=0.9), Checkpoint(tmp_path / "checkpoint")
    with pytest.raises(TableError, match=r"no row is left to train on.* smaller --test-size"):
        train_stream(open_table(table), ColumnOptions("y"), settings, Stream(epochs=1), checkpoint)


def test_targets_too_small_to_be_squared_give_finite_parameters(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "".join(f"{i % 9},{(i % 7) * 1e-180!r}\n" for i in range(90)))
    trained = go(table, ColumnOptions("y", task="regression"), Stream(epochs=2))
    assert all(np.isfinite(array).all() for array in parameters(trained))


@pytest.mark.slow
def test_ctrl_c_stops_the_run_and_not_just_one_buffer(table, monkeypatch):
    from quadric.training._steppers import MiniBatch

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
