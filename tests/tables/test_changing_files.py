"""A file that changes during a run stops it with a one-line error."""

import os
import time
from functools import partial

import numpy as np
import polars as pl
import pytest

from quadric.apps.shell.tables import open_table
from quadric.errors import TableError
from tests.support.tables import at_call, go, record_learned, start, write_table


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "table.csv")


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
    """Write other content of the same size, with the same modification time."""
    before = path.stat()
    content = path.read_bytes().replace(b",in\n", b",ab\n")
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def replace_it(path):
    """Replace the file with another one of the same size."""
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b",in\n", b",ab\n"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)


def remove(path):
    path.unlink()


@pytest.mark.sample(8)
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["first", "second", "third"])
@pytest.mark.parametrize(
    "change", [cut, cut_to_the_header, append, append_a_class, rewrite, replace_it, remove]
)
def test_a_file_that_changes_during_the_run(table, change, stage, monkeypatch, no_hang):
    """Any change leads to a one-line error, and rows added later are never used."""
    from quadric.apps.shell.tables import _csv_file as reading

    learned = record_learned(monkeypatch)
    monkeypatch.setattr(reading, "BLOCK", 5000)  # several blocks in a pass, as in a long file
    there = set(np.asarray(open_table(table).read()["z"].cast(pl.Float64)))
    with pytest.raises(
        TableError, match=r"changed while it was being read: .* Start again"
    ) as caught:
        go(table, progress=at_call(2, f"{stage} pass", lambda: change(table)))
    assert "\n" not in str(caught.value)
    assert {z for part in learned for z in part} <= there


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("change", [cut, replace_it, remove])
@pytest.mark.parametrize("stage", ["first", "second", "third"])
def test_a_parquet_file_that_changes_during_the_run(tmp_path, change, stage, no_hang):
    table = write_table(tmp_path / "table.parquet")
    with pytest.raises(TableError, match="changed while it was being read"):
        go(table, progress=at_call(2, f"{stage} pass", lambda: change(table)))


@pytest.mark.slow
def test_rows_are_counted_even_if_the_file_status_does_not_change(table, monkeypatch, no_hang):
    """Some file systems report the same times and inode numbers for all files."""
    monkeypatch.setattr("quadric.apps.shell.tables._source.check_unchanged", lambda versions: None)
    for change, words in (
        (append, "it no longer has 2,400 rows"),
        (cut, "changed while it was being read: it no longer has 2,400 rows"),
        (cut_to_the_header, "it had 2,400 rows and now has 0"),
        (rewrite, "'label' has a new class"),
    ):
        write_table(table)
        end_of_epoch = at_call(8, "second pass", partial(change, table))
        with pytest.raises(TableError, match=words):
            go(table, progress=end_of_epoch)


@pytest.mark.slow
def test_the_command_prints_a_one_line_error_if_its_file_changes(table):
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
    assert err.startswith("error: table.csv changed while it was being read: ")
    assert err.count("\n") == 1
    assert not (table.parent / "a.quadric").exists()
