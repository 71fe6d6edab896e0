"""The command line, as a process."""

import json
import subprocess
import sys

import quadric


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "quadric", *arguments],
        capture_output=True, text=True, cwd=cwd, check=False,
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
