"""Checkpoints: unrelated files are never read, replaced or removed; damaged files are refused."""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from quadric.apps.shell.tables import Checkpoint, Stream, checkpoint_path
from quadric.apps.shell.tables._streaming import FORM
from quadric.errors import TableError
from quadric.files import _safetensors as container
from tests.support import damaged_checkpoints
from tests.support.commands import assert_error, command
from tests.support.tables import StopError, go, stop_after, write_table

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path):
    write_table(tmp_path / "table.csv", 600)
    return tmp_path


def train(place, *more, output="a.quadric"):
    options = ["--stream", "--epochs", "1", "--buffer", "100", "--checkpoint-every", "1"]
    table = place / "table.csv"
    return command("train", table, "-t", "label", "-o", place / output, *options, *more)


# ---- unrelated files -----------------------------------------------------------------------


def text_file(path):
    path.write_text("precious")


def empty_file(path):
    path.touch()


def npz_file(path):
    np.savez(path.with_suffix(".npz"), a=np.arange(3))
    os.replace(path.with_suffix(".npz"), path)


def model_file(path):
    path.write_bytes(container.to_bytes({"versions": {}, "model": {}, "extra": {}}, {}))


def link(path):
    path.with_name("precious").write_text("precious")
    path.symlink_to(path.with_name("precious"))


def link_to_nothing(path):
    path.symlink_to(path.with_name("nothing"))


def link_to_a_checkpoint(path):
    Checkpoint(path.with_name("other")).save({}, {})
    path.symlink_to(path.with_name("other"))


