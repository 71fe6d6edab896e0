"""Sweeps: the same numbers by any road, and nothing lost or done twice whatever happens."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from quadric import Network
from quadric.sweep import (
    Environment,
    Recipe,
    Result,
    Store,
    StoreError,
    Task,
    cluster,
    prepared,
    run_sweep,
    run_task,
    runner,
    table_tasks,
)
from quadric.sweep import task as task_module
from quadric.sweep.prepared import prepare
from tests.sweep_process import RECIPE, TASKS, images

ROOT = Path(__file__).parent.parent
DATA = images()
FEW = TASKS[:6]
QUICK = replace(RECIPE, epochs=(1, 2))
HERE = Environment("a processor", "0", "0", "0", "0")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The table of TASKS, made in one go by one thread: {task: (accuracies, steps)}."""
    with Store(tmp_path_factory.mktemp("expected") / "runs.sqlite") as opened:
        return table(run_sweep(TASKS, RECIPE, DATA, opened, jobs=1))


def table(rows):
    return {row.task: (row.result.accuracies, row.result.steps) for row in rows}


def committed(path):
    with Store(path, read_only=True) as opened:
        return {row.task: row for row in opened.rows(RECIPE, DATA.checksum)}


# ---- recipes and tasks ---------------------------------------------------------------------


def test_the_recipe_is_that_of_the_notes():
    assert json.loads(Recipe().key()) == {
        "scaling": "centered", "init": "normal", "init_scale": 0.005, "learning_rate": 0.01,
        "batch_size": 1, "epochs": [5, 10, 20], "hidden_activation": "logistic",
        "output_activation": "logistic", "loss": "binary_cross_entropy", "order": "new",
        "images": "first", "dtype": "float32",
    }  # fmt: skip
    assert set(asdict(Recipe())) == set(json.loads(Recipe().key()))


def test_the_key_is_the_same_for_the_same_recipe_only():
    same = Recipe(epochs=[5, 10, 20], learning_rate=np.float64(0.01), dtype=np.float32)
    assert same.key() == Recipe().key()
    assert Recipe(init_scale=1).key() == Recipe(init_scale=1.0).key()
    assert Recipe(learning_rate=0.02).key() != Recipe().key()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scaling": "none"}, "scaling must be one of 'centered', 'unit'. Got 'none'"),
        ({"epochs": (10, 5)}, "epochs must be one or more whole numbers, each larger"),
        ({"epochs": ()}, "epochs must be one or more"),
        ({"epochs": (0, 5)}, "epochs must be a whole number of at least 1"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"order": "old"}, "order must be one of 'new', 'given'"),
        ({"images": "last"}, "images must be one of 'first', 'random'"),
        ({"dtype": "int8"}, "dtype must be 'float32' or 'float64'"),
    ],
)
def test_recipes_that_mean_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**options)


def test_tasks_of_the_table():
    tasks = table_tasks(range(25))
    assert len(set(tasks)) == len(tasks) == 4 * 5 * 3 * 25
    with pytest.raises(ValueError, match="kind must be one of"):
        Task(600, 10, "cubic", 0)
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        Task(0, 10, "linear", 0)


# ---- one run -------------------------------------------------------------------------------


def by_hand(task, recipe, epochs):
    """The accuracy after so many epochs, of a run of its own on dense data."""
    start, order, choice = np.random.default_rng(task.seed).spawn(3)
    X = DATA.X_train / 255 - (0.5 if recipe.scaling == "centered" else 0)
    Y = np.eye(5)[DATA.y_train]
    rows = np.arange(task.size)
    if recipe.images == "random":
        rows = choice.permutation(len(X))[: task.size]
    net = Network.create(
        100,
        [("linear", task.hidden, "logistic"), (task.kind, 5, "logistic")],
        init=recipe.init, scale=recipe.init_scale, rng=start, dtype=recipe.dtype,
    )  # fmt: skip
    net.fit(
        X[rows], Y[rows], "binary_cross_entropy", learning_rate=recipe.learning_rate,
        epochs=epochs, rng=order, shuffle=recipe.order == "new",
    )  # fmt: skip
    T = DATA.X_test / 255 - (0.5 if recipe.scaling == "centered" else 0)
    return float((net.logits(T).argmax(axis=1) == DATA.y_test).mean())


