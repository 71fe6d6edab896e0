"""The command line, as a process."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import quadric
from quadric.cli import app
from quadric.datasets import fetching
from quadric.datasets.commands import UnavailableError
from quadric.datasets.fetching import Source
from tests.small_files import CONTENTS, LABELS, fill


def run(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "quadric", *arguments],
        capture_output=True, text=True, cwd=cwd, check=False, env=os.environ | environment,
    )  # fmt: skip


def test_reproduce_xor(tmp_path):
    result = run("reproduce", "xor", "--seeds", "3", "--out", "pictures", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "ellipse 3" in result.stdout
    assert "hyperbola 3" in result.stdout
    picture = tmp_path / "pictures" / "xor.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_json_is_for_machines(tmp_path):
    result = run("reproduce", "xor", "--seeds", "2", "--json", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert rows[0]["kinds"] == {"ellipse": 2}
    assert rows[0]["solved"] == rows[0]["seeds"] == 2


def test_unwritable_output_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("reproduce", "xor", "--out", str(tmp_path / "file"))
    assert result.returncode == 1
    assert result.stderr.startswith("error: cannot write to")
    assert "--out" in result.stderr
    assert "Traceback" not in result.stderr


def test_usage_mistakes():
    assert run("reproduce", "nonsense").returncode == 2
    assert run("reproduce", "xor", "--seeds", "0").returncode == 2


def test_help_and_version():
    assert "xor" in run("reproduce", "--help").stdout
    assert run("--version").stdout == f"quadric {quadric.__version__}\n"


# ---- quadric data --------------------------------------------------------------------------


def data(*arguments):
    """Within this process, so that small files can stand in for the real ones."""
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


@pytest.fixture
def source(monkeypatch):
    """A source that is there."""
    good = Source("a friend", lambda collection: dict(CONTENTS[collection.name]))
    for name in CONTENTS:
        monkeypatch.setitem(fetching.SOURCES, name, (good,))


@pytest.mark.usefixtures("small_files")
def test_data_list(tmp_path):
    cache = fill(tmp_path / "cache" / "mnist")
    result = data("list", "--json")
    assert result.exit_code == 0
    mnist, fashion = json.loads(result.stdout)["rows"]
    size = sum(map(len, CONTENTS["mnist"].values()))
    assert mnist == {
        "name": "mnist", "where": str(cache), "size": size, "verified": True, "problem": None
    }  # fmt: skip
    assert (fashion["name"], fashion["where"]) == ("fashion_mnist", None)
    assert "not here" in data("list").stdout
    (cache / LABELS).write_bytes(b"bad")
    row = json.loads(data("list", "--json").stdout)["rows"][0]
    assert not row["verified"]
    assert "ends within the header" in row["problem"]
    assert "fetch mnist --force" in data("list").stdout


@pytest.mark.usefixtures("small_files", "source")
def test_data_fetch_and_verify(tmp_path):
    result = data("fetch", "mnist")
    assert result.exit_code == 0, result.stderr
    cache = tmp_path / "cache" / "mnist"
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == CONTENTS["mnist"]
    assert "it came from a friend" in result.stdout
    assert "was there already" in data("fetch", "mnist").stdout

    result = data("verify", "mnist")
    assert result.exit_code == 0
    assert result.stdout.count(": ok, md5 ") == 4
    assert "fashion_mnist: not here" in data("verify").stdout

    (cache / LABELS).write_bytes(b"bad")
    for arguments in (["verify"], ["verify", "mnist"], ["fetch", "mnist"]):
        result = data(*arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {cache / LABELS} is not MNIST's {LABELS}")
        assert result.stderr.count("\n") == 1
    (cache / LABELS).unlink()
    result = data("verify")
    assert result.exit_code == 1
    assert f"{cache / LABELS} is not there" in result.stderr

    (cache / LABELS).write_bytes(b"bad")
    assert data("fetch", "mnist", "--force").exit_code == 0
    assert data("verify", "mnist").exit_code == 0
    assert "it came from a friend" in data("fetch", "mnist", "--force").stdout


@pytest.mark.usefixtures("small_files", "source")
def test_data_fetch_into_a_directory(tmp_path, monkeypatch):
    result = data("fetch", "fashion_mnist", "--data-dir", tmp_path / "own")
    assert result.exit_code == 0, result.stderr
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("QUADRIC_DATA", str(tmp_path / "own"))
    assert data("verify", "fashion_mnist").stdout.count(": ok, md5 ") == 4
    bad = tmp_path / "own" / "fashion_mnist" / LABELS
    bad.write_bytes(b"bad")
    result = data("fetch", "fashion_mnist", "--data-dir", tmp_path / "own")
    assert f"--data-dir {tmp_path / 'own'} --force" in result.stderr
    (tmp_path / "[file]").write_text("")
    result = data("fetch", "mnist", "--data-dir", tmp_path / "[file]")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: cannot write to {tmp_path / '[file]'}")
    assert "Choose another directory with --data-dir" in result.stderr


@pytest.mark.usefixtures("small_files")
def test_data_that_cannot_be_had(monkeypatch):
    def closed(collection):
        raise UnavailableError("closed")

    monkeypatch.setitem(fetching.SOURCES, "mnist", (Source("a shop", closed),))
    result = data("fetch", "mnist")
    assert result.exit_code == 1
    assert "Tried: a shop (closed)." in result.stderr
    assert result.stderr.count("\n") == 1
    for arguments in (["verify"], ["verify", "mnist"]):
        result = data(*arguments)
        assert result.exit_code == 1
        assert "quadric data fetch mnist" in result.stderr


def test_data_as_a_process(tmp_path):
    elsewhere = {"QUADRIC_CACHE": str(tmp_path), "QUADRIC_DATA": ""}
    result = run("data", "verify", "mnist", **elsewhere)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("error: there is nothing to verify")
    fill(tmp_path / "mnist")  # small files, which the real table refuses
    result = run("data", "verify", "mnist", **elsewhere)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "6bbc9ace898e44ae57da46a324031adb" in result.stderr
    assert run("data", "fetch", "nonsense").returncode == 2
    assert run("data", "verify", "nonsense").returncode == 2
    assert "Example: " in run("data", "fetch", "--help").stdout
