"""Bilinear MLPs: training, measures, comparison with the published figures, and the report."""

import csv
import json
import signal

import numpy as np
import pytest

from quadric import datasets
from quadric.apps.paper import BILINEAR, _bilinear as reproduction
from quadric.apps.paper._bilinear import (
    PUBLISHED,
    TITLES,
    VARIANTS,
    Published,
    PublishedComparison,
    cells_of,
    findings,
)
from quadric.apps.paper._statistics import Sample
from quadric.apps.paper.sweep import Store, StudyTask
from quadric.certify import radius
from quadric.convert import fold, truncate
from quadric.errors import DatasetUnavailableError
from quadric.files import load
from tests.support import processes
from tests.support.commands import assert_one_screen, command
from tests.support.sweeps import SMALL, check_presentation, context, digits, lines, wait_for_lines

torch = pytest.importorskip("torch")


@pytest.fixture
def small(monkeypatch):
    """Make the networks and the images small enough for seconds."""
    for name, value in SMALL.items():
        monkeypatch.setitem(reproduction.SETTINGS, name, value)
    monkeypatch.setattr(reproduction, "WIDTH", 16)


def train(data, variant="none", seed=0, **settings):
    from quadric.apps.paper._torch_networks import train_bilinear

    strengths = {"noise": 0.0, "decay": 0.0} | {
        name: settings.pop(name) for name in ("noise", "decay") if name in settings
    }
    task = StudyTask(len(data.X_train), 16, variant, seed)
    settings = {"rate": 1e-3, "batch": 128, "epochs": 3} | settings
    return train_bilinear(task, settings, data, **strengths)


# ---- training and measures -------------------------------------------------------------------


def test_the_network_computes_the_function_of_the_module():
    from quadric.apps.paper._torch_networks import BilinearMLP

    model = BilinearMLP(12, 5, 3)
    X = np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32)
    with torch.no_grad():
        E, F, out = (layer.weight for layer in (model.embed, model.factors, model.head))
        h = torch.from_numpy(X) @ E.T
        by_hand = ((h @ F[:5].T) * (h @ F[5:].T)) @ out.T
        expected = model(torch.from_numpy(X)).numpy()
    assert np.allclose(by_hand.numpy(), expected, atol=1e-6)
    network = model.to_network()
    assert np.allclose(network.logits(X), expected, atol=1e-6)
    assert np.allclose(fold(network).logits(X), expected, atol=1e-5)
    assert sum(p.numel() for p in model.parameters()) == 12 * 5 + 2 * 5 * 5 + 5 * 3  # no biases