@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
@pytest.mark.parametrize(
    "options",
    [{}, {"scaling": "unit"}, {"order": "given"}, {"images": "random"}, {"dtype": "float64"}],
)
def test_accuracies_are_those_of_runs_by_hand(kind, options):
    recipe = replace(RECIPE, **options)
    task = Task(700, 8, kind, 3)
    result = run_task(task, recipe, DATA)
    wanted = [by_hand(task, recipe, epochs) for epochs in recipe.epochs]
    assert len(set(wanted)) > 1
    assert 0.3 < wanted[-1] < 1
    # The sparse path sums in another order: in float32 an image on the edge may fall either way,
    # in float64 the differences are far too small for that.
    allowed = 2 if recipe.dtype == "float32" else 0
    np.testing.assert_allclose(result.accuracies, wanted, rtol=0, atol=(allowed + 0.1) / 300)
    assert result.steps == 700 * 40
    assert result.seconds > 0


def test_a_run_that_asks_for_too_many_images(store):
    with pytest.raises(ValueError, match="size must be at most 1500, the number of training"):
        run_task(Task(1501, 4, "linear", 0), QUICK, DATA)
    with pytest.raises(ValueError, match="tasks must ask for at most 1500 training images"):
        run_sweep([Task(1501, 4, "linear", 0)], QUICK, DATA, store)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X_train", np.zeros((4, 3)), "X_train must be bytes of shape"),
        ("y_train", np.zeros(4, int), "y_train must be 1500 whole numbers"),
        ("y_test", -np.ones(300, int), "y_test must be 300 whole numbers, none negative"),
        ("X_test", np.zeros((300, 99), np.uint8), "must have the same number of pixels"),
    ],
)
def test_data_of_the_wrong_form(name, value, message):
    data = images()
    data.checksum = "wrong"
    setattr(data, name, value)
    with pytest.raises(ValueError, match=message):
        prepare(data, "float32")


def test_the_matrix_is_the_images_and_a_part_is_made_once():
    ready = prepare(DATA, "float64")
    assert np.array_equal(ready.train.toarray(), DATA.X_train / 255)
    assert np.array_equal(ready.test, DATA.X_test / 255)
    assert ready.train.indices.dtype == ready.train.indptr.dtype == np.int32
    X, Y = ready.first(100)
    assert np.array_equal(X.toarray(), DATA.X_train[:100] / 255)
    assert np.array_equal(Y.argmax(axis=1), DATA.y_train[:100])
    assert ready.first(100)[0] is X
    assert np.shares_memory(Y, ready.targets)
    assert np.shares_memory(ready.first(1500)[0].data, ready.train.data)


def test_data_are_prepared_once_for_all_threads(store, monkeypatch):
    built = []
    build = prepared._build
    monkeypatch.setattr(prepared, "_build", lambda *args: built.append(args) or build(*args))
    data = images(seed=7)
    run_sweep(table_tasks([0], sizes=[100, 200], widths=[4]), QUICK, data, store, jobs=3)
    assert len(built) == 1
    assert prepare(images(seed=7), "float32") is prepare(data, "float32")


def test_blas_has_one_thread_until_the_last_run_has_left():
    from threadpoolctl import threadpool_info, threadpool_limits

    from quadric.blas_threads import one_blas_thread

    def numbers():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        before = numbers()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert numbers() == {1}
        second.__exit__(None, None, None)
        assert numbers() == before


# ---- sweeps on one machine -----------------------------------------------------------------


