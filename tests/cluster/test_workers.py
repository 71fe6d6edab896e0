"""Fits on real schedulers and workers, which are killed: the bits are always the same."""

import faulthandler
import functools
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

import quadric
from quadric import QuadraticClassifier, QuadraticLogisticRegression, cluster
from quadric.cluster import _tasks, _workers
from tests.support import processes

pytestmark = pytest.mark.slow  # every test starts a cluster

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20_000, 4))
Y = (X[:, 0] * X[:, 1] + X[:, 2] > RNG.normal(size=len(X))).astype(int)


def model(tol=1e-6):
    return QuadraticLogisticRegression(tol=tol)


def collections(parts):
    chunks = -(-len(X) // parts)
    return da.from_array(X, chunks=(chunks, 4)), da.from_array(Y, chunks=-(-len(X) // (parts + 1)))


def bits(fitted, path):
    quadric.save(fitted, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The file of the model that is fitted in this process."""
    return bits(model().fit(*collections(3)), tmp_path_factory.mktemp("expected") / "m.quadric")


def test_the_model_file_does_not_depend_on_workers_threads_and_partitions(
    new_cluster, expected, tmp_path
):
    one = new_cluster(1)
    for parts, grown in ((1, False), (7, True), (1, True)):
        if grown:
            one.add_worker(threads=2).wait(len(one.workers))
        with cluster.connected(one.address, default=True):
            X_parts, y_parts = collections(parts)
            fitted = model().fit(X_parts, y_parts)
            assert bits(fitted, tmp_path / "m.quadric") == expected
            predicted = fitted.predict(X_parts)
            assert isinstance(predicted, da.Array)
            assert np.array_equal(predicted.compute(), fitted.predict(X))
            assert fitted.score(X_parts, y_parts) == fitted.score(X, Y)
    assert len(one.workers) == 3


def within(seconds, function):
    """Return what the function returns; fail with the stacks of all threads if it takes longer."""
    answers = []

    def run():
        try:
            answers.append((function(), None))
        except BaseException as error:
            answers.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        with tempfile.TemporaryFile("w+") as stacks:
            faulthandler.dump_traceback(stacks)
            stacks.seek(0)
            pytest.fail(f"not finished after {seconds:g} seconds\n{stacks.read()}", pytrace=False)
    value, error = answers[0]
    if error is not None:
        raise error
    return value


class Killer(threading.Thread):
    """Kills workers at random moments, in turn, and starts others; stops after some kills."""

    def __init__(self, of, most):
        super().__init__(daemon=True)
        self.of, self.most, self.rng = of, most, random.Random(most)
        self.killed, self.over = 0, threading.Event()

    def run(self):
        # on a busy computer, a worker starts more slowly than these would kill it
        while self.killed < self.most and not self.over.wait(self.rng.uniform(0.2, 1.2)):
            worker = self.of.workers.pop(0)
            worker.kill()
            worker.wait()
            self.killed += 1
            self.of.add_worker(threads=1)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.full)])
def test_workers_killed_at_random_moments_change_nothing(kills, new_cluster, expected, tmp_path):
    one = new_cluster(1, 1)
    killer, start = Killer(one, kills), time.monotonic()
    killer.start()
    limit, fits = 240 + 20 * kills, 0  # for slow computers; it ends much earlier on others
    try:
        with cluster.connected(one.address, default=True):
            while fits == 0 or killer.killed < kills:
                left = start + limit - time.monotonic()
                fitted = within(left, lambda: model().fit(*collections(7)))
                fits += 1
                assert bits(fitted, tmp_path / "m.quadric") == expected
    finally:
        killer.over.set()
        killer.join()
    seconds = time.monotonic() - start
    print(f"{killer.killed} workers killed during {fits} fits in {seconds:.0f} s")


def test_a_fit_goes_on_if_all_workers_are_replaced_at_once(
    new_cluster, expected, tmp_path, monkeypatch
):
    one, replaced = new_cluster(1, 1), []
    submit = cluster._rows._Cluster.submit

    def kill_all(self, function, *arguments, **options):
        if function.__name__ == moments[0]:  # the first time that this task is submitted
            moments.pop(0)
            for worker in one.workers:
                worker.kill()
                worker.wait()
            while _workers.threads_of_workers(self.client):
                time.sleep(0.05)
            answer = submit(self, function, *arguments, **options)  # when there is no worker
            one.workers = []
            one.add_worker(threads=1)
            replaced.append(function.__name__)
            return answer
        return submit(self, function, *arguments, **options)

    monkeypatch.setattr(cluster._rows._Cluster, "submit", kill_all)
    moments = ["facts_of", "range_of", "nodes_in", "never"]
    with cluster.connected(one.address, default=True):
        fitted = within(240, lambda: model().fit(*collections(7)))
    assert bits(fitted, tmp_path / "m.quadric") == expected
    assert replaced == ["facts_of", "range_of", "nodes_in"]


def test_a_task_that_the_scheduler_keeps_is_lost(new_cluster, monkeypatch):
    monkeypatch.setattr(_workers, "SECONDS_TO_MOVE", 1)
    one = new_cluster()
    with cluster.connected(one.address, default=True) as client:
        task = client.submit(abs, -1, workers=["tcp://127.0.0.1:9"], allow_other_workers=True)
        one.add_worker().wait()
        present = list(_workers.threads_of_workers(client))
        prefers = [*present, "tcp://127.0.0.1:9"]  # one of them is left
        for wait in (_workers.wait_for, _workers._fetched):
            with pytest.raises(_workers.LostError, match="no task was run for 1 seconds"):
                within(120, lambda wait=wait: wait(client, [task], prefers))
        slow = client.submit(time.sleep, 4)  # a task that is run is waited for
        assert within(120, lambda: _workers.gathered(client, [slow], prefers)) == [None]


def slow_fit(address, path, resume, seconds=0.0):
    """A script that fits on a cluster and stores every iteration."""
    return f"""
import time, warnings
import numpy as np
from quadric import cluster, save
from tests.cluster import test_workers as t
if {seconds}:
    write = cluster._progress.write_whole
    def slowly(*given):
        write(*given); print("stored", flush=True); time.sleep({seconds})
    cluster._progress.write_whole = slowly
cluster._workers.SECONDS_TO_CONNECT = 3
try:
    with cluster.connected({address!r}, default=True):
        with cluster.checkpoint({str(path)!r}, resume={resume}):
            save(t.model().fit(*t.collections(7)), {str(path)!r} + ".quadric")
except ConnectionError as error:
    print(error)
"""


def test_a_killed_scheduler_is_reported_and_the_fit_resumes_with_the_same_bits(
    new_cluster, expected, tmp_path
):
    first, state = new_cluster(1), tmp_path / "state"
    fit = processes.Started(["-c", slow_fit(first.address, state, False, 0.2)])
    deadline = time.monotonic() + 60
    while fit.output().count("stored") < 4:
        assert time.monotonic() < deadline, fit.output(2)
        assert fit.poll() is None, fit.output(2)
        time.sleep(0.05)
    first.scheduler.kill()
    output, errors = fit.communicate(timeout=60)
    assert (fit.returncode, errors) == (0, "")
    lines = [line for line in output.splitlines() if line != "stored"]
    assert lines == [
        f"the connection to the Dask scheduler at {first.address} was lost. Start a scheduler and "
        "workers, then run the same command again with the address that the scheduler prints."
    ]
    assert state.exists()
    second = new_cluster(2)
    resumed = processes.Started(["-c", slow_fit(second.address, state, True, 0.01)])
    output, errors = resumed.communicate(timeout=60)
    assert (resumed.returncode, errors) == (0, "")
    file = tmp_path / "state.quadric"
    assert file.read_bytes() == expected
    iterations = int(quadric.load(file).n_iter_[0])
    assert 1 <= output.count("stored") < iterations - 2
    assert not state.exists()


def test_a_fit_without_workers_ends_with_one_line(new_cluster, monkeypatch):
    monkeypatch.setattr(_workers, "SECONDS_TO_FIRST_WORKER", 1)
    one = new_cluster()
    with (
        cluster.connected(one.address, default=True),
        pytest.raises(RuntimeError, match=r"has had no workers for 1 seconds\. Start workers with"),
    ):
        model().fit(*collections(2))


def test_workers_that_die_for_good_end_the_fit(new_cluster, monkeypatch):
    monkeypatch.setattr(_workers, "SECONDS_WITHOUT_WORKERS", 2)
    one = new_cluster(1)
    timer = threading.Timer(1.0, one.workers[0].kill)
    start = time.monotonic()

    def fit_for_ever():
        for _ in itertools.count():
            model().fit(*collections(2))

    with cluster.connected(one.address, default=True):
        timer.start()
        with pytest.raises(RuntimeError, match="has had no workers for 2 seconds"):
            fit_for_ever()
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("what", ["worker", "scheduler"])
def test_tasks_end_if_nothing_answers_any_more(what, new_cluster, monkeypatch):
    """The last worker is killed, or the scheduler freezes."""
    monkeypatch.setattr(_workers, "SECONDS_WITHOUT_WORKERS", 2)
    monkeypatch.setattr(_workers, "SECONDS_TO_ANSWER", 1)
    monkeypatch.setattr(_tasks, "SECONDS_TO_LOOK", 0.5)
    one = new_cluster(1)
    sleep = eval("lambda seconds, shared: __import__('time').sleep(seconds)")
    stop = one.workers[0].kill
    if what == "scheduler":
        stop = functools.partial(one.scheduler.send_signal, signal.SIGSTOP)
    with cluster.connected(one.address) as client:
        threading.Timer(2.0, stop).start()
        with pytest.raises(RuntimeError, match="has had no workers for 2 seconds"):
            list(cluster.run_tasks(client, sleep, [600, 601]))
        one.scheduler.kill()  # so that closing the client does not wait for it


def test_a_worker_with_another_version_is_refused_by_name(new_cluster, tmp_path):
    stub = tmp_path / "stub" / "quadric"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text('raise ImportError("broken installation")\n')
    one = new_cluster()
    options = ["--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0"]
    worker = subprocess.Popen(  # in a new process, because quadric is already imported in others
        [sys.executable, "-m", "distributed.cli.dask_worker", one.address, *options],
        env=os.environ | {"PYTHONPATH": str(stub.parent)},
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    message = rf"Got no usable quadric .* on tcp.*\(pip install quadric=={quadric.__version__}"
    try:
        one.wait()
        with (
            cluster.connected(one.address, default=True),
            pytest.raises(RuntimeError, match=message),
        ):
            model().fit(*collections(2))
    finally:
        worker.kill()
        worker.wait()


def test_parts_that_cannot_be_read_or_differ_are_refused_by_name(new_cluster):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frames = [pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, k], "y": [0, 1]}) for k in range(4)]
    frames[2] = frames[2].rename(columns={"b": "c"})
    meta = frames[0]

    def read(k):
        if k == 3:
            raise OSError("part-3.parquet is damaged")
        return frames[k]

    one = new_cluster(1)
    with cluster.connected(one.address, default=True):
        for parts, message in (
            ([0, 1, 2], r"part 2 of X cannot be used: .*column 'b' is missing"),
            ([0, 3], r"part 1 of X cannot be used: part-3.parquet is damaged"),
        ):
            frame = dd.from_map(read, parts, meta=meta)
            with pytest.raises((ValueError, OSError, RuntimeError), match=message):
                model().fit(da.from_array(np.zeros((2, 1))) if not parts else frame, frame["y"])


def test_the_choice_of_auto_does_not_depend_on_the_cluster(new_cluster, tmp_path):
    given = collections(3)
    options = {"random_state": 0, "max_iter": 30, "hidden_layer_sizes": "single"}
    alone = bits(QuadraticClassifier(**options).fit(*given), tmp_path / "a.quadric")
    one = new_cluster(1, 1)
    with cluster.connected(one.address, default=True):
        found = bits(QuadraticClassifier(**options).fit(*collections(5)), tmp_path / "b.quadric")
    assert found == alone
