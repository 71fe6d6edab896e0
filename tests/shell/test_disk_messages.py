"""Errors of the disk, and of tables that are too large for a model file, name what to change."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import assert_error, command, process, write_iris

pytestmark = pytest.mark.slow


def small_disk():
    """Limit the size of files, as a full disk does."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.unix
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_faults_R13_a_full_disk_names_the_file_that_does_not_fit(place, tmp_path, name):
    write_iris(tmp_path / "many.csv", rows=np.arange(30_000) % 150)
    arguments = ["predict", place / "iris.quadric", "many.csv", "-o", name, "--proba"]
    result = process(*arguments, cwd=tmp_path, limit=small_disk)
    assert_error(result, "File too large")
    assert result.stderr.startswith(f"error: {name}: ")
    assert ".part" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["many.csv"]


@pytest.mark.unix
def test_faults_R13_a_full_disk_during_streaming_mentions_resume(tmp_path):
    write_iris(tmp_path / "iris.csv", rows=np.arange(1500) % 150)
    arguments = ["train", "iris.csv", "-t", "species", "--stream", "--checkpoint-every", "1"]
    result = process(*arguments, "--buffer", "100", cwd=tmp_path, limit=small_disk)
    assert_error(result, "File too large")
    assert "iris.quadric.checkpoint: " in result.stderr
    assert result.stderr.endswith("Repeat the command with --resume to continue.\n")


@pytest.mark.unix
def test_faults_R13_copying_the_page_to_a_read_only_disk_names_the_given_path(tmp_path):
    mounted = tmp_path / "disk"
    mounted.mkdir()
    script = (
        f"mount -t tmpfs -o ro tmpfs {mounted} || exit 77\n"
        f"{sys.executable} -m quadric playground --copy-to {mounted}/page\n"
    )
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    result = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("this system does not allow mounts")
    assert_error(result, f"error: {mounted}/page: Read-only file system.")


def test_faults_R13_a_huge_category_names_its_column(tmp_path):
    rows = np.random.default_rng(0).normal(size=40)
    lines = [f"{x},{'a' * 2_000_000 if i == 7 else 'b'},{x > 0}" for i, x in enumerate(rows)]
    (tmp_path / "data.csv").write_text("\n".join(["x,note,label", *lines]))
    result = command("train", "data.csv", "-t", "label", "--hidden", "none", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "note" in result.stderr + result.stdout
    assert "2,000,000 characters" in result.stderr + result.stdout
    lines = [f"{x},{'a' * 2_000_000 if x > 0 else 'b'}" for x in rows]
    (tmp_path / "target.csv").write_text("\n".join(["x,label", *lines]))
    result = command("train", "target.csv", "-t", "label", cwd=tmp_path)
    assert_error(result, "the target 'label' has a class of 2,000,000 characters")
    assert not list(Path(tmp_path).glob("target.*quadric"))
