"""A save that is killed or interrupted, or fails on a full disk, leaves a complete file."""

import contextlib
import json
import os
import resource
import stat
import subprocess

import pytest

from quadric import Network, load, save
from quadric.utils import temporary_name
from tests.support.fitted_models import make
from tests.support.processes import answer_of, without_rights


def kill(count):
    outcome = answer_of("killing.saves", count, 0)
    assert outcome["first"] + outcome["second"] == count
    return outcome


@pytest.mark.slow
def test_killed_saves_leave_a_complete_file():
    kill(8)


@pytest.mark.full
def test_300_killed_saves_leave_a_complete_file(capsys):
    outcome = kill(300)
    for stage, least in {"making": 60, "writing": 60, "renaming": 20, "caught halfway": 60}.items():
        assert outcome[stage] >= least  # otherwise the test proves little
    with capsys.disabled():
        print(f"\n300 killed saves: {json.dumps(outcome)}")


@contextlib.contextmanager
def small_disk(directory):
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextlib.contextmanager
def small_files(directory):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.unix
@pytest.mark.parametrize(
    ("trouble", "message"), [(small_disk, "No space left"), (small_files, "File too large")]
)
def test_a_full_disk_leaves_the_old_file(trouble, message, tmp_path):
    directory = tmp_path / "disk"
    directory.mkdir()
    path = directory / "model.quadric"
    old = make("network linear float64")[0]
    large = Network.create(100, [("quadratic", 10, "logistic")], rng=0)
    with trouble(directory):
        save(old, path)
        before = path.read_bytes()
        with pytest.raises(OSError, match=f"cannot save the model: {message}.*unchanged.*{path}"):
            save(large, path)
        assert path.read_bytes() == before
        assert list(directory.iterdir()) == [path]
        assert load(path).n_inputs == old.n_inputs


@pytest.mark.unix
def test_a_read_only_place_leaves_the_old_file(tmp_path):
    model = make("network linear float64")[0]
    closed = tmp_path / "closed"
    closed.mkdir()
    path = closed / "model.quadric"
    save(model, path)
    before = path.read_bytes()
    for place in (tmp_path, *list(tmp_path.parents)[:2]):
        place.chmod(0o755)
    for mode, directory_mode in ((0o666, 0o555), (0o444, 0o777)):
        path.chmod(mode)
        closed.chmod(directory_mode)
        with (
            without_rights(),
            pytest.raises(PermissionError, match=r"cannot save the model.*unchanged"),
        ):
            save(model, path)
        assert path.read_bytes() == before
    closed.chmod(0o755)
    assert list(closed.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="cannot save the model: No such"):
        save(model, tmp_path / "nowhere" / "model")


@pytest.mark.unix
def test_links_and_modes_are_kept_and_leftovers_removed(tmp_path):
    model = make("network linear float64")[0]
    path, link = tmp_path / "model", tmp_path / "link"
    save(model, path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    old, new = temporary_name(path), temporary_name(path)
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    save(make("network quadratic float64")[0], link)
    assert link.is_symlink()
    assert load(path).layers[0].kind == "quadratic"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == sorted([path, link, new])


def test_an_interrupted_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(make("network linear float64")[0], path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