def test_training_is_the_same_for_a_seed_and_noise_and_decay_change_it():
    data = digits()[0]
    first, visited = train(data)
    again, _ = train(data)
    assert visited == 3 * (500 // 128) * 128  # incomplete batches are left out
    assert all(
        np.array_equal(a, b)
        for one, two in zip(first.layers, again.layers, strict=True)
        for a, b in zip(one.arrays().values(), two.arrays().values(), strict=True)
    )
    assert not np.array_equal(first.layers[0].W, train(data, seed=1)[0].layers[0].W)
    assert not np.array_equal(first.layers[0].W, train(data, noise=0.5)[0].layers[0].W)
    decayed = train(data, decay=50.0)[0]
    assert np.linalg.norm(decayed.layers[0].W) < 0.8 * np.linalg.norm(first.layers[0].W)


def test_training_learns():
    data = datasets.digits()
    network, _ = train(data, epochs=30, rate=1e-2)
    assert (network.logits(data.X_test / 16).argmax(axis=1) == data.y_test).mean() > 0.85


def test_measures_follow_their_definitions():
    data = datasets.digits()
    network, _ = train(data, epochs=10, rate=1e-2)
    ranks, distances = [1, 3, 100], [0.0, 0.3]
    found = dict(
        zip(
            reproduction.names(ranks, distances),
            reproduction.measure(network, data, ranks, distances, n_certified=50),
            strict=True,
        )
    )
    X, y, folded = data.X_test / 16, data.y_test, fold(network)
    accuracy = (network.logits(X.astype(np.float32)).argmax(axis=1) == y).mean()
    assert found[reproduction.ACCURACY] == pytest.approx(accuracy)
    assert found["accuracy at rank 100"] == found[reproduction.ACCURACY]  # more than all 64
    for rank in (1, 3):
        expected = (truncate(folded, rank, centered=False).logits(X).argmax(axis=1) == y).mean()
        assert found[f"accuracy at rank {rank}"] == pytest.approx(expected)
    assert found["accuracy at rank 1"] < found["accuracy at rank 3"]
    # the effective rank by the sums of the published definition
    _, product, head = (layer.astype(np.dtype(float)) for layer in network.layers)
    expected = []
    for weights in head.W:
        B = (product.W.T * weights) @ product.U
        lam = np.linalg.eigvalsh((B + B.T) / 2)
        expected.append(np.abs(lam).sum() ** 2 / (lam**2).sum())
    assert found[reproduction.RANK] * 16 == pytest.approx(np.mean(expected))
    assert found[reproduction.INPUT_RANK] != pytest.approx(found[reproduction.RANK])
    rows = np.linspace(0, 499, 50).astype(int)
    one = radius(folded, X[rows])
    right = one.predicted == y[rows]
    assert found["certified at 0"] == pytest.approx(right.mean())
    assert found["certified at 0.3"] == pytest.approx((right & (one.radius > 0.3)).mean())
    assert 0 < found["certified at 0.3"] < found["certified at 0"]
    assert found[reproduction.MEDIAN] * 8 == pytest.approx(np.median(one.radius[right]))


@pytest.mark.parametrize(
    ("radii", "expected"), [([2.0, 4.0, 9.0], 0.5), ([np.inf] * 3, 1.0), ([], 0.0)]
)
def test_the_median_radius_is_a_share_of_the_diagonal(radii, expected):
    assert reproduction.median_radius(np.array(radii), 64) == expected


# ---- comparison ------------------------------------------------------------------------------


def sample(mean, std=None, runs=1):
    return Sample(mean, std, mean, mean, runs)


@pytest.mark.parametrize(
    ("ours", "difference", "close"),
    [(97.79, 0.30, True), (97.80, 0.31, False), (97.19, -0.30, True), (97.18, -0.31, False)],
)
def test_accuracies_within_three_tenths_of_a_point_agree(ours, difference, close):
    one = PublishedComparison(Published(97.49, 0.06, 38.5), sample(ours), sample(40.0))
    assert one.difference == pytest.approx(difference)
    assert one.is_close is close
    assert one.rank_difference == pytest.approx(1.5)
    equal = PublishedComparison(Published(98.01), sample(0.9801 * 100 - 1e-13), sample(40.0))
    assert f"{equal.difference:+.2f}" == "+0.00"
    unknown = PublishedComparison(Published(), sample(ours), sample(40.0))
    assert (unknown.difference, unknown.is_close, unknown.rank_difference) == (None, None, None)


def artificial(name="mnist", shift=0.0, radii=(1.0, 2.0, 0.5, 1.5)):
    """Return cells with the published figures, all accuracies shifted."""
    found = {}
    for (variant, title), radius_of in zip(TITLES.items(), radii, strict=True):
        published = PUBLISHED[name, variant]
        values = {
            reproduction.ACCURACY: published.accuracy + shift,
            reproduction.RANK: published.rank or 10.0,
            reproduction.INPUT_RANK: 5.0,
            reproduction.MEDIAN: radius_of,
            "accuracy at rank 1": 50.0,
            "accuracy at rank 10": published.accuracy - (2.0 if title == "input noise" else 0.5),
        }
        found |= {(name, variant, key): sample(value) for key, value in values.items()}
    return found


def test_findings_state_what_the_numbers_show():
    accuracies, ranks, truncation, radii = findings(artificial(shift=0.1), [1, 10])
    assert accuracies.startswith("MNIST: 4 of 4 mean accuracies are within 0.3 points")
    assert "The largest difference is +0.10 points" in accuracies
    assert "weight decay 15.5 (15.5), noise and decay 26.0 (26.0), neither 38.5 (38.5)" in ranks
    assert ranks.endswith("The order of the variants is the same.")
    assert truncation.endswith(
        "neither 10, input noise more than 10, weight decay 10, noise and decay 10."
    )
    assert "0.500 with weight decay (0.50 times)" in radii
    far = findings(artificial(shift=-0.4), [1, 10])[0]
    assert far.startswith("MNIST: 0 of 4")
    assert len(findings(artificial("fashion_mnist"), [1, 10])) == 3  # no ranks are published
    other = {("digits", *key[1:]): one for key, one in artificial().items()}
    assert len(findings(other, [1, 10])) == 2


def test_radii_without_a_first_one_to_compare_with_are_listed_without_ratios():
    *_, radii = findings(artificial(radii=(0.0, 2.0, 0.5, 1.5)), [1, 10])
    assert "0.000 with neither input noise nor weight decay, and 2.000 with input noise, " in radii
    assert radii.endswith("1.500 with noise and decay.")


# ---- the experiment --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_compares_both_data_sets_and_gives_the_same_numbers_again(store, small, tmp_path):
    first = reproduction.run(context(store))
    comparison, truncation, radii = first.tables
    assert [row[:2] for row in comparison.rows] == [
        (name, title) for name in ("MNIST", "Fashion-MNIST") for title in TITLES.values()
    ]
    for row in comparison.rows:
        values = dict(zip(comparison.columns, row, strict=True))
        assert values["difference"] == pytest.approx(values["ours, %"] - values["published, %"])
        assert values["within 0.3 points"] is False  # digits, after two epochs
        assert (values["runs"], values["std"]) == (1, None)
    assert truncation.columns[3:] == ("rank 1", "rank 5", "all")
    assert radii.columns[4:] == ("certified at 0.5, %",)
    json.dumps([table.rows for table in first.tables])
    assert first.figures.keys() == first.captions.keys()
    check_presentation(first)
    assert {f"bilinear_eigenvectors_{name}" for name in ("mnist", "fashion_mnist")} < set(
        first.figures
    )
    assert not first.claims
    assert first.citation
    with Store(tmp_path / "again.sqlite") as other:
        assert reproduction.run(context(other)).tables == first.tables
    full = reproduction.run(context(store, full=True))  # four more seeds
    assert {row[6] for row in full.tables[0].rows} == {5}
    assert all(row[5] > 0 for row in full.tables[0].rows)


@pytest.mark.slow
def test_the_networks_of_all_runs_are_kept_as_model_files(store, small):
    reproduction.run(context(store, fashion=None))
    files = sorted((store.path.parent / "bilinear").iterdir())
    assert [file.name.rpartition("-")[0] for file in files] == [
        f"mnist-{variant}-seed-0" for variant in sorted(VARIANTS)
    ]
    data, (part,) = digits()[0], reproduction.parts(context(store, fashion=None))
    cells = cells_of([(part, store.runs(part.study, data.checksum))])
    for file, variant in zip(files, sorted(VARIANTS), strict=True):
        right = load(file).logits(data.X_test / 16).argmax(axis=1) == data.y_test
        assert 100 * right.mean() == pytest.approx(cells["mnist", variant, "accuracy"].mean)
    files[0].unlink()
    outcome = reproduction.run(context(store, fashion=None))  # the numbers are in the store
    assert "bilinear_eigenvectors_mnist" in outcome.figures


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_killed_reproduction_resumes_with_the_same_table(tmp_path, store, small, jobs):
    psutil = pytest.importorskip("psutil")
    path, data = tmp_path / "killed" / "runs.sqlite", digits()[0]
    path.parent.mkdir()
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    process = processes.Started(["-m", "tests.support.sweeps", "bilinear", path, logs[0], jobs])
    try:
        wait_for_lines(process, logs[0], 1 + jobs, timeout=300)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        output = "".join(process.communicate(timeout=60))
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL, output
    psutil.wait_procs(workers, timeout=30)
    with Store(path) as opened:
        kept = {str(run.task) for run in opened.runs(reproduction.study(), data.checksum)}
    assert 0 < len(kept) < 4
    process = processes.Started(["-m", "tests.support.sweeps", "bilinear", path, logs[1], jobs])
    output = "".join(process.communicate(timeout=300))
    assert process.returncode == 0, output
    with Store(path) as opened:
        runs = {str(run.task) for run in opened.runs(reproduction.study(), data.checksum)}
        resumed = reproduction.run(context(opened, fashion=None))
    assert set(lines(logs[1])) == runs - kept  # none twice
    assert resumed.tables == reproduction.run(context(store, fashion=None)).tables
    assert len(list((path.parent / "bilinear").iterdir())) == 4  # the models of both processes


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_tables_and_models(tmp_path, small):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    (tmp_path / "a").mkdir()
    with (
        distributed.LocalCluster(
            1, threads_per_worker=1, dashboard_address=":0", **options
        ) as cluster,
        Store(tmp_path / "a" / "runs.sqlite") as store,
        Store(tmp_path / "runs.sqlite") as other,
    ):
        address = cluster.scheduler_address
        outcome = reproduction.run(context(store, fashion=None, dask=address))
        assert outcome.tables == reproduction.run(context(other, fashion=None)).tables
    assert len(list((tmp_path / "a" / "bilinear").iterdir())) == 4


def test_estimates_grow_with_seeds_and_data(store):
    quick = BILINEAR["bilinear"].estimate(context(store))
    assert BILINEAR["bilinear"].estimate(context(store, full=True)) == pytest.approx(5 * quick)
    assert BILINEAR["bilinear"].estimate(context(store, fashion=None)) == pytest.approx(quick / 2)
    assert BILINEAR["bilinear"].estimate(context(store, jobs=2)) == pytest.approx(quick / 2)


# ---- the command -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_report_is_about_the_other_publication(tmp_path, small, monkeypatch):
    def unavailable(data_dir):
        raise DatasetUnavailableError("no network")

    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: digits()[0])
    monkeypatch.setattr("quadric.datasets.fashion_mnist", unavailable)
    result = command("reproduce", "bilinear", "--jobs", "1", "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Fashion-MNIST is not available and is left out: no network" in result.stderr
    assert_one_screen(result.stdout)
    assert "0 of 4 mean accuracies" in " ".join(result.stdout.split())
    assert "bilinear: within 0.3 points 4 accuracies 0 of 4 fails" in result.stdout
    page = (tmp_path / "index.html").read_text()
    assert "<h1>Reproduction of published results</h1>" in page
    assert "arXiv 2410.08417" in page
    assert "The paper's claims" not in page
    assert "<li>MNIST: 0 of 4 mean accuracies" in page
    assert not (tmp_path / "claims.csv").exists()
    with (tmp_path / "bilinear.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4


def test_without_torch_the_command_prints_the_install_command(tmp_path, small, monkeypatch):
    from quadric.utils import _extras as extras

    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "torch" else found(name))
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: digits()[0])
    monkeypatch.setattr("quadric.datasets.fashion_mnist", lambda data_dir: digits()[1])
    result = command("reproduce", "bilinear", "--out", tmp_path)
    assert result.returncode == 1
    assert 'The experiment bilinear needs torch: pip install "quadric[torch]"' in result.stderr
