"""Studies: their runs are stored and resumed like those of a recipe, and verdicts follow rules."""

import csv
import json
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quadric import datasets
from quadric.apps.paper import (
    STUDIES,
    Context,
    _cnn_head as cnn_head,
    _fewer_layers as fewer_layers,
    _recurrent as recurrent,
    _wide_layers as wide_layers,
)
from quadric.apps.paper._claims import Verdict, statements
from quadric.apps.paper._fewer_layers import SPLITS, split
from quadric.apps.paper._statistics import Sample
from quadric.apps.paper.sweep import RECIPES, Store, StudyTask, run_sweep
from results.write import read_runs
from tests.support import processes
from tests.support.commands import command
from tests.support.sweeps import (
    STUDY_TASKS as TASKS,
    check_presentation,
    fails,
    lines,
    study,
    table,
    train,
    wait_for_lines,
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("expected") / "runs.sqlite") as opened:
        return table(run_sweep(TASKS, study(train), None, opened, jobs=1))


# ---- runs in the store -----------------------------------------------------------------------


def test_runs_of_a_study_are_read_back_and_not_mixed_with_others(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path) as opened:
        runs = run_sweep(TASKS[:4], study(train), None, opened, jobs=1)
        others = run_sweep(TASKS[:4], study(train, {"rate": 2}), None, opened, jobs=1)
    with Store(path) as opened:
        assert opened.runs(study(train), "none") == sorted(runs, key=lambda run: run.task)
        assert not {run.finished_at for run in runs} & {run.finished_at for run in others}
        assert opened.runs(RECIPES["one-shuffle"], "none") == []
        assert run_sweep(TASKS[:4], study(fails), None, opened) == runs  # none is run again


def test_a_run_with_another_number_of_measures_is_refused(store):
    wrong = replace(study(train), measures=("first",))
    with pytest.raises(ValueError, match="one for each of the recipe's epochs or the study's"):
        run_sweep(TASKS[:1], wrong, None, store, jobs=1)
    assert store.runs(wrong, "none") == []


@pytest.mark.parametrize(
    "values", [(0, 1, "a", 0), (1, 0, "a", 0), (1, 1, "", 0), (1, 1, "a", -1), (1, 1, None, 0)]
)
def test_invalid_tasks_are_refused(values):
    with pytest.raises((TypeError, ValueError), match="must be"):
        StudyTask(*values)


@pytest.mark.slow
def test_processes_give_the_same_numbers_and_errors_name_the_run(store, expected):
    assert table(run_sweep(TASKS, study(train), None, store, jobs=2)) == expected
    for jobs in (1, 2):
        with pytest.raises(ArithmeticError, match="no result") as caught:
            run_sweep(TASKS[:3], study(fails, {"jobs": jobs}), None, store, jobs=jobs)
        assert "The error occurred in the run with 5 samples, 1 hidden" in caught.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_study_resumes_without_repeating_a_run(tmp_path, expected, jobs):
    psutil = pytest.importorskip("psutil")
    path, kept = tmp_path / "runs.sqlite", {}
    for attempt in range(5):
        log = tmp_path / f"{attempt}.log"
        process = processes.Started(["-m", "tests.support.sweeps", "study", path, log, jobs])
        try:
            if attempt < 2:
                wait_for_lines(process, log, 6 + jobs)
                workers = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
            output = "".join(process.communicate(timeout=60))
        finally:
            process.kill()
        assert not set(lines(log)) & {str(task) for task in kept}  # none is started again
        with Store(path, read_only=True) as opened:
            found = {run.task: run for run in opened.runs(study(train), "none")}
        assert found.items() >= kept.items()
        kept = found
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, output
        assert 0 < len(kept) < len(TASKS)
        _, left = psutil.wait_procs(workers, timeout=30)
        assert not left  # no process stays behind
    assert attempt == 2
    assert table(kept.values()) == expected