@pytest.mark.parametrize("jobs", [2, 3])
def test_same_bits_for_any_number_of_jobs(jobs, expected, tmp_path, monkeypatch):
    weights = []
    accuracy = task_module._accuracy

    def recorded(net, *arguments):
        weights.append(b"".join(a.tobytes() for l in net.layers for a in l.arrays().values()))
        return accuracy(net, *arguments)

    monkeypatch.setattr(task_module, "_accuracy", recorded)
    seen = []
    for count in (1, jobs):
        with Store(tmp_path / f"{count}.sqlite") as opened:
            rows = run_sweep(TASKS, RECIPE, DATA, opened, jobs=count)
        assert table(rows) == expected
        seen.append(sorted(weights))
        weights.clear()
    assert len(set(seen[0])) == len(TASKS) * 3
    assert seen[0] == seen[1]


def test_the_longest_run_is_begun_first_and_progress_is_told(store):
    told = []
    tasks = [*TASKS, *TASKS[:3]]  # some twice
    rows = run_sweep(tasks, QUICK, DATA, store, jobs=1, on_result=lambda *args: told.append(args))
    costs = [row.task.cost for row, _, _ in told]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]
    assert [done for _, done, _ in told] == list(range(1, len(TASKS) + 1))
    assert {total for _, _, total in told} == {len(TASKS)}
    assert [row.task for row in rows] == TASKS
    assert {row.task: row for row, _, _ in told} == {row.task: row for row in rows}


def test_what_is_stored_is_not_run_again(store, monkeypatch):
    first = run_sweep(FEW[:4], QUICK, DATA, store)
    ran = []

    def recorded(task, *arguments, **options):
        ran.append(task)
        return run_task(task, *arguments, **options)

    monkeypatch.setattr(runner, "run_task", recorded)
    told = []
    again = run_sweep(FEW, QUICK, DATA, store, on_result=lambda *args: told.append(args[1:]))
    assert again[:4] == first
    assert sorted(ran) == sorted(FEW[4:])
    assert told == [(5, 6), (6, 6)]
    # another recipe, other data, another engine: other runs
    run_sweep(FEW[:1], replace(QUICK, learning_rate=0.5), DATA, store)
    run_sweep(FEW[:1], QUICK, images(seed=1), store)
    assert len(ran) == 4
    assert store.rows(QUICK, DATA.checksum, engine="0") == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_run_names_it_and_keeps_the_others(store, monkeypatch, jobs):
    order = sorted(FEW, key=lambda task: (-task.cost, task))

    def failing(task, *arguments, **options):
        if task == order[-1]:
            raise ArithmeticError("diverged")
        return run_task(task, *arguments, **options)

    monkeypatch.setattr(runner, "run_task", failing)
    with pytest.raises(ArithmeticError, match="diverged") as caught:
        run_sweep(FEW, QUICK, DATA, store, jobs=jobs)
    assert caught.value.__notes__ == [
        f"In the run with {order[-1]}. The runs that had finished are stored."
    ]
    kept = {row.task for row in store.rows(QUICK, DATA.checksum)}
    # of the last two, which run together, the other may be stopped
    assert kept >= set(order[:-jobs])
    assert order[-1] not in kept


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_sweep_stops_soon_and_goes_on_later(store, expected, jobs):
    def interrupt(row, done, total):
        if done == 2:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(TASKS, RECIPE, DATA, store, jobs=jobs, on_result=interrupt)
    kept = store.rows(RECIPE, DATA.checksum)
    assert len(kept) == 2
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
    rows = run_sweep(TASKS, RECIPE, DATA, store, jobs=jobs)
    assert table(rows) == expected
    assert {row.task: row for row in rows}.items() >= {row.task: row for row in kept}.items()


