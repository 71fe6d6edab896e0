"""`quadric data`: list, fetch and verify."""

import json

import pytest

from quadric.datasets import _sources as sources
from quadric.datasets._sources import ImageSource, UnavailableError
from tests.support.commands import command
from tests.support.small_files import CONTENTS, LABELS, fill


def data(*arguments):
    return command("data", *arguments)


@pytest.fixture
def source(monkeypatch):
    """A source that is available."""
    good = ImageSource("a friend", lambda collection: dict(CONTENTS[collection.name]))
    for name in CONTENTS:
        monkeypatch.setitem(sources.SOURCES, name, (good,))


@pytest.mark.usefixtures("small_files")
def test_data_list_shows_missing_and_damaged_files(tmp_path):
    cache = fill(tmp_path / "cache" / "mnist")
    result = data("list", "--json")
    assert result.returncode == 0
    mnist, fashion = json.loads(result.stdout)["rows"]
    size = sum(map(len, CONTENTS["mnist"].values()))
    assert mnist == {
        "name": "mnist",
        "where": str(cache),
        "size": size,
        "verified": True,
        "problem": None,
    }
    assert (fashion["name"], fashion["where"]) == ("fashion_mnist", None)
    assert "not found" in data("list").stdout
    (cache / LABELS).write_bytes(b"bad")
    row = json.loads(data("list", "--json").stdout)["rows"][0]
    assert not row["verified"]
    assert "only 3 of 14 bytes" in row["problem"]
    assert "fetch mnist --force" in data("list").stdout


@pytest.mark.usefixtures("small_files", "source")
def test_data_fetch_and_verify(tmp_path):
    result = data("fetch", "mnist")
    assert result.returncode == 0, result.stderr
    cache = tmp_path / "cache" / "mnist"
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == CONTENTS["mnist"]
    assert "downloaded from a friend" in result.stdout
    assert "already there" in data("fetch", "mnist").stdout

    result = data("verify", "mnist")
    assert result.returncode == 0
    assert result.stdout.count(": ok, md5 ") == 4
    assert "fashion_mnist: not found" in data("verify").stdout

    (cache / LABELS).write_bytes(b"bad")
    for arguments in (["verify"], ["verify", "mnist"], ["fetch", "mnist"]):
        result = data(*arguments)
        assert result.returncode == 1
        assert result.stderr.startswith(f"error: {cache / LABELS} is not MNIST's {LABELS}")
        assert result.stderr.count("\n") == 1
    (cache / LABELS).unlink()
    result = data("verify")
    assert result.returncode == 1
    assert f"{cache / LABELS} is missing" in result.stderr

    (cache / LABELS).write_bytes(b"bad")
    assert data("fetch", "mnist", "--force").returncode == 0
    assert data("verify", "mnist").returncode == 0
    assert "downloaded from a friend" in data("fetch", "mnist", "--force").stdout


@pytest.mark.usefixtures("small_files", "source")
def test_data_are_fetched_into_a_directory(tmp_path, monkeypatch):
    result = data("fetch", "fashion_mnist", "--data-dir", tmp_path / "own")
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("QUADRIC_DATA", str(tmp_path / "own"))
    assert data("verify", "fashion_mnist").stdout.count(": ok, md5 ") == 4
    bad = tmp_path / "own" / "fashion_mnist" / LABELS
    bad.write_bytes(b"bad")
    result = data("fetch", "fashion_mnist", "--data-dir", tmp_path / "own")
    assert f"--data-dir {tmp_path / 'own'} --force" in result.stderr
    (tmp_path / "[file]").write_text("")
    result = data("fetch", "mnist", "--data-dir", tmp_path / "[file]")
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: cannot write to {tmp_path / '[file]'}")
    assert "Choose another directory with --data-dir" in result.stderr


@pytest.mark.usefixtures("small_files")
def test_data_that_are_not_available_are_a_one_line_error(monkeypatch):
    def closed(collection):
        raise UnavailableError("closed")

    monkeypatch.setitem(sources.SOURCES, "mnist", (ImageSource("a shop", closed),))
    result = data("fetch", "mnist")
    assert result.returncode == 1
    assert "Tried: a shop (closed)." in result.stderr
    assert result.stderr.count("\n") == 1
    for arguments in (["verify"], ["verify", "mnist"]):
        result = data(*arguments)
        assert result.returncode == 1
        assert "quadric data fetch mnist" in result.stderr


def test_small_files_are_not_mnist(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADRIC_CACHE", str(tmp_path))
    monkeypatch.setenv("QUADRIC_DATA", "")
    result = command("data", "verify", "mnist")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("error: there is nothing to verify")
    fill(tmp_path / "mnist")  # small files, which the real table refuses
    result = command("data", "verify", "mnist")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "6bbc9ace898e44ae57da46a324031adb" in result.stderr
    assert command("data", "fetch", "nonsense").returncode == 2
    assert command("data", "verify", "nonsense").returncode == 2
    assert "Example: " in command("data", "fetch", "--help").stdout