def directory(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def files_in(directory):
    """Return inode, time and content of each file; a device has no content."""
    found = {}
    for path in directory.iterdir():
        readable = path.is_file() and path.stat().st_size < 10**6
        content = path.read_bytes() if readable else None
        found[path.name] = (path.lstat().st_ino, path.lstat().st_mtime_ns, content)
    return found


@pytest.mark.unix
@pytest.mark.parametrize("resume", [(), ("--resume",)], ids=["new", "resume"])
@pytest.mark.parametrize(
    "make",
    [
        text_file,
        empty_file,
        npz_file,
        model_file,
        link,
        link_to_nothing,
        link_to_a_checkpoint,
        directory,
        pipe,
        device,
    ],
)
def test_files_that_are_not_checkpoints_stay_unchanged(place, make, resume, no_hang):
    path = place / "a.quadric.checkpoint"
    make(path)
    before = files_in(place)
    result = train(place, *resume)
    assert_error(result, "Move it, or choose another output with -o.")
    assert "a.quadric.checkpoint " in result.stderr
    assert files_in(place) == before


@pytest.mark.slow
def test_an_older_checkpoint_is_replaced_and_removed(place):
    path = place / "a.quadric.checkpoint"
    with pytest.raises(StopError):
        go(place / "table.csv", progress=stop_after(2, "second"))
    os.replace(place / "table.checkpoint", path)
    result = train(place)
    assert result.returncode == 0, result.stderr
    assert sorted(one.name for one in place.iterdir()) == ["a.quadric", "table.csv"]


@pytest.mark.parametrize("calls", [1, 4])
def test_a_file_created_by_another_process_during_the_run(place, calls):
    """It appears before the first checkpoint is written, or between two checkpoints."""
    path = place / "table.checkpoint"
    seen = [0]

    def progress(done, total, text):
        seen[0] += 1
        if seen[0] == calls:
            path.unlink(missing_ok=True)
            path.write_text("precious")

    stream = Stream(buffer=100, epochs=1, every=2)
    with pytest.raises(TableError, match="was written by another process") as caught:
        go(place / "table.csv", stream=stream, progress=progress)
    assert "\n" not in str(caught.value)
    assert path.read_text() == "precious"
    assert sorted(one.name for one in place.iterdir()) == ["table.checkpoint", "table.csv"]


def test_a_checkpoint_that_was_removed_is_written_again(place):
    path, found = place / "table.checkpoint", []

    def remove(*_):
        found.append(path.exists())
        path.unlink(missing_ok=True)

    go(place / "table.csv", progress=remove)
    assert sum(found) >= 2


def test_only_files_written_by_the_run_are_removed(place):
    path, run = place / "checkpoint", {"x": 1}
    one, other = Checkpoint(path), Checkpoint(path)
    assert one.begin(run, resume=False) is None
    one.remove()  # nothing has been written
    one.save({"a": 1}, {})
    other.begin(run, resume=False)
    other.save({"a": 2}, {})
    one.remove()
    assert other.begin(run, resume=True) == ({"a": 2}, {})
    path.with_name(".quadric-note.part").write_text("precious")
    other.remove()
    assert sorted(file.name for file in place.iterdir()) == [".quadric-note.part", "table.csv"]


def test_leftovers_of_a_killed_writer_are_removed_with_the_checkpoint(place, monkeypatch):
    path, run = place / "checkpoint", {"x": 1}
    checkpoint = Checkpoint(path)
    checkpoint.begin(run, resume=False)
    checkpoint.save({}, {})
    monkeypatch.setattr(os, "unlink", lambda path: None)  # as if the process was killed first

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    for other in (checkpoint, Checkpoint(path)):
        other.begin(run if other is checkpoint else {"x": 2}, resume=False)
        with pytest.raises(KeyboardInterrupt):
            other.save({}, {})
    monkeypatch.undo()
    left = list(place.glob(".quadric-*.part"))
    assert len(left) == 2
    checkpoint.remove()
    assert len(list(place.glob(".quadric-*.part"))) == 1  # the one of the other run
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("length", [200, 244, 245, 255])
def test_outputs_with_long_names_are_saved(place, length):
    output = "n" * length
    path = checkpoint_path(place / output)
    assert len(path.name) <= 255
    assert path.name == f"{output}.checkpoint" or length > 244
    assert path != checkpoint_path(place / ("m" * length))
    result = train(place, output=output)
    assert result.returncode == 0, result.stderr
    assert sorted(one.name for one in place.iterdir()) == sorted([output, "table.csv"])


# ---- damage --------------------------------------------------------------------------------


def test_a_checkpoint_of_other_versions_is_refused(place, monkeypatch):
    import quadric

    with pytest.raises(StopError):
        go(place / "table.csv", progress=stop_after(2, "second"))
    monkeypatch.setattr(quadric, "__version__", "99")
    with pytest.raises(TableError, match=r"belongs to another run: versions was \{.*'99'"):
        go(place / "table.csv", resume=True)


def test_a_checkpoint_contains_the_current_state(place):
    """The file contains the arrays, counters and records of the run."""
    with pytest.raises(StopError):
        go(place / "table.csv", progress=stop_after(3, "second"))
    description, arrays = container.read(place / "table.checkpoint", FORM)
    described = json.loads(arrays.pop("state").tobytes())
    assert set(description) == {"format", "versions"}
    assert described["state"]["buffers"] == 2
    assert {name.split(".")[0] for name in arrays} == {"model", "linear"}
    assert len(arrays["model.loss"]) == 2
    assert described["run"]["target"] == "label"


@pytest.mark.slow
def test_a_state_of_any_length_is_read_back(place):
    """Many columns with many categories lead to a long text in many pieces."""
    state = {"values": {f"column {i} " + "x" * 500: [1, 2, 3] for i in range(40_000)}}
    checkpoint = Checkpoint(place / "checkpoint")
    checkpoint.begin({"drop": [f"c{i}" for i in range(20_000)]}, resume=False)
    checkpoint.save(state, {})
    again = Checkpoint(place / "checkpoint")
    stored = again.begin({"drop": [f"c{i}" for i in range(20_000)]}, resume=True)
    assert stored == (state, {})


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    return damaged_checkpoints.Originals(tmp_path_factory.mktemp("originals"))


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(250, marks=pytest.mark.full)])
@pytest.mark.parametrize("damage", damaged_checkpoints.DAMAGES, ids=lambda one: one.__name__)
def test_damaged_checkpoints(originals, damage, count):
    found = Counter()
    for seed in range(count):
        outcome, said = originals.outcome_of(originals.damaged(damage, seed))
        assert outcome in ("refused", "same"), (said, seed)
        if outcome == "refused":
            assert "checkpoint" in said
            assert "\n" not in said
        found[outcome] += 1
    print(damage.__name__, dict(found))


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(6000, marks=pytest.mark.full)])
def test_forged_checkpoints_give_no_traceback(originals, count):
    """With a valid hash and plausible values, the result is a model or a one-line error."""
    found = Counter()
    for seed in range(count):
        outcome, said = originals.outcome_of(originals.damaged(damaged_checkpoints.forge, seed))
        assert "\n" not in said
        found[outcome] += 1
    print(dict(found))


@pytest.mark.slow
def test_the_undamaged_checkpoints_give_the_same_model(originals):
    assert [originals.outcome_of(content)[0] for content in originals.contents] == ["same"] * 3
