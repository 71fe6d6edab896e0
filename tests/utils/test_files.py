"""Files written atomically: any valid name works, and unrelated files stay unchanged."""

import os

import polars as pl
import pytest

import quadric
from quadric import Network
from quadric.apps.shell.tables._prediction import write_batches
from quadric.utils import _files as whole_files, write_whole

MODEL = Network.create(2, [("quadratic", 1, "logistic")], rng=0)


@pytest.mark.parametrize("length", [200, 240, 255])
@pytest.mark.parametrize("letter", ["n", "é"])
def test_any_name_that_the_file_system_allows(tmp_path, letter, length):
    path = tmp_path / (letter * (length // len(letter.encode())))
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    quadric.save(MODEL, path)
    assert quadric.load(path).n_inputs == 2
    write_batches(path, iter([pl.DataFrame({"a": [1]})]))
    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_too_long_is_an_error(tmp_path):
    with pytest.raises(OSError, match="name too long"):
        write_whole(tmp_path / ("n" * 256), b"")
    assert not list(tmp_path.iterdir())


def test_only_leftovers_of_the_same_file_are_removed(tmp_path):
    """Old files with similar names stay, and so do the contents of links and directories."""
    path = tmp_path / "model"
    ours, theirs = [
        whole_files.temporary_name(tmp_path / name) for name in ("model", "another model")
    ]
    precious = [theirs, tmp_path / ".model.my precious text.part", tmp_path / ".model.part"]
    precious += [tmp_path / f".model.{'0' * 16}.part", ours.with_name(ours.name[:-6] + "x.part")]
    for one in (ours, *precious):
        one.write_text("precious")
        os.utime(one, (0, 0))
    directory, link = whole_files.temporary_name(path), whole_files.temporary_name(path)
    directory.mkdir()
    link.symlink_to(theirs)
    os.utime(link, (0, 0), follow_symlinks=False)
    os.utime(directory, (0, 0))
    new = whole_files.temporary_name(path)
    new.write_text("being written")
    write_whole(path, b"content")
    assert not ours.exists()
    assert all(one.read_text() == "precious" for one in precious)
    assert sorted(tmp_path.iterdir()) == sorted([path, directory, link, new, *precious])


def test_a_new_file_replaces_no_other_file(tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    write_whole(path, b"first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(path, b"second", new=True)
    assert path.read_bytes() == b"first"
    link = tmp_path / "link"
    link.symlink_to(other)
    with pytest.raises(FileExistsError):
        write_whole(link, b"second", new=True)
    with pytest.raises(PermissionError, match="it is a link"):
        write_whole(link, b"second", follow_links=False)
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_a_new_file_replaces_no_other_file_without_hard_links(tmp_path, monkeypatch):
    def unsupported(*names):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    path = tmp_path / "file"
    write_whole(path, b"first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(path, b"second", new=True)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
