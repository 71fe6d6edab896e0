"""Stores: runs are read back unchanged, one process writes at a time, other files are untouched."""

import math
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quadric import datasets
from quadric.apps.paper.sweep import Result, Store, StoreError, Task, _store as store_module
from quadric.apps.shell import app
from quadric.utils import temporary_name
from tests.support.processes import answer_of, without_rights
from tests.support.sweeps import HERE, RECIPE

ROOT = Path(__file__).parents[2]
QUICK = replace(RECIPE, epochs=(1, 2))
RESULT = Result((1 / 3, 0.9876), 1.25, 14000)


def add(store, seed=0):
    return store.add(QUICK, "data", Task(5, 4, "linear", seed), RESULT, HERE)


def content_or_status(path):
    """Return the bytes of a file, or what identifies a link, a pipe or a directory."""
    if path.is_file():
        return path.read_bytes()
    status = os.lstat(path)  # without the access time, which inspecting a link may change
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def names(directory):
    return sorted(file.name for file in directory.iterdir())


def in_process(script, *arguments, **options):
    """Start another process with `Store`, `add` and `QUICK` defined."""
    script = f"import os, sys; from tests.paper.test_store import *\n{script}"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **options,
    )


OPEN = """
try:
    store = Store(sys.argv[1])
except StoreError as error:
    print(error)
else:
    print("open", flush=True)
    input()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


# ---- rows ----------------------------------------------------------------------------------


def test_a_stored_run_is_read_back_unchanged(path):
    with Store(path) as opened:
        row = add(opened)
        again = add(opened)
        assert again.finished_at > row.finished_at
        assert opened.runs(QUICK, "data") == [row]  # the first run is kept
    with Store(path) as opened:
        assert opened.runs(QUICK, "data") == [row]
    assert names(path.parent) == ["runs.sqlite"]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_report_is_read_while_a_sweep_writes(path):
    with Store(path) as writer:
        add(writer, 0)
        with Store(path, read_only=True) as reader:
            assert len(reader.runs(QUICK, "data")) == 1
            add(writer, 1)
            assert len(reader.runs(QUICK, "data")) == 2
            with pytest.raises(StoreError, match="opened for reading only"):
                add(reader, 2)
    with Store(path, read_only=True) as reader:
        assert len(reader.runs(QUICK, "data")) == 2
    assert names(path.parent) == ["runs.sqlite"]


def test_stored_rows_are_flushed_to_the_disk(path):
    with Store(path) as opened:
        assert opened._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.parametrize(
    "result",
    [
        replace(RESULT, accuracies=(0.5,)),
        replace(RESULT, accuracies=(0.5, math.nan)),
        replace(RESULT, accuracies=(0.5, 1.5)),
        replace(RESULT, seconds=-1.0),
        replace(RESULT, seconds=math.inf),
        replace(RESULT, visited=-1),
    ],
)
def test_invalid_results_are_not_written(result, path):
    with Store(path) as opened:
        with pytest.raises(ValueError, match=r"accuracies|seconds|steps"):
            opened.add(QUICK, "data", Task(5, 4, "linear", 0), result, HERE)
        assert opened.runs(QUICK, "data") == []


def test_a_full_disk_is_reported_and_loses_nothing(path):
    stored = []

    def fill(opened):
        for seed in range(1000):
            stored.append(add(opened, seed))

    with Store(path) as opened:
        pages = opened._connection.execute("PRAGMA page_count").fetchone()[0]
        opened._connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreError, match=r"full. Stored runs are kept; free some space"):
            fill(opened)
    assert stored
    with Store(path) as opened:
        assert opened.runs(QUICK, "data") == stored


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_store_moved_during_a_sweep_is_detected(change, path, tmp_path):
    with Store(path) as opened:
        add(opened)
        path.rename(tmp_path / "kept")
        if change == "replaced":
            path.write_text("mine")
        with pytest.raises(StoreError, match="was moved, removed or replaced while it was in use"):
            add(opened, 1)
    assert not path.exists() or path.read_text() == "mine"


# ---- one process at a time -----------------------------------------------------------------


def the_same(path, tmp_path):
    return path


def relative(path, tmp_path):
    return os.path.relpath(path, ROOT)


def link(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    return tmp_path / "link"


def link_to_a_link(path, tmp_path):
    (tmp_path / "second").symlink_to(link(path, tmp_path).name)
    return tmp_path / "second"


def linked_directory(path, tmp_path):
    (tmp_path / "directory").symlink_to(tmp_path)
    return tmp_path / "directory" / path.name


def hard_link(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    os.link(path, tmp_path / "elsewhere" / "other")
    return tmp_path / "elsewhere" / "other"


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [the_same, relative, link, link_to_a_link, linked_directory, hard_link]
)
def test_a_second_process_is_refused_by_any_name(way, path, tmp_path):
    holder = in_process(OPEN, path)
    try:
        assert holder.stdout.readline() == "open\n"
        name = way(path, tmp_path)
        second = in_process(OPEN, name)
        output, errors = second.communicate("\n", timeout=60)
        assert errors == ""
        if way is hard_link:
            assert output == (
                f"the store {name} has 2 names (hard links), but SQLite finds its log only "
                "under one of them. Remove the other names, or use a copy of the file.\n"
            )
            name.unlink()
        else:
            assert output == (
                f"the store {name} is in use by another process. Wait until it has finished "
                "or stop it, then run the same command again: finished runs are kept.\n"
            )
        with Store(path, read_only=True) as reader:
            assert reader.runs(QUICK, "data") == []
    finally:
        holder.kill()
        holder.communicate()
    with Store(path) as opened:  # the lock was released when its holder was killed
        assert opened.runs(QUICK, "data") == []


@pytest.mark.slow
def test_a_second_store_in_the_same_process_is_refused(path, tmp_path):
    with Store(path):
        for name in (path, link(path, tmp_path)):
            with pytest.raises(StoreError, match="is in use by this process"):
                Store(name)
        second = in_process(OPEN, path)
        assert "in use by another process" in second.communicate("\n", timeout=60)[0]
    Store(path).close()


@pytest.mark.slow
def test_the_record_lock_of_other_systems_does_not_disturb_sqlite(path):
    """The locked byte is not one that SQLite locks."""
    elsewhere = (
        "from types import SimpleNamespace\n"
        "from quadric.utils import _files as portable_files\n"
        "portable_files.sys = SimpleNamespace(platform='darwin')\n"
    )
    script = OPEN.replace("input()", "input(); add(store); print('added')")
    holder = in_process(elsewhere + script, path)
    try:
        assert holder.stdout.readline() == "open\n"
        output, _ = in_process(elsewhere + OPEN, path).communicate("\n", timeout=60)
        assert "is in use by another process" in output
    finally:
        output, errors = holder.communicate("\n", timeout=60)
    assert (output, errors) == ("added\n", "")
    with Store(path) as opened:
        assert len(opened.runs(QUICK, "data")) == 1


@pytest.mark.slow
def test_processes_that_create_a_store_at_once_share_one_file(path):
    script = "sys.stdin.readline()\n" + OPEN
    processes = [in_process(script, path) for _ in range(4)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    try:
        told = [process.stdout.readline() for process in processes]
    finally:
        outputs = [process.communicate("\n", timeout=60) for process in processes]
    assert {errors for _, errors in outputs} == {""}
    # a process that has just created the file may not have locked it yet
    assert told.count("open\n") == 1
    assert sum("is in use by" in line for line in told) == 3
    assert names(path.parent) == ["runs.sqlite"]


@pytest.mark.slow
def test_readers_do_not_break_the_locks_of_a_writer(path):
    """A reader in the writer's process does not release its locks; others do not remove its log."""
    script = """
with Store(sys.argv[1]) as store:
    add(store, 0)
    with Store(sys.argv[1], read_only=True) as reader:
        assert len(reader.runs(QUICK, "data")) == 1
    print("read", flush=True)
    input()
    add(store, 1)
    print("stored", flush=True)
    input()
"""
    writer = in_process(script, path)
    try:
        assert writer.stdout.readline() == "read\n"
        with Store(path, read_only=True) as reader:
            assert len(reader.runs(QUICK, "data")) == 1
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "stored\n"
    finally:
        writer.kill()
        writer.communicate()
    with Store(path, read_only=True) as reader:
        assert len(reader.runs(QUICK, "data")) == 2