@pytest.mark.slow
def test_a_dask_cluster_runs_a_study(store, expected):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(
        1, threads_per_worker=2, dashboard_address=":0", **options
    ) as cluster:
        runs = run_sweep(TASKS, study(train), None, store, dask=cluster.scheduler_address)
    assert table(runs) == expected


# ---- the studies -----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Make every study small enough to run in a few seconds."""
    monkeypatch.setattr(wide_layers, "SIZE", 200)
    monkeypatch.setattr(wide_layers, "WIDTHS", (4, 20))
    monkeypatch.setitem(wide_layers.SETTINGS, "max_iter", 60)
    few = {"two moons": (60, 2, 2, 3), "two circles": (60, 2, 2, 3)}
    monkeypatch.setattr(fewer_layers, "DATA", few)
    monkeypatch.setattr(cnn_head, "SIZES", {100: (1, 2)})
    monkeypatch.setattr(cnn_head, "FEATURES", 4)
    monkeypatch.setitem(recurrent.SETTINGS, "steps", 3)


def context(store, **options):
    return Context(seeds=2, jobs=1, images=datasets.digits(), store=store, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STUDIES))
def test_a_study_gives_tables_a_figure_and_a_claim_and_the_same_numbers_again(name, store, small):
    if name in ("cnn-head", "recurrent"):
        pytest.importorskip("torch")
    first = STUDIES[name].run(context(store))
    assert first.figures.keys() == first.captions.keys()
    check_presentation(first)
    assert all(caption.endswith(".") for caption in first.captions.values())
    assert all(len(row) == len(table.columns) for table in first.tables for row in table.rows)
    assert all(table.rows for table in first.tables)
    assert {claim.verdict for claim in first.claims} == {Verdict.UNKNOWN}  # two seeds
    mine = [one.id for one in statements().values() if one.study == name]
    assert [claim.id for claim in first.claims] == mine
    assert first.claims
    json.dumps([table.rows for table in first.tables])
    with Store(store.path.with_name("again.sqlite")) as other:
        again = STUDIES[name].run(context(other))
    assert again.tables == first.tables


def test_estimates_grow_with_the_seeds(store):
    for name, one in STUDIES.items():
        few, many = (one.estimate(replace(context(store), seeds=seeds)) for seeds in (1, 4))
        assert many == pytest.approx(4 * few), name


@pytest.mark.parametrize("name", [*SPLITS, "mnist"])
def test_training_and_test_sets_depend_on_the_seed(name):
    data = datasets.digits()
    size = 60
    X, y, X_test, y_test = split(name, size, 0, data)
    assert X.shape == (size, X_test.shape[1])
    assert len(y) == size
    assert len(X_test) == len(y_test) > 100
    again, other = (split(name, size, seed, data)[0] for seed in (0, 1))
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)


def test_the_networks_have_the_parameters_that_the_table_reports():
    from quadric import Network

    for name, (_, inputs, classes, width) in fewer_layers.DATA.items():
        for kind, depths in fewer_layers.DEPTHS.items():
            for depth in depths:
                outputs = 1 if classes == 2 else classes
                layers = [("linear", width, "tanh")] * depth + [(kind, outputs, "logistic")]
                net = Network.create(inputs, layers, rng=0)
                assert fewer_layers.parameters(name, kind, depth) == net.n_parameters


def test_recurrent_networks_have_equal_numbers_of_parameters():
    pytest.importorskip("torch")
    from quadric.apps.paper._torch_networks import parameters, sequences

    for name, (size, length, inputs, outputs, widths) in recurrent.TASKS.items():
        counts = [parameters(kind, inputs, width, outputs) for kind, width in widths.items()]
        assert max(counts) <= 1.05 * counts[0]
        assert min(counts) >= 0.95 * counts[0]
        (X, y), _ = sequences(name, size, length, 0)
        assert X.shape == (size, length, inputs)
        assert len(y) == size


