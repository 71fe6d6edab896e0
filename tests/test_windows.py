"""The code for Windows works in a process that resembles one on Windows, on Linux."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from quadric.utils import _files as portable_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulates Windows on Linux")

ROOT = Path(__file__).parents[1]


def start(script, *arguments):
    """Start a process that resembles one on Windows."""
    script = f"import os, sys\nfrom tests.support.like_windows import *\n{script}"
    return subprocess.Popen(
        [sys.executable, "-X", "warn_default_encoding", "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )


def output_of(script, *arguments, given=""):
    process = start(script, *arguments)
    output, errors = process.communicate(given, timeout=300)
    assert process.returncode == 0, errors
    return output


@pytest.mark.slow
def test_every_module_can_be_imported():
    script = """
import quadric, quadric.__main__
names = [name for name in modules_of(quadric) if not name.endswith("__main__")]
others = ["asyncio", "distributed", "matplotlib.pyplot", "numba", "onnx", "polars", "sqlite3"]
others += ["joblib", "scipy.optimize", "sklearn.utils.estimator_checks", "torch", "typer", "rich"]
others += ["skl2onnx", "jinja2", "sklearn.datasets"]
print(len(imported_on_windows(names, others)))
for name in ABSENT_MODULES:
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} is still there")
"""
    sources = list((ROOT / "src" / "quadric").rglob("*.py"))
    assert int(output_of(script)) == len(sources) - 1  # without __main__


FILES = """
import numpy as np
import polars as pl
others = ["joblib", "numba", "polars", "sklearn.pipeline", "sklearn.linear_model", "sqlite3"]
names = ["quadric", "quadric.apps.shell.tables", "quadric.apps.playground"]
names += ["quadric.utils._memory_and_threads", "quadric.apps.shell.tables._source"]
quadric, tables, playground, memory, _ = imported_on_windows(names, others)
from quadric.apps.shell.tables._prediction import write_batches
from tests.support import tables
folder = Path(sys.argv[1])

net = quadric.Network.create(2, [("quadratic", 1, "logistic")], rng=0)
for _ in range(2):  # the second replaces the first
    quadric.save(net, folder / "net.quadric")
X = np.ones((1, 2))
assert quadric.load(folder / "net.quadric").forward(X) == net.forward(X)

csv, parquet = tables.write_table(folder / "a.csv"), tables.write_table(folder / "b.parquet")
for data in (csv, parquet):
    whole = tables.go(data)
    try:
        tables.go(data, progress=tables.stop_after(3, "train"))
    except tables.StopError:
        assert data.with_suffix(".checkpoint").exists()
    else:
        raise SystemExit("the run was not stopped")
    resumed = tables.go(data, resume=True)
    assert all(map(np.array_equal, tables.parameters(whole), tables.parameters(resumed)))

source = tables.open_table("-")
spool = source.spool.path
assert source.read().rows() == [("1", "é")]
del source
assert not spool.exists()

for suffix in ("csv", "parquet"):
    for value in (1, 2):
        write_batches(folder / f"out.{suffix}", iter([pl.DataFrame({"a": [value]})]))
assert pl.read_csv(folder / "out.csv")["a"].item() == 2
assert pl.read_parquet(folder / "out.parquet")["a"].item() == 2

playground.copy_page(folder / "page")
assert 0 < memory.available_bytes() <= AVAILABLE
print(*sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.slow
def test_models_streams_tables_and_pages_are_written(tmp_path):
    written = "a.checkpoint a.csv b.checkpoint b.parquet net.quadric out.csv out.parquet page"
    assert output_of(FILES, tmp_path, given="a,b\n1,é\n").split() == written.split()


STORE = """
from dataclasses import replace
others = ["joblib", "numba", "sklearn", "sqlite3"]
(sweep,) = imported_on_windows(["quadric.apps.paper.sweep"], others)
RECIPE = sweep.Recipe(learning_rate=0.02, init_scale=0.05, epochs=(10, 20, 40))
here = sweep.Environment("a processor", "0", "0", "0", "0")
try:
    with sweep.Store(sys.argv[1]) as store:
        print("open", flush=True)
        for line in sys.stdin:
            task = sweep.Task(5, 4, "linear", int(line))
            store.add(RECIPE, "data", task, sweep.Result((0.5, 0.5, 0.5), 1.0, 1), here)
            print("added", flush=True)
        print(len(store.runs(RECIPE, "data")))
except sweep.StoreError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_store_has_one_writer(tmp_path):
    path = tmp_path / "runs.sqlite"
    holder = start(STORE, path)
    try:
        assert holder.stdout.readline() == "open\n", holder.stderr.read()
        refused = output_of(STORE, path)
        assert f"the store {path} is in use by another process" in refused
        holder.stdin.write("0\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "added\n"
    finally:
        holder.kill()
        holder.communicate()
    assert output_of(STORE, path, given="1\n").split() == ["open", "added", "2"]
    assert output_of(STORE, path).split() == ["open", "2"]


def test_piped_output_is_utf_8(monkeypatch):
    cli = pytest.importorskip("quadric.apps.shell")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", newline="\n")
    system = SimpleNamespace(platform="win32", stdout=stdout, stderr=None)
    monkeypatch.setattr(cli, "sys", system)
    monkeypatch.setattr(cli, "app", lambda: print("é → ²", file=stdout))
    cli.main()
    stdout.flush()
    assert stdout.buffer.getvalue() == "é → ²\n".encode()


def in_use(path, handle):
    def replace(source, target):
        if not handle.closed:
            error = PermissionError(13, "The file is in use", os.fspath(path))
            error.winerror = 32
            raise error
        return real(source, target)

    real = os.replace
    return replace


def test_a_file_that_is_open_is_replaced_when_it_is_closed(tmp_path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with old.open("rb") as handle:
        monkeypatch.setattr(os, "replace", in_use(old, handle))
        threading.Timer(0.2, handle.close).start()
        portable_files.replace(new, old)
    assert old.read_bytes() == b"new"


def test_a_file_that_stays_open_is_an_error(tmp_path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    new.write_bytes(b"new")
    monkeypatch.setattr(portable_files, "PATIENCE", 0.1)
    with old.open("wb") as handle:
        monkeypatch.setattr(os, "replace", in_use(old, handle))
        with pytest.raises(PermissionError, match="in use"):
            portable_files.replace(new, old)
    assert new.read_bytes() == b"new"


def test_another_error_is_not_retried(tmp_path, monkeypatch):
    calls = []

    def refuse(source, target):
        calls.append(source)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        portable_files.replace(tmp_path / "a", tmp_path / "b")
    assert len(calls) == 1