def killed_while_open(path):
    """Return a store whose writing process was killed, so that its log still exists."""
    script = "s = Store(sys.argv[1]); add(s, 0); add(s, 1); os.kill(os.getpid(), 9)"
    process = in_process(script, path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert Path(f"{path}-wal").stat().st_size > 0


@pytest.mark.slow
def test_a_reader_changes_no_file_of_a_killed_process(path):
    killed_while_open(path)
    before = {name: (path.parent / name).read_bytes() for name in names(path.parent)}
    with Store(path, read_only=True) as reader:
        assert len(reader.runs(QUICK, "data")) == 2
    after = {name: (path.parent / name).read_bytes() for name in names(path.parent)}
    scratch = "runs.sqlite-shm"  # SQLite's index of the log, which is created again if needed
    assert before.pop(scratch)
    assert after.pop(scratch)
    assert before == after


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.full)])
def test_a_process_killed_while_storing_loses_no_stored_run(count):
    found = answer_of("killing.stores", count, count)
    assert found["before"] + found["after"] == count
    if count == 2000:  # otherwise the test proves little; 40 kills may miss either
        assert min(found["before"], found["after"]) > count / 10
    print(found)


# ---- other files in the directory of a store -----------------------------------------------


@pytest.mark.parametrize("name", [".new", ".lock", ".part", "-new", "-lock", ".tmp", ".bak"])
@pytest.mark.parametrize("kind", ["text", "empty", "link", "directory"])
def test_other_files_in_the_directory_are_not_changed(name, kind, path, tmp_path):
    (tmp_path / "precious").write_text("mine")
    beside = [Path(f"{path}{name}"), path.with_name(f".{path.name}{name}")]
    for file in beside:
        if kind == "link":
            file.symlink_to(tmp_path / "precious")
        elif kind == "directory":
            file.mkdir()
        else:
            file.write_text("mine" if kind == "text" else "")
    before = names(tmp_path)
    numbers = [os.lstat(file).st_ino for file in beside]
    for _ in range(2):
        with Store(path) as opened:
            add(opened)
    assert names(tmp_path) == sorted([*before, "runs.sqlite"])
    assert [os.lstat(file).st_ino for file in beside] == numbers
    assert (tmp_path / "precious").read_text() == "mine"
    if kind == "text":
        assert [file.read_text() for file in beside] == ["mine", "mine"]


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["text", "link", "dangling", "directory"])
@pytest.mark.parametrize(("exists", "read_only"), [(False, False), (True, False), (True, True)])
def test_foreign_files_with_sqlites_names_are_refused(
    suffix, kind, exists, read_only, path, tmp_path
):
    (tmp_path / "precious").write_text("mine")
    if exists:
        with Store(path) as opened:
            add(opened)
    beside = Path(f"{path}{suffix}")
    if kind == "text":
        beside.write_text("these are notes of mine\n" * 10)
    elif kind == "directory":
        beside.mkdir()
    else:
        beside.symlink_to(tmp_path / ("precious" if kind == "link" else "nothing"))
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    with pytest.raises(StoreError) as caught:
        Store(path, read_only=read_only)
    assert str(caught.value) == (
        f"{beside} is in the way: it does not belong to the store, but SQLite would use and remove "
        "it. It was not changed; move it, or choose another store."
    )
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before
    assert path.exists() == exists