def test_targets_of_the_sequences_follow_their_definitions():
    pytest.importorskip("torch")
    from quadric.apps.paper._torch_networks import adding, parity

    X, y = adding(50, 7, np.random.default_rng(0))
    assert (X[..., 1].sum(dim=1) == 2).all()
    assert y[3] == pytest.approx(float(X[3, X[3, :, 1] == 1, 0].sum()))
    X, y = parity(50, 5, np.random.default_rng(0))
    assert [int((row < 0).sum() % 2 == 0) for row in X] == y.tolist()
    assert 10 < int(y.sum()) < 40


# ---- verdicts --------------------------------------------------------------------------------


def cells(**means):
    """Return samples of 20 runs with a standard deviation of 0.2."""
    return {
        ("data", kind, depth): Sample(mean, 0.2, mean + 1, mean - 1, 20)
        for kind, values in means.items()
        for depth, mean in enumerate(values)
    }


def test_a_layer_counts_only_if_it_helps_the_linear_network():
    found = cells(linear=(80, 90, 90, 90), quadratic=(89.9, 90, 90), reduced=(85, 90, 90))
    helps = fewer_layers.depth_helps(found)
    assert [test.sign for test in helps.values()] == [1, 0, 0]
    assert [t.sign for t in fewer_layers.is_equal(found, "quadratic").values()] == [1, 1, 1]
    assert fewer_layers.is_equal(found, "reduced")["data", 1].sign == -1
    claim = fewer_layers.claim(found)
    assert claim.verdict is Verdict.HOLDS
    part = "a quadratic output, one hidden layer fewer is enough in 1 of 1 (data with 1 hidden "
    assert part in claim.ours
    worse = cells(linear=(80, 90, 95, 95), quadratic=(89, 96, 90), reduced=(85, 90, 90))
    assert fewer_layers.claim(worse).verdict is Verdict.CONDITIONALLY  # in one of two rows
    nowhere = cells(linear=(80, 90, 90, 90), quadratic=(89, 90, 90), reduced=(85, 90, 90))
    assert fewer_layers.claim(nowhere).verdict is Verdict.FAILS


def test_the_advantage_of_a_quadratic_layer_must_vanish_in_wide_layers():
    def found(gain_at_the_end, gain_at_the_start=5.0, separated=((90, 90), (100, 90))):
        """Return samples; `separated` are the worst runs, trained and untrained, by width."""

        def sample(mean, worst=None):
            return Sample(mean, 0.2, mean, mean if worst is None else worst, 10)

        return {
            (600, width, kind, measure): value
            for width, gain, (trained, untrained) in zip(
                (10, 300), (gain_at_the_start, gain_at_the_end), separated, strict=True
            )
            for kind in wide_layers.KINDS
            for measure, value in zip(
                wide_layers.MEASURES,
                (
                    sample(100, trained),
                    *(sample(90), sample(100), sample(90 + gain)),
                    sample(95, untrained),
                ),
                strict=True,
            )
        }

    for gain, verdict in (
        (0.0, Verdict.HOLDS),
        (2.0, Verdict.CONDITIONALLY),
        (6.0, Verdict.FAILS),
    ):
        claim = wide_layers.claim(found(gain), True)
        assert claim.verdict is verdict, gain
    part = "in every run from h = 300, and by the features of the untrained layer at no h"
    assert part in claim.ours
    by_dimension = found(0.0, separated=((90, 90), (100, 100)))
    claim = wide_layers.claim(by_dimension, True)
    assert claim.verdict is Verdict.CONDITIONALLY  # separable without training
    claim = wide_layers.claim(found(0.0, 0.1), True)
    assert claim.verdict is Verdict.CONDITIONALLY  # no gain in narrow layers, either
    nowhere = found(0.0, separated=((99, 90), (99, 90)))
    assert wide_layers.claim(nowhere, True).verdict is Verdict.FAILS
    assert wide_layers.claim(found(0.0), False).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("early", "late", "verdict"),
    [
        (1.0, 1.0, Verdict.HOLDS),
        (1.0, 0.0, Verdict.CONDITIONALLY),
        (0.0, 0.0, Verdict.UNKNOWN),
        (-1.0, 0.0, Verdict.FAILS),
        (1.0, -1.0, Verdict.UNKNOWN),
    ],
)
def test_a_head_is_judged_by_paired_differences_over_all_sizes(early, late, verdict):
    rng = np.random.default_rng(0)
    found = {}
    for size, measures in cnn_head.SIZES.items():
        for epochs, gain in zip(measures, (early, late), strict=True):
            common, noise = rng.normal(85, 5, 30), rng.normal(0, 0.3, 30)
            noise -= noise.mean()
            for head in cnn_head.HEADS:
                values = common + (head != "linear") * (gain + noise)
                found[size, 16, head, f"after {epochs} epochs"] = dict(enumerate(values))
    assert cnn_head.claim(found, "quadratic", judged=True).verdict is verdict
    assert cnn_head.claim(found, "quadratic", judged=False).verdict is Verdict.UNKNOWN