@pytest.mark.parametrize("end", ["error", "interrupt"])
def test_long_runs_are_stopped_when_the_sweep_ends(store, monkeypatch, end):
    endless = replace(RECIPE, epochs=(1, 10**7))
    order = sorted(TASKS, key=lambda task: (-task.cost, task))
    begun = []

    def fake(task, recipe, data, *, cancelled):
        if task != order[1]:
            begun.append(task)
            return run_task(task, recipe, data, cancelled=cancelled)
        while not begun:  # until the other thread is busy
            time.sleep(0.001)
        if end == "error":
            raise ArithmeticError
        return Result((0.5, 0.5), 1.0, 1)

    def interrupt(*told):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_task", fake)
    before, start = threading.active_count(), time.monotonic()
    with pytest.raises(ArithmeticError if end == "error" else KeyboardInterrupt):
        run_sweep(TASKS, endless, DATA, store, jobs=2, on_result=interrupt)
    while threading.active_count() > before and time.monotonic() < start + 10:
        time.sleep(0.01)
    assert time.monotonic() < start + 10
    assert begun[0] == order[0]
    assert len(store.rows(endless, DATA.checksum)) == (end == "interrupt")


def test_a_cancelled_run_ends_with_its_epoch():
    asked = []
    with pytest.raises(task_module.CancelledError):
        run_task(FEW[0], RECIPE, DATA, cancelled=lambda: asked.append(1) or len(asked) > 3)
    assert len(asked) == 4


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_jobs_that_mean_nothing(store, jobs):
    with pytest.raises((TypeError, ValueError), match="jobs must be a whole number of at least 1"):
        run_sweep(FEW, QUICK, DATA, store, jobs=jobs)


# ---- processes that are killed -------------------------------------------------------------


def start_sweep(path, log):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.sweep_process", str(path), str(log)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finish(process, timeout=120):
    try:
        return process.communicate(timeout=timeout)[0]
    finally:
        process.kill()
        process.wait()


def lines(log):
    return log.read_text().splitlines() if log.exists() else []


def wait_for_lines(process, log, count, timeout=60):
    deadline = time.monotonic() + timeout
    while len(lines(log)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def check_resumed(path, log, before):
    """Nothing that had been stored was begun again, or changed."""
    begun = lines(log)
    assert not set(begun) & {str(task) for task in before}
    after = committed(path) if path.exists() else {}
    assert {task: after.get(task) for task in before} == before
    return after


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.full)])
def test_killed_at_any_moment_the_table_is_the_same(kills, expected, tmp_path):
    rng = np.random.default_rng(kills)
    killed, tables, attempts = 0, 0, 0
    while tables == 0 or killed < kills:
        path, before = tmp_path / f"{tables}.sqlite", {}
        while True:
            attempts += 1
            log = tmp_path / f"{attempts}.log"
            process = start_sweep(path, log)
            try:
                if killed < kills:
                    if attempts % 5 == 0:  # while it starts, and makes the file
                        time.sleep(rng.uniform(0, 2))
                    else:  # after some runs have begun, anywhere within one or in its storing
                        wait_for_lines(process, log, int(rng.integers(1, 8)))
                        time.sleep(rng.uniform(0, 0.1))
                    process.send_signal(signal.SIGKILL)
                output = finish(process)
            finally:
                process.kill()
            before = check_resumed(path, log, before)
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, output
            killed += 1
        tables += 1
        assert table(before.values()) == expected
    assert killed >= kills
    assert not [file.name for file in tmp_path.iterdir() if file.suffix in (".lock", ".new")]


def test_ctrl_c_ends_the_process_and_keeps_what_is_finished(expected, tmp_path):
    path, log = tmp_path / "runs.sqlite", tmp_path / "log"
    process = start_sweep(path, log)
    wait_for_lines(process, log, 6)
    process.send_signal(signal.SIGINT)
    output = finish(process, timeout=20)
    assert process.returncode == -signal.SIGINT, output
    assert output.splitlines()[-1] == "KeyboardInterrupt"
    kept = committed(path)
    assert 0 < len(kept) < len(TASKS)
    with Store(path) as opened:
        assert table(run_sweep(TASKS, RECIPE, DATA, opened)) == expected


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path):
    path = tmp_path / "runs.sqlite"
    script = f"from quadric.sweep import Store; s = Store({str(path)!r}); print('open'); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "open\n"
        second = start_sweep(path, tmp_path / "log")
        output = finish(second)
        assert second.returncode == 1
        assert output.splitlines()[-1] == (
            f"quadric.errors.StoreError: the store {path} is in use by process {holder.pid}. Wait "
            "until it has finished or stop it, then run the same command again: finished runs are "
            "kept."
        )
        with Store(path, read_only=True) as reader:
            assert reader.rows(RECIPE, DATA.checksum) == []
    finally:
        holder.kill()
        holder.communicate()
    with Store(path) as opened:  # the lock died with its holder
        assert opened.rows(RECIPE, DATA.checksum) == []