@pytest.mark.parametrize("name", ["a?mode=ro&b#c", "100%41", "a b", "file:c", "\udcff", "ä"])
def test_file_names_with_uri_characters_work(name, tmp_path):
    with Store(tmp_path / name) as opened:
        row = add(opened)
        with Store(tmp_path / name, read_only=True) as reader:
            assert reader.runs(QUICK, "data") == [row]
    assert names(tmp_path) == [name]


def test_a_dangling_link_creates_the_store_at_its_target(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with Store(tmp_path / "link") as opened:
        add(opened)
    assert (tmp_path / "link").is_symlink()
    assert path.is_file()


@pytest.mark.parametrize("left", ["before", "after"])
def test_leftovers_of_a_killed_creation_are_removed(left, path, tmp_path):
    """The process is killed just before or after the rename of the new file."""
    new = temporary_name(path)
    Store(path).close()
    if left == "after":
        os.link(path, new)
    else:
        new.write_bytes(path.read_bytes()[:5000])
        os.utime(new, (0, 0))
    Store(path, read_only=True).close()
    with Store(path) as opened:
        add(opened)
    assert names(tmp_path) == ["runs.sqlite"]


# ---- files that are not stores -------------------------------------------------------------


def filled(path):
    with Store(path) as opened:
        for seed in range(100):
            add(opened, seed)
    return bytearray(path.read_bytes())


def truncated(path):
    path.write_bytes(filled(path)[:-6000])


def overwritten(path):
    contents = filled(path)
    page = len(contents) // 8192 * 4096  # a page in the middle
    contents[page : page + 4096] = bytes(4096)
    path.write_bytes(contents)


def other_database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (x)")
    connection.commit()
    connection.close()


def unix_socket(path):
    server = socket.socket(socket.AF_UNIX)
    os.chdir(path.parent)
    server.bind(path.name)
    server.close()


def statements(*lines):
    """Create a store with three runs and execute these statements."""

    def make(path):
        with Store(path) as opened:
            for seed in range(3):
                add(opened, seed)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = DELETE")
        for line in lines:
            connection.execute(line)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()

    make.__name__ = lines[-1]
    return make


DAMAGED = r"the store \S+ is damaged \(.+\)\. It was not changed; restore a copy, or start again"
NO_STORE = "is not a store of finished runs. It was not changed"
OTHER_KIND = r"cannot be used: it is a device, a pipe or a socket, not a file"
SETTINGS = "PRAGMA writable_schema = ON"


@pytest.mark.unix
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (truncated, DAMAGED),
        (overwritten, DAMAGED),
        (other_database, NO_STORE),
        (lambda path: path.write_bytes(os.urandom(5000)), NO_STORE),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(5000)), NO_STORE),
        (lambda path: path.write_bytes(b""), NO_STORE),
        (lambda path: path.write_text("notes"), NO_STORE),
        (lambda path: path.mkdir(), "cannot be used: Is a directory"),
        (os.mkfifo, OTHER_KIND),
        (unix_socket, OTHER_KIND),
        (lambda path: path.symlink_to("/dev/zero"), OTHER_KIND),
        (lambda path: path.symlink_to("/dev/null"), OTHER_KIND),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (statements("PRAGMA application_id = 1"), NO_STORE),
        (
            statements("UPDATE meta SET value = '99' WHERE name = 'format'"),
            r"has format 99, and quadric \S+ reads format \d. It was not changed",
        ),
        (statements("DELETE FROM meta"), DAMAGED),
        (statements("UPDATE meta SET value = x'ff'"), DAMAGED),
        (statements("UPDATE meta SET value = 'one' || char(10) || 'two'"), DAMAGED),
        (statements("DROP TABLE meta"), DAMAGED),
        (statements("DROP TABLE runs"), DAMAGED),
        (statements("ALTER TABLE runs DROP COLUMN cpu"), DAMAGED),
        (statements("ALTER TABLE runs RENAME COLUMN steps TO stairs"), DAMAGED),
        (statements("ALTER TABLE runs ADD COLUMN more TEXT"), DAMAGED),
        (statements("CREATE TABLE more (x)"), DAMAGED),
        (statements("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"), DAMAGED),
        (
            statements(
                "DROP TABLE runs",
                "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                "FROM n) SELECT i FROM n",
            ),
            DAMAGED,
        ),
        (
            statements(
                "CREATE TABLE loose AS SELECT * FROM runs",
                "DROP TABLE runs",
                "ALTER TABLE loose RENAME TO runs",
            ),
            DAMAGED,
        ),
        (statements(SETTINGS, "UPDATE sqlite_master SET sql = 'CREATE TABLE meta (x'"), DAMAGED),
        (statements(SETTINGS, "UPDATE sqlite_master SET rootpage = 99"), DAMAGED),
        (statements(SETTINGS, "DELETE FROM sqlite_master WHERE type = 'index'"), DAMAGED),
        (statements(SETTINGS, "UPDATE sqlite_master SET name = NULL"), DAMAGED),
        (
            statements(
                SETTINGS,
                "UPDATE sqlite_master SET name = CAST(x'c328' AS TEXT), sql = 'CREATE TABLE x'",
            ),
            DAMAGED,
        ),
        (statements("UPDATE runs SET accuracies = '[NaN, 0.5]' WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET accuracies = '[0.5, 1.5]' WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET accuracies = '[0.25, 0.5]' WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET seed = 7 WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET recipe = 'other' WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET cpu = x'c328' WHERE seed = 1"), DAMAGED),
        (statements("UPDATE runs SET cpu = CAST(x'c328' AS TEXT) WHERE seed = 1"), DAMAGED),
    ],
)
def test_other_files_are_refused_and_not_changed(make, message, read_only, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    make(path)
    before = content_or_status(path)
    with pytest.raises(StoreError, match=message) as caught:
        Store(path, read_only=read_only)
    assert "\n" not in str(caught.value)
    assert content_or_status(path) == before
    assert names(path.parent) == ["runs.sqlite"]


def forged(column, value):
    """Create a store with a run that has this value and a matching digest."""

    def make(path):
        with Store(path) as opened:
            add(opened)
            add(opened, 1)
        connection = sqlite3.connect(path, isolation_level=None)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
        connection.create_function("digest", -1, lambda *values: store_module.digest(values))
        connection.execute(f"UPDATE runs SET {column} = ? WHERE seed = 1", [value])
        connection.execute(f"UPDATE runs SET digest = digest({', '.join(columns[:-1])})")
        connection.close()

    return make


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("accuracies", "[NaN, 0.5]"),
        ("accuracies", "[Infinity, 0.5]"),
        ("accuracies", "[]"),
        ("accuracies", "[0.5]"),
        ("accuracies", "[0.5, 0.5, 0.5]"),
        ("accuracies", "[-0.1, 0.5]"),
        ("accuracies", "[0.5, 1.0000001]"),
        ("accuracies", '["0.5", 0.5]'),
        ("accuracies", "{}"),
        ("accuracies", "[true, false]"),
        ("accuracies", "[1, 0]"),
        ("accuracies", "0.5"),
        ("accuracies", "null"),
        ("accuracies", ""),
        ("accuracies", "[" * 100_000),
        ("accuracies", "[" + "9" * 5000 + "]"),
        ("accuracies", "[1e999, 0.5]"),
        ("seconds", math.inf),
        ("seconds", -1.0),
        ("seconds", "soon"),
        ("steps", -1),
        ("steps", "many"),
        ("steps", 1.5),
        ("size", 0),
        ("size", "five"),
        ("hidden", -4),
        ("kind", "cubic"),
        ("kind", 1.5),
        ("seed", -1),
        ("seed", 0.5),
        ("finished_at", "yesterday"),
    ],
)
def test_invalid_values_with_a_matching_digest_are_refused(column, value, path):
    forged(column, value)(path)
    before = path.read_bytes()
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match=DAMAGED) as caught, Store(path, **options) as opened:
            opened.runs(QUICK, "data")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["overwritten", "emptied"])