# ---- the command -----------------------------------------------------------------------------


def test_studies_cannot_be_combined_with_a_name(tmp_path):
    result = command("reproduce", "xor", "--studies", "--out", tmp_path)
    assert result.returncode == 1
    assert "--studies runs all studies" in result.stderr


@pytest.mark.slow
def test_without_torch_the_other_studies_run(tmp_path, small, monkeypatch):
    from quadric.utils import _extras as extras

    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "torch" else found(name))
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    arguments = ("--seeds", "1", "--jobs", "1", "--out", tmp_path)
    result = command("reproduce", "--studies", *arguments)
    assert result.returncode == 1
    assert 'The study cnn-head needs torch: pip install "quadric[torch]"' in result.stderr
    page = (tmp_path / "index.html").read_text()
    assert "features of wide hidden layers" in page
    assert "fewer hidden layers" in page
    assert "cnn-head, recurrent not finished" in page
    result = command("reproduce", "recurrent", *arguments)
    assert 'The study recurrent needs torch: pip install "quadric[torch]"' in result.stderr


# ---- committed results -----------------------------------------------------------------------

RESULTS = Path(__file__).parents[2] / "results"


def committed(name):
    """Return the rows of a committed table of a study."""
    with (RESULTS / "studies" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def sample(row, mean="mean", std="std"):
    number = float(row[mean])
    return Sample(number, float(row[std]) if std else None, number, number, int(row["runs"]))


def committed_claims():
    """Judge the claims of all studies on the committed tables."""
    found = {
        (row["data"], row["output"], int(row["hidden layers"])): sample(row)
        for row in committed("fewer_layers")
    }
    yield fewer_layers.claim(found)
    found = read_runs("cnn-head")
    assert {len(runs) for runs in found.values()} == {60}
    for row in committed("cnn_head"):
        key = (int(row["images"]), int(row["features"]), row["head"], row["measured"])
        assert float(row["mean"]) == pytest.approx(np.mean([*found[key].values()]))
    for head in cnn_head.HEADS[1:]:
        yield cnn_head.claim(found, head, judged=True)
    kinds = {name: kind for kind, name in recurrent.MODELS.items()}
    found = {(row["task"], kinds[row["network"]]): sample(row) for row in committed("recurrent")}
    yield recurrent.claim(found)
    found = {}
    for row in committed("wide_layers"):
        place = (int(row["images"]), int(row["h"]), row["output"])
        for measure in wide_layers.MEASURES:
            std = f"{measure}, std"
            found[*place, measure] = sample(row, f"{measure}, mean", std if std in row else None)
        for measure, column in zip(
            wide_layers.SEPARATING, ("separable runs", "separable runs, untrained"), strict=True
        ):
            assert (found[*place, measure].worst == 100) is (row[column] == row["runs"])
    yield wide_layers.claim(found, compared=True)


def test_committed_verdicts_follow_from_the_committed_numbers():
    with (RESULTS / "claims.csv").open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    claims = list(committed_claims())
    assert len(claims) == 5
    for claim in claims:
        row = rows[claim.id]
        assert (row["ours"], row["verdict on ours"]) == (claim.ours, claim.verdict), claim.id