# ---- the file ------------------------------------------------------------------------------

RESULT = Result((0.1, 1 / 3, 0.9876), 1.25, 14000)


def add(store, seed=0):
    return store.add(QUICK, "data", Task(5, 4, "linear", seed), RESULT, HERE)


def test_a_row_comes_back_as_it_was(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path) as opened:
        row = add(opened)
        again = add(opened)
        assert again.finished_at > row.finished_at
        assert opened.rows(QUICK, "data") == [row]  # the first stays
    with Store(path) as opened:
        assert opened.rows(QUICK, "data") == [row]
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_report_is_read_while_a_sweep_writes(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path) as writer:
        add(writer, 0)
        with Store(path, read_only=True) as reader:
            assert len(reader.rows(QUICK, "data")) == 1
            add(writer, 1)
            assert len(reader.rows(QUICK, "data")) == 2
            with pytest.raises(StoreError, match="readonly database"):
                add(reader, 2)
    with Store(path, read_only=True) as reader:
        assert len(reader.rows(QUICK, "data")) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["runs.sqlite"]


def test_stored_rows_are_flushed_to_the_disk(store):
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def later_format(path):
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("UPDATE meta SET value = '2' WHERE name = 'format'")
    connection.commit()
    connection.close()


def filled(path):
    with Store(path) as opened:
        for seed in range(100):
            add(opened, seed)
    return bytearray(path.read_bytes())


def truncated(path):
    path.write_bytes(filled(path)[:-6000])


def overwritten(path):
    contents = filled(path)
    page = len(contents) // 8192 * 4096  # one in the middle
    contents[page : page + 4096] = bytes(4096)
    path.write_bytes(contents)


def other_database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (x)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (later_format, "has format 2, and quadric .* reads format 1. It was left as it is"),
        (truncated, "is damaged .*It was left as it is; restore a copy"),
        (overwritten, "is damaged .*It was left as it is; restore a copy"),
        (other_database, "is not a store of finished runs. It was left as it is"),
        (lambda path: path.write_bytes(os.urandom(5000)), "is not a store of finished runs"),
        (lambda path: path.write_bytes(b""), "is not a store of finished runs"),
        (lambda path: path.mkdir(), "cannot be used: Is a directory"),
    ],
)
def test_other_files_are_refused_and_left_alone(make, message, read_only, tmp_path):
    path = tmp_path / "file"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=message):
        Store(path, read_only=read_only)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_places_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "runs.sqlite", tmp_path / "file" / "runs.sqlite"):
        with pytest.raises(StoreError, match="in an existing directory that can be written"):
            Store(path)
    with pytest.raises(StoreError, match="No such file"):
        Store(tmp_path / "missing.sqlite", read_only=True)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_told_and_loses_nothing(tmp_path):
    path = tmp_path / "runs.sqlite"
    stored = []

    def fill(opened):
        for seed in range(1000):
            stored.append(add(opened, seed))

    with Store(path) as opened:
        pages = opened._connection.execute("PRAGMA page_count").fetchone()[0]
        opened._connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreError, match=r"full. Runs that were stored are kept; make room"):
            fill(opened)
    assert stored
    with Store(path) as opened:
        assert opened.rows(QUICK, "data") == stored


# ---- a Dask cluster ------------------------------------------------------------------------


def start_dask(part, *options, log):
    with open(log, "wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{part}", *options],
            cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip


@pytest.fixture
def dask_cluster(tmp_path):
    """The address of a scheduler, and two workers' processes."""
    pytest.importorskip("distributed")
    told = tmp_path / "scheduler.json"
    processes = []
    try:
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        options = (*options, "--scheduler-file", str(told))
        processes.append(start_dask("scheduler", *options, log=tmp_path / "scheduler.log"))
        deadline = time.monotonic() + 30
        while not told.exists() or not told.read_text().endswith("}"):
            assert time.monotonic() < deadline, (tmp_path / "scheduler.log").read_text()
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        for name in "ab":
            options = (address, "--name", name, "--nthreads", "2", "--no-nanny", "--no-dashboard")
            options = (*options, "--host", "127.0.0.1", "--memory-limit", "0")
            options = (*options, "--local-directory", str(tmp_path / name))
            processes.append(start_dask("worker", *options, log=tmp_path / f"{name}.log"))
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for_workers(address, count):
    from distributed import Client

    with Client(address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=30)


def test_a_killed_dask_worker_changes_nothing(dask_cluster, store, expected, monkeypatch):
    address, workers = dask_cluster
    wait_for_workers(address, 2)

    data = images()
    data.largest = "none"  # a run fails on the worker
    data.checksum = "broken"
    with pytest.raises(TypeError, match="largest must be a finite number above 0") as caught:
        run_sweep(FEW, RECIPE, data, store, dask=address)
    assert caught.value.__notes__[-1].startswith("In the run with 900 images, 4 hidden")

    with monkeypatch.context() as other:
        other.setattr(cluster, "ENGINE", "another")
        with pytest.raises(RuntimeError, match=r"engine another, as here. Got .*, engine 1 on tcp"):
            run_sweep(TASKS, RECIPE, DATA, store, dask=address)
    assert store.rows(RECIPE, DATA.checksum) == []

    left = []

    def kill_one(row, done, total):
        if done == 3:
            workers[0].send_signal(signal.SIGKILL)
            workers[0].wait()
        left.append(total - done)

    with pytest.raises(ZeroDivisionError) as caught:
        run_sweep(FEW, RECIPE, DATA, store, dask=address, on_result=lambda *told: 1 / 0)
    assert caught.value.args
    assert len(store.rows(RECIPE, DATA.checksum)) == 1

    rows = run_sweep(TASKS, RECIPE, DATA, store, dask=address, on_result=kill_one)
    assert workers[0].returncode == -signal.SIGKILL
    assert left == list(range(len(TASKS) - 2, -1, -1))
    assert table(rows) == expected
    assert table(store.rows(RECIPE, DATA.checksum)) == expected


def test_a_cluster_without_workers_or_scheduler(store, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(ConnectionError, match=r"answered at 'tcp://127.0.0.1:1'"):
        run_sweep(FEW, QUICK, DATA, store, dask="tcp://127.0.0.1:1")
    with pytest.raises(ConnectionError, match="'nonsense://x' is no address of a Dask scheduler"):
        run_sweep(FEW, QUICK, DATA, store, dask="nonsense://x")
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", scheduler_port=0, dashboard_address=None
        ) as empty,
        pytest.raises(RuntimeError, match=r"the Dask cluster has no workers. Start some with"),
    ):
        run_sweep(FEW, QUICK, DATA, store, dask=empty.scheduler_address)


def test_the_extra_that_is_missing_is_named(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "quadric\[dask\]"'):
        run_sweep(FEW, QUICK, DATA, store, dask="tcp://127.0.0.1:1")


def test_a_worker_that_joins_late_with_another_engine_is_refused():
    with pytest.raises(RuntimeError, match="a worker that joined later"):
        cluster.run_remotely(FEW[0], QUICK, DATA, ("0.0.1", "0"))
    with pytest.raises(RuntimeError, match=r"no usable quadric \(ModuleNotFoundError"):
        raise RuntimeError(cluster._mismatch(("1", "1"), {"w": ModuleNotFoundError("quadric")}))
