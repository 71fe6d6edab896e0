"""Sweeps give the same numbers on any number of threads; no run is lost or repeated."""

import json
import signal
import threading
import time
from dataclasses import asdict, replace

import numpy as np
import pytest

from quadric import Network
from quadric.apps.paper.sweep import (
    RECIPES,
    Recipe,
    Result,
    Store,
    Task,
    _runner as runner,
    _task as data_module,
    _task as task_module,
    run_sweep,
    run_task,
    table_tasks,
)
from quadric.apps.paper.sweep._task import prepare
from tests.support import processes
from tests.support.sweeps import RECIPE, TASKS, images, lines, table, wait_for_lines

DATA = images()
FEW = TASKS[:6]
QUICK = replace(RECIPE, epochs=(1, 2))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The table of TASKS, computed by one thread: {task: (accuracies, steps)}."""
    with Store(tmp_path_factory.mktemp("expected") / "runs.sqlite") as opened:
        return table(run_sweep(TASKS, RECIPE, DATA, opened, jobs=1))


def committed(path):
    with Store(path, read_only=True) as opened:
        return {row.task: row for row in opened.runs(RECIPE, DATA.checksum)}


# ---- recipes and tasks ---------------------------------------------------------------------


def test_the_default_recipe_has_the_documented_values():
    assert json.loads(Recipe().key()) == {
        "scaling": "centered",
        "init": "normal",
        "init_scale": 0.006,
        "learning_rate": 0.01,
        "batch_size": 1,
        "epochs": [5, 10, 20],
        "hidden_activation": "logistic",
        "output_activation": "logistic",
        "loss": "binary_cross_entropy",
        "order": "given",
        "images": "random",
        "dtype": "float32",
    }
    assert set(asdict(Recipe())) - set(json.loads(Recipe().key())) == {"init_factors"}


def test_runs_of_the_former_default_recipe_are_found_under_their_key():
    """Stores written when 'first-images' was the default have exactly this key."""
    assert RECIPES["first-images"].key() == (
        '{"batch_size":1,"dtype":"float32","epochs":[5,10,20],"hidden_activation":"logistic",'
        '"images":"first","init":"normal","init_scale":0.005,"learning_rate":0.01,'
        '"loss":"binary_cross_entropy","order":"new","output_activation":"logistic",'
        '"scaling":"centered"}'
    )
    assert len({recipe.key() for recipe in RECIPES.values()}) == len(RECIPES)
    assert RECIPES["one-shuffle"] == Recipe()


def test_runs_of_two_recipes_share_a_store_and_are_not_mixed(store):
    former = replace(QUICK, order="new", images="first")
    runs = run_sweep(FEW, former, DATA, store)
    assert store.runs(QUICK, DATA.checksum) == []
    run_sweep(FEW, QUICK, DATA, store)
    assert store.runs(former, DATA.checksum) == sorted(runs, key=lambda run: run.task)


def test_equal_recipes_have_equal_keys():
    same = Recipe(epochs=[5, 10, 20], learning_rate=np.float64(0.01), dtype=np.float32)
    assert same.key() == Recipe().key()
    assert Recipe(init_scale=1).key() == Recipe(init_scale=1.0).key()
    assert Recipe(learning_rate=0.02).key() != Recipe().key()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scaling": "none"}, "scaling must be one of 'centered', 'unit'. Got 'none'"),
        ({"epochs": (10, 5)}, "epochs must be one or more whole numbers in increasing order"),
        ({"epochs": ()}, "epochs must be one or more"),
        ({"epochs": (0, 5)}, "epochs must be a whole number of at least 1"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"order": "old"}, "order must be one of 'new', 'given'"),
        ({"images": "last"}, "images must be one of 'first', 'random', 'independent'"),
        ({"scaling": np.inf}, "scaling must be a finite number"),
        ({"init_factors": (("W", 2.0),)}, "init_factors must be one of 'hidden.W', 'hidden.b'"),
        ({"dtype": "int8"}, "dtype must be 'float32' or 'float64'"),
    ],
)
def test_invalid_recipes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**options)


def test_the_table_has_1500_tasks_and_invalid_ones_are_refused():
    tasks = table_tasks(range(25))
    assert len(set(tasks)) == len(tasks) == 4 * 5 * 3 * 25
    with pytest.raises(ValueError, match="kind must be one of"):
        Task(600, 10, "cubic", 0)
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        Task(0, 10, "linear", 0)


# ---- one run -------------------------------------------------------------------------------


def by_hand(task, recipe, epochs):
    """Return the accuracy after this many epochs of a separate run on dense data."""
    start, order, choice = np.random.default_rng(task.seed).spawn(3)
    X = DATA.X_train / 255 + (recipe.offset or 0)
    Y = np.eye(5)[DATA.y_train]
    rows = np.arange(task.size)
    if recipe.images == "independent":
        choice = np.random.default_rng([task.seed, task.size])
    if recipe.images != "first":
        rows = choice.permutation(len(X))[: task.size]
    net = Network.create(
        100,
        [("linear", task.hidden, "logistic"), (task.kind, 5, "logistic")],
        init=recipe.init,
        scale=recipe.init_scale,
        rng=start,
        dtype=recipe.dtype,
    )
    net.fit(
        X[rows],
        Y[rows],
        "binary_cross_entropy",
        learning_rate=recipe.learning_rate,
        epochs=epochs,
        rng=order,
        shuffle=recipe.order == "new",
    )
    T = DATA.X_test / 255 + (recipe.offset or 0)
    return float((net.logits(T).argmax(axis=1) == DATA.y_test).mean())


@pytest.mark.parametrize("kind", ["linear", "quadratic", "reduced"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "unit"},
        {"scaling": -0.4, "images": "independent"},
        {"order": "new"},
        {"images": "first"},
        {"dtype": "float64"},
    ],
)
def test_accuracies_match_separate_dense_runs(kind, options):
    recipe = replace(RECIPE, **options)
    task = Task(700, 8, kind, 4)
    result = run_task(task, recipe, DATA)
    wanted = [by_hand(task, recipe, epochs) for epochs in recipe.epochs]
    assert len(set(wanted)) > 1
    assert 0.3 < wanted[-1] < 1
    # The sparse path sums in a different order. In float32, this can change the class of an image
    # near the boundary; in float64, the differences are too small.
    allowed = 2 if recipe.dtype == "float32" else 0
    np.testing.assert_allclose(result.accuracies, wanted, rtol=0, atol=(allowed + 0.1) / 300)
    assert result.visited == 700 * 40
    assert result.seconds > 0


def trained_on(monkeypatch, recipe, tasks):
    """Return the images and the initial network of each task, and whether they are reshuffled."""
    seen = []

    def fit(net, X, Y, *args, shuffle, **kwargs):
        seen.append((X.toarray(), [layer.copy().arrays() for layer in net.layers], shuffle))
        raise RuntimeError("seen")

    prepare(DATA, recipe.dtype)  # which compiles the engine by a fit of its own
    monkeypatch.setattr(Network, "fit", fit)
    for task in tasks:
        with pytest.raises(RuntimeError, match="seen"):
            run_task(task, recipe, DATA)
    return seen


def test_by_default_a_run_keeps_one_random_order_and_small_sets_are_parts_of_large_ones(
    monkeypatch,
):
    tasks = [Task(size, 4, kind, 3) for size in (200, 500, 1500) for kind in ("linear", "reduced")]
    seen = trained_on(monkeypatch, Recipe(), tasks)
    assert not any(shuffle for _, _, shuffle in seen)
    small, _, medium, again, large, _ = (images for images, _, _ in seen)
    assert np.array_equal(small, large[:200])
    assert np.array_equal(medium, large[:500])
    assert np.array_equal(medium, again)  # the same for all kinds
    assert not np.array_equal(large, prepare(DATA, "float32").train.toarray())
    assert np.array_equal(  # all images, in another order
        np.sort(large, axis=0), np.sort(prepare(DATA, "float32").train.toarray(), axis=0)
    )
    ((other, *_),) = trained_on(monkeypatch, Recipe(), [Task(200, 4, "linear", 4)])
    assert not np.array_equal(other, small)
    parts = trained_on(monkeypatch, Recipe(images="independent"), tasks[::2])
    assert not np.array_equal(parts[0][0], parts[1][0][:200])


def test_factors_multiply_the_initial_values_of_the_parameters_they_name(monkeypatch):
    recipe = Recipe(init_factors=(("output.U", 2), ("hidden.b", 0), ("output.Q", 3)))
    assert recipe.key() != Recipe().key()
    for kind, name, factor in (("reduced", "U", 2), ("quadratic", "packed", 3), ("linear", "", 1)):
        ((_, plain, _),) = trained_on(monkeypatch, Recipe(), [Task(200, 4, kind, 3)])
        ((_, scaled, _),) = trained_on(monkeypatch, recipe, [Task(200, 4, kind, 3)])
        plain[0]["b"] *= 0
        if name:
            plain[1][name] *= factor
        for one, other in zip(plain, scaled, strict=True):
            for parameter in one:
                assert np.array_equal(one[parameter], other[parameter]), (kind, parameter)


def test_a_task_with_more_images_than_available_is_refused(store):
    with pytest.raises(ValueError, match="size must be at most 1500, the number of training"):
        run_task(Task(1501, 4, "linear", 0), QUICK, DATA)
    with pytest.raises(ValueError, match="tasks must use at most 1500 training images"):
        run_sweep([Task(1501, 4, "linear", 0)], QUICK, DATA, store)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X_train", np.zeros((4, 3)), "X_train must be a uint8 array of shape"),
        ("y_train", np.zeros(4, int), "y_train must hold 1500 non-negative whole numbers"),
        ("y_test", -np.ones(300, int), "y_test must hold 300 non-negative whole numbers"),
        ("X_test", np.zeros((300, 99), np.uint8), "must have the same number of pixels"),
    ],
)
def test_data_of_the_wrong_shape_or_type_are_refused(name, value, message):
    data = images()
    data.checksum = "wrong"
    setattr(data, name, value)
    with pytest.raises(ValueError, match=message):
        prepare(data, "float32")


def test_prepared_images_equal_the_pixels():
    ready = prepare(DATA, "float64")
    assert np.array_equal(ready.train.toarray(), DATA.X_train / 255)
    assert np.array_equal(ready.test, DATA.X_test / 255)
    assert ready.train.indices.dtype == ready.train.indptr.dtype == np.int32
    assert np.array_equal(ready.targets.argmax(axis=1), DATA.y_train)


def test_the_first_images_are_those_of_the_data_set_in_its_order(monkeypatch):
    ((X, *_),) = trained_on(monkeypatch, Recipe(images="first"), [Task(100, 4, "linear", 3)])
    np.testing.assert_allclose(X, DATA.X_train[:100] / 255, rtol=1e-7)


def test_data_are_prepared_once_for_all_threads(store, monkeypatch):
    built = []
    build = data_module._build
    monkeypatch.setattr(data_module, "_build", lambda *args: built.append(args) or build(*args))
    data = images(seed=7)
    run_sweep(table_tasks([0], sizes=[100, 200], widths=[4]), QUICK, data, store, jobs=3)
    assert len(built) == 1
    assert prepare(images(seed=7), "float32") is prepare(data, "float32")


# ---- sweeps on one machine -----------------------------------------------------------------


@pytest.mark.slow
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


def test_the_longest_run_starts_first_and_progress_is_reported(store):
    told = []
    tasks = [*TASKS, *TASKS[:3]]  # some are duplicates
    rows = run_sweep(tasks, QUICK, DATA, store, jobs=1, on_result=lambda *args: told.append(args))
    costs = [row.task.cost for row, _, _ in told]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]
    assert [done for _, done, _ in told] == list(range(1, len(TASKS) + 1))
    assert {total for _, _, total in told} == {len(TASKS)}
    assert [row.task for row in rows] == TASKS
    assert {row.task: row for row, _, _ in told} == {row.task: row for row in rows}


def test_stored_runs_are_not_run_again(store, monkeypatch):
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
    # runs with a different recipe, data set or engine are different runs
    run_sweep(FEW[:1], replace(QUICK, learning_rate=0.5), DATA, store)
    run_sweep(FEW[:1], QUICK, images(seed=1), store)
    assert len(ran) == 4
    assert store.runs(QUICK, DATA.checksum, engine="0") == []


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
        f"The error occurred in the run with {order[-1]}. Finished runs are stored."
    ]
    kept = {row.task for row in store.runs(QUICK, DATA.checksum)}
    # of two that run concurrently, the other one is stopped
    assert len(kept) >= len(FEW) - jobs
    assert order[-1] not in kept


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_sweep_stops_its_threads_and_resumes(store, expected, jobs):
    def interrupt(row, done, total):
        if done == 2:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(TASKS, RECIPE, DATA, store, jobs=jobs, on_result=interrupt)
    kept = store.runs(RECIPE, DATA.checksum)
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
        while not begun:  # wait until the other thread is busy
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
    assert len(store.runs(endless, DATA.checksum)) == (end == "interrupt")


def test_a_canceled_run_ends_with_its_epoch():
    asked = []
    with pytest.raises(task_module.CancelledError):
        run_task(FEW[0], RECIPE, DATA, cancelled=lambda: asked.append(1) or len(asked) > 3)
    assert len(asked) == 4


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_invalid_numbers_of_jobs_are_refused(store, jobs):
    with pytest.raises((TypeError, ValueError), match="jobs must be a whole number of at least 1"):
        run_sweep(FEW, QUICK, DATA, store, jobs=jobs)


# ---- processes that are killed -------------------------------------------------------------


def start_sweep(path, log):
    return processes.Started(["-m", "tests.support.sweeps", "sweep", path, log, 2])


def finish(process, timeout=120):
    try:
        return "".join(process.communicate(timeout=timeout))
    finally:
        process.kill()
        process.wait()


def check_resumed(path, log, before):
    """Check that no stored run was started again or changed."""
    begun = lines(log)
    assert not set(begun) & {str(task) for task in before}
    after = committed(path) if path.exists() else {}
    assert {task: after.get(task) for task in before} == before
    return after


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.full)])
def test_a_sweep_killed_at_any_moment_gives_the_same_table(kills, expected, tmp_path):
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
                    if attempts % 5 == 0:  # while it starts and creates the file
                        time.sleep(rng.uniform(0, 2))
                    else:  # after some runs have started, during a run or while it is stored
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
    left = {file.suffix for file in tmp_path.iterdir()}
    assert left <= {".sqlite", ".log", ".part"}  # .part, if killed while it created a store


@pytest.mark.slow
def test_ctrl_c_ends_the_process_and_keeps_finished_runs(expected, tmp_path):
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
