"""Sweeps on a Dask cluster give the same table, or an error, if workers or schedulers die."""

import itertools
import random
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from quadric import datasets
from quadric.apps.paper import EXPERIMENTS, Context, _mnist as mnist
from quadric.apps.paper.sweep import Recipe, Store, _runner as dask_module, run_sweep
from quadric.apps.shell import app
from quadric.cluster import _tasks, _workers
from tests.support import processes
from tests.support.clusters import Cluster, kill_behind_nanny
from tests.support.sweeps import RECIPE, TASKS, end_the_worker, images, table

pytestmark = pytest.mark.slow  # every test starts a cluster or a command

DATA = images()
FEW, HALF = TASKS[:6], TASKS[::2]


@pytest.fixture(scope="module", autouse=True)
def _distributed():
    """Import it late, because all tests here are slow and it takes half a second."""
    pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The table of TASKS, computed on this machine."""
    with Store(tmp_path_factory.mktemp("expected") / "runs.sqlite") as opened:
        return table(run_sweep(TASKS, RECIPE, DATA, opened))


@pytest.fixture
def new_cluster(tmp_path):
    """Start clusters, and stop their remaining processes."""
    made = []

    def make(**environment):
        made.append(Cluster(tmp_path, **environment))
        return made[-1]

    yield make
    for one in made:
        one.close()


# ---- workers that are killed ---------------------------------------------------------------


def test_a_killed_dask_worker_changes_nothing(new_cluster, store, expected, monkeypatch):
    workers = new_cluster().add_worker().add_worker().wait(2)
    address = workers.address

    data = images()
    data.largest = "none"  # a run fails on the worker
    data.checksum = "broken"
    with pytest.raises(TypeError, match="largest must be a finite number above 0") as caught:
        run_sweep(FEW, RECIPE, data, store, dask=address)
    assert caught.value.__notes__[-1].startswith("The error occurred in the run with 900 images")

    with monkeypatch.context() as other:
        other.setattr(dask_module, "ENGINE", "another")
        with pytest.raises(
            RuntimeError, match=r"engine another, like this process. Got .*, engine 2 on tcp"
        ):
            run_sweep(TASKS, RECIPE, DATA, store, dask=address)
    assert store.runs(RECIPE, DATA.checksum) == []

    left = []

    def kill_one(row, done, total):
        if done == 3:
            workers.workers[0].kill()
            workers.workers[0].wait()
        left.append(total - done)

    with pytest.raises(ZeroDivisionError) as caught:
        run_sweep(FEW, RECIPE, DATA, store, dask=address, on_result=lambda *told: 1 / 0)
    assert caught.value.args
    assert len(store.runs(RECIPE, DATA.checksum)) == 1

    rows = run_sweep(TASKS, RECIPE, DATA, store, dask=address, on_result=kill_one)
    assert workers.workers[0].returncode == -signal.SIGKILL
    assert left == list(range(len(TASKS) - 2, -1, -1))
    assert table(rows) == expected
    assert table(store.runs(RECIPE, DATA.checksum)) == expected


def test_a_lost_worker_gets_the_data_again_from_its_nanny(new_cluster, store, expected):
    """The data are lost with the worker, and all waiting runs are canceled."""
    workers = new_cluster().add_worker("--nanny").wait()

    def kill(row, done, total):
        if done == 2:
            assert kill_behind_nanny(workers.workers[0])

    rows = run_sweep(HALF, RECIPE, DATA, store, dask=workers.address, on_result=kill)
    assert table(rows) == {task: expected[task] for task in HALF}


def test_a_new_worker_takes_over_lost_runs(new_cluster, store, expected):
    workers = new_cluster().add_worker().wait()

    def replace_worker(row, done, total):
        if done == 2:
            workers.workers[0].kill()
            workers.add_worker()

    rows = run_sweep(HALF, RECIPE, DATA, store, dask=workers.address, on_result=replace_worker)
    assert table(rows) == {task: expected[task] for task in HALF}


class Killer(threading.Thread):
    """Kills workers at random moments until it is stopped, and restarts them."""

    def __init__(self, workers, nanny, seed):
        super().__init__(daemon=True)
        self.workers, self.nanny, self.rng = workers, nanny, random.Random(seed)
        self.killed, self.limit, self.results = 0, 0, 0
        self.over = threading.Event()

    def run(self):
        waited = True
        while not self.over.is_set():
            # often after a result, while runs are active; sometimes during the setup
            waited = not waited or self.rng.random() < 0.6
            before = self.results
            while waited and self.results == before and not self.over.is_set():
                time.sleep(0.01)
            self.over.wait(self.rng.uniform(0, 1 if waited else 4))
            if self.killed < self.limit and not self.over.is_set():
                self.killed += self.kill()

    def kill(self):
        if self.nanny:
            return kill_behind_nanny(self.workers.workers[0])
        worker = self.workers.workers.pop(self.rng.randrange(2))
        worker.kill()
        worker.wait()
        self.workers.add_worker()
        return True


@pytest.mark.parametrize("nanny", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("kills", [1, pytest.param(15, marks=pytest.mark.full)])
def test_workers_killed_at_random_moments_change_nothing(
    kills, nanny, new_cluster, expected, tmp_path
):
    workers = new_cluster().add_worker("--nanny" if nanny else "--no-nanny")
    if not nanny:
        workers.add_worker()
    workers.wait(len(workers.workers))
    killer = Killer(workers, nanny, seed=kills)
    killer.limit = kills
    killer.start()

    def count(row, done, total):
        killer.results += 1

    try:
        for number in itertools.count():
            with Store(tmp_path / f"{number}.sqlite") as opened:
                rows = run_sweep(TASKS, RECIPE, DATA, opened, dask=workers.address, on_result=count)
                assert table(rows) == table(opened.runs(RECIPE, DATA.checksum)) == expected
            if killer.killed >= kills:
                break
    finally:
        killer.over.set()
        killer.join()
    print(f"{killer.killed} workers killed, {number + 1} tables, {killer.results} results")


def test_a_cluster_that_loses_all_workers_is_reported(new_cluster, store, monkeypatch):
    monkeypatch.setattr(_workers, "SECONDS_WITHOUT_WORKERS", 2)
    workers = new_cluster().add_worker().wait()

    def kill(row, done, total):
        workers.workers[0].kill()

    with pytest.raises(RuntimeError) as caught:
        run_sweep(TASKS, RECIPE, DATA, store, dask=workers.address, on_result=kill)
    assert str(caught.value) == (
        f"the Dask cluster at {workers.address} has had no workers for 2 seconds. Finished runs "
        "are stored; start workers with `dask worker ADDRESS`, then run the same command again."
    )
    assert store.runs(RECIPE, DATA.checksum)


def test_runs_that_kill_their_workers_are_abandoned(new_cluster, store, monkeypatch):
    monkeypatch.setattr(dask_module, "run_remotely", end_the_worker)
    monkeypatch.setattr(_tasks, "ROUNDS_WITHOUT_RESULT", 2)
    workers = new_cluster(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    workers.add_worker().add_worker().add_worker().wait(3)
    with pytest.raises(RuntimeError) as caught:
        run_sweep(FEW[:1], RECIPE, DATA, store, dask=workers.address)
    assert str(caught.value).startswith(
        f"the Dask cluster at {workers.address} finished none of 1 tasks in 2 attempts "
        "(KilledWorker"
    )
    assert str(caught.value).endswith("check its workers, then run the same command again.")
    assert "\n" not in str(caught.value)


# ---- schedulers that are killed ------------------------------------------------------------


COMMAND = (
    "import quadric.datasets as d; d.mnist = lambda data_dir: d.digits();"
    "import quadric.cluster._workers as m; m.SECONDS_TO_CONNECT = 3;"
    "from quadric.apps.shell import main; main()"
)


@contextmanager
def reproduce(out, address, seeds):
    options = ["--seeds", seeds, "--out", out, "--dask", address]
    process = processes.Started(["-c", COMMAND, "reproduce", "mnist", *options])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def stored(out):
    path = out / "runs.sqlite"
    if not path.exists():
        return {}
    with Store(path, read_only=True) as opened:
        return table(opened.runs(Recipe(), datasets.digits().checksum))


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.full)])
def test_a_killed_scheduler_is_reported_and_the_sweep_resumes(kills, new_cluster, tmp_path):
    data, rng, seeds = datasets.digits(), random.Random(kills), kills
    tasks = mnist.tasks_for(Context(seeds=seeds, images=data))
    with Store(tmp_path / "expected.sqlite") as opened:
        wanted = table(run_sweep(tasks, Recipe(), data, opened))
    out, killed = tmp_path / "report", 0
    while True:
        workers = new_cluster().add_worker().wait()
        with reproduce(out, workers.address, seeds) as process:
            before = len(stored(out))
            if killed < kills:
                aim = before + rng.randint(1, max(1, (len(tasks) - before) // (kills + 1)))
                while len(stored(out)) < aim and process.poll() is None:
                    time.sleep(0.05)
                time.sleep(rng.uniform(0, 0.2))
                workers.scheduler.kill()
            output, errors = process.communicate(timeout=120)
        told = [line for line in errors.splitlines() if not line.startswith(("mnist ...", "About"))]
        if process.returncode == 0:
            break
        killed += 1
        assert process.returncode == 1, errors
        assert output == ""
        assert told == [
            f"error: the connection to the Dask scheduler at {workers.address} was lost. Finished "
            "runs are stored; start a scheduler and workers, then run the same "
            "command again with the address that the scheduler prints."
        ]
        assert wanted.items() >= stored(out).items()
        workers.close()
    assert killed >= kills
    assert told == []
    assert stored(out) == wanted


def test_a_missing_scheduler_or_worker_is_reported(store, monkeypatch):
    import distributed

    monkeypatch.setattr(_workers, "SECONDS_TO_CONNECT", 0.5)
    monkeypatch.setattr(_workers, "SECONDS_TO_FIRST_WORKER", 0.5)
    with pytest.raises(ConnectionError, match=r"answered at 'tcp://127.0.0.1:1'"):
        run_sweep(FEW, RECIPE, DATA, store, dask="tcp://127.0.0.1:1")
    with pytest.raises(
        ConnectionError, match="'nonsense://x' is not the address of a Dask scheduler"
    ):
        run_sweep(FEW, RECIPE, DATA, store, dask="nonsense://x")
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", scheduler_port=0, dashboard_address=":0"
        ) as empty,
        pytest.raises(
            RuntimeError,
            match=r"has had no workers for 0.5 seconds.*start workers with `dask worker",
        ),
    ):
        run_sweep(FEW, RECIPE, DATA, store, dask=empty.scheduler_address)


@pytest.mark.parametrize("error", [OSError("Stream is closed"), MemoryError("a\nb")])
def test_an_error_in_a_run_is_reported_in_one_line(error, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise error

    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    monkeypatch.setitem(EXPERIMENTS, "mnist", replace(EXPERIMENTS["mnist"], run=broken))
    arguments = ["reproduce", "mnist", "--seeds", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"error: {' '.join(str(error).split())}"


def test_a_missing_dask_extra_is_reported(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "quadric\[dask\]"'):
        run_sweep(FEW, RECIPE, DATA, store, dask="tcp://127.0.0.1:1")


def test_a_worker_that_joins_late_with_another_engine_is_refused():
    with pytest.raises(RuntimeError, match="a worker that joined later"):
        _tasks.run_checked(None, FEW[0], DATA, dask_module.versions, {"quadric": "0.0.1"})
    message = _workers.mismatch({"quadric": "1"}, "w", ModuleNotFoundError("quadric"))
    assert "no usable quadric (ModuleNotFoundError" in message