def test_damage_is_refused_before_the_log_is_used(damage, path):
    """SQLite would copy the log into the file, or remove it if the file is empty."""
    killed_while_open(path)
    if damage == "overwritten":
        contents = bytearray(path.read_bytes())
        contents[100:200] = bytes(100)
        path.write_bytes(contents)
        log = Path(f"{path}-wal").read_bytes()
        Path(f"{path}-wal").write_bytes(log[: len(log) // 2])
    else:
        path.write_bytes(b"")
    files = [path, Path(f"{path}-wal")]
    before = [file.read_bytes() for file in files]
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match=f"{DAMAGED}|{NO_STORE}"):
            Store(path, **options)
        assert [file.read_bytes() for file in files] == before


@pytest.fixture
def open_directory():
    """A directory that other users can enter, unlike pytest's own directories."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        yield Path(directory)


@pytest.mark.unix
def test_files_without_permission_are_refused(open_directory):
    path = open_directory / "runs.sqlite"
    with Store(path) as opened:
        row = add(opened)
    before = path.read_bytes()
    path.chmod(0o000)
    with without_rights():
        for options in ({}, {"read_only": True}):
            with pytest.raises(StoreError, match="cannot be used: Permission denied"):
                Store(path, **options)
    path.chmod(0o444)
    with without_rights():
        with pytest.raises(StoreError, match="cannot be used: Permission denied"):
            Store(path)
        with Store(path, read_only=True) as reader:
            assert reader.runs(QUICK, "data") == [row]
    path.chmod(0o666)
    open_directory.chmod(0o555)
    with without_rights():
        with pytest.raises(StoreError, match="cannot be used"):  # a log cannot be created
            Store(path)
        with pytest.raises(StoreError, match="cannot be used: Permission denied"):
            Store(path.with_name("new"))
        with Store(path, read_only=True) as reader:
            assert reader.runs(QUICK, "data") == [row]
    open_directory.chmod(0o777)
    assert path.read_bytes() == before
    assert names(open_directory) == ["runs.sqlite"]


def test_unwritable_places_are_refused(tmp_path):
    (tmp_path / "file").touch()
    long = tmp_path / ("a" * 250)
    for path in (tmp_path / "missing" / "runs.sqlite", tmp_path / "file" / "runs.sqlite", long):
        with pytest.raises(StoreError, match="in an existing, writable directory"):
            Store(path)
    with pytest.raises(StoreError, match="No such file"):
        Store(tmp_path / "missing.sqlite", read_only=True)
    assert names(tmp_path) == ["file"]


@pytest.mark.unix
@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        truncated,
        forged("accuracies", "[NaN, 0.5]"),
        forged("steps", "many"),
        statements("DROP TABLE runs"),
    ],
)
def test_the_command_prints_a_one_line_error(make, path, monkeypatch):
    make(path)
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    arguments = ["reproduce", "mnist", "--seeds", "1", "--out", str(path.parent)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    told = result.stderr.splitlines()
    assert told[-1].startswith(f"error: the store {path} ")
    assert len(told) == 1
    assert names(path.parent) == ["runs.sqlite"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.full)])
def test_damaged_stores_are_refused_or_read_correctly(count):
    found = answer_of("damaged_files.stores", count, count)
    refused, read = (sum(found[told].values()) for told in ("refused", "read"))
    assert refused + read == count
    assert min(refused, read) > count / 10
    print(f"{refused} refused, {read} read")
