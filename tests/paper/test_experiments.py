"""The experiments: their counts and claims, on small or artificial runs."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quadric import datasets
from quadric.paper.experiments import EXPERIMENTS, Context
from quadric.paper.experiments import _ablation as ablation
from quadric.paper.experiments import _clusters as clusters
from quadric.paper.experiments import _complexity as complexity
from quadric.paper.experiments import _mnist as mnist
from quadric.paper.experiments import _mnist_cells as mnist_cells
from quadric.paper.experiments import _theorem as theorem
from quadric.paper.experiments import _timing as timing
from quadric.paper.experiments import _xor as xor
from quadric.paper.experiments._experiment import MODELS, Table
from quadric.paper.sweep import Environment, Recipe, Result, Run, Store, Task
from quadric.reference._counts import count_layer

ROOT = Path(__file__).parents[2]
HERE = Environment("a processor", "0", "0", "0", "0")
COLUMNS = ["train_size", "epochs", "hidden", "model", "mean", "std", "best", "worst"]


def runs_of(means):
    """Return runs with one seed whose accuracies after 5, 10 and 20 epochs are the given means."""
    rows = []
    for size, hidden, model in sorted({(key[0], key[2], key[3]) for key in means}):
        accuracies = tuple(means[size, epochs, hidden, model] / 100 for epochs in (5, 10, 20))
        task = Task(size, hidden, MODELS[model], 0)
        rows.append(Run(task, Result(accuracies, 1.0, 20 * size), HERE, "now"))
    return rows


@pytest.fixture(scope="module")
def paper():
    return mnist_cells.paper_table()


# ---- the MNIST table -----------------------------------------------------------------------


def test_the_papers_table_has_its_180_cells(paper):
    assert len(paper) == 4 * 3 * 5 * 3
    assert paper[600, 5, 10, "qnn"] == {"mean": 72.68, "std": 3.16, "best": 77.38, "worst": 65.51}


def test_claims_judged_on_the_papers_own_numbers(paper):
    """In the paper's table QNN wins in 60 of 60 rows and RPQNN in 52."""
    means = {key: cell["mean"] for key, cell in paper.items()}
    cells = mnist_cells.cells_of(runs_of(means), Recipe(), paper)
    assert len(cells) == 180
    assert all(cell.within_2_sigmas and cell.near for cell in cells)
    claims = {
        claim.text.split(" in every")[0]: claim
        for claim in mnist_cells.claims_of(cells, compared=True)
    }
    assert claims["the table can be reproduced"].ours.startswith("180 of 180 means")
    for text, wins in (("QNN beats ANN", 60), ("QNN beats RPQNN", 60), ("RPQNN beats ANN", 52)):
        assert claims[text].paper == claims[text].ours == f"{wins} of 60"
        assert claims[text].holds is (wins == 60)
        assert claims[text].paper_holds is (wins == 60)
    widths = {row[:2]: row[2:] for row in mnist_cells.smallest_widths(cells)}
    expected = ((600, (10, 10, 10)), (1200, (10, 10, 20)), (6000, (15, 20, 20)))
    for size, found in (*expected, (60000, (20, 20, 25))):
        for epochs, width in zip((5, 10, 20), found, strict=True):
            assert widths[size, epochs] == (width, width)


def test_a_cell_that_differs_is_named(paper):
    means = {key: cell["mean"] for key, cell in paper.items()}
    means[600, 5, 10, "qnn"] += 2.5 * 3.16  # 2.5 times the paper's standard deviation
    means[60000, 20, 30, "ann"] += 4.0  # far off
    cells = {cell.key: cell for cell in mnist_cells.cells_of(runs_of(means), Recipe(), paper)}
    off = cells[600, 5, 10, "qnn"]
    assert (off.within_2_sigmas, off.near) == (False, True)
    assert off.sigmas == pytest.approx(2.5)
    far = cells[60000, 20, 30, "ann"]
    assert (far.within_2_sigmas, far.near) == (False, False)
    claim = mnist_cells.claims_of(list(cells.values()), compared=True)[0]
    assert claim.ours.startswith("178 of 180 means within 2")
    assert "179 within 3" in claim.ours


def test_a_cell_has_mean_standard_deviation_best_and_worst():
    rows = [
        Run(Task(600, 10, "linear", seed), Result((a, a, a), 1.0, 1), HERE, "now")
        for seed, a in enumerate((0.1, 0.2, 0.4))
    ]
    cell = mnist_cells.cells_of(rows, Recipe(), {})[0]
    assert cell.mean == pytest.approx(70 / 3)
    assert cell.std == pytest.approx(np.std([10, 20, 40], ddof=1))
    assert (cell.best, cell.worst) == (pytest.approx(40), pytest.approx(10))
    assert cell.sigmas is None
    assert cell.within_2_sigmas is None


def test_parameter_counts_are_those_of_the_networks():
    from quadric import Network

    for model, kind in MODELS.items():
        net = Network.create(784, [("linear", 15, "logistic"), (kind, 10, "logistic")], rng=0)
        assert mnist.parameters(15, model) == net.n_parameters


def test_tasks_and_estimate_fit_the_data_and_the_cores():
    data = datasets.digits()
    full = Context(full=True, images=data, jobs=1)
    tasks = mnist.tasks_for(full)
    assert {task.size for task in tasks} == {600, 1200}  # there are no more images
    assert len(tasks) == 2 * 5 * 3 * 25
    quick = mnist.tasks_for(Context(seeds=2, first_seed=7, images=data))
    assert {task.seed for task in quick} == {7, 8}
    wanted = sum(task.cost for task in tasks) * 1e-9 * 20
    assert mnist.estimate(full) == pytest.approx(wanted)
    assert mnist.estimate(replace(full, jobs=2)) == pytest.approx(wanted / 2)


def test_the_command_offers_every_experiment():
    from quadric.cli._reproduce import ExperimentName

    assert list(ExperimentName) == ["all", *EXPERIMENTS]


@pytest.mark.slow
def test_the_grid_on_digits_is_labeled_and_not_compared(tmp_path):
    data = datasets.digits()
    seen = []
    with Store(tmp_path / "runs.sqlite") as store:
        context = Context(seeds=2, images=data, store=store)
        tasks = [task for task in mnist.tasks_for(context) if task.size == 600]
        told = replace(context, progress=lambda *state: seen.append(state))
        outcome = mnist.run(told, tasks)
        again = mnist.run(context, tasks)
    assert outcome.name == "digits"
    assert "This is not MNIST" in outcome.summary
    assert "digits" in outcome.summary
    assert seen[-1][0] == pytest.approx(seen[-1][1])
    assert again.tables[0].rows == outcome.tables[0].rows
    assert again.facts["steps per second, this run"] is None  # all were stored
    assert not any("can be reproduced" in claim.text for claim in outcome.claims)
    table = next(table for table in outcome.tables if table.name == "digits_table")
    assert list(table.columns) == COLUMNS
    assert len(table.rows) == 45


def test_timing_compares_ratios_with_the_ann():
    outcome = timing.run(Context(images=datasets.digits()))
    (table,) = outcome.tables
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["ANN"]["ratio"] == 1.0
    assert rows["QNN"]["paper, ratio"] is None  # these are not the paper's data
    assert [claim.holds for claim in outcome.claims] == [None, None]
    assert "This is not MNIST" in outcome.summary
    assert all(row["seconds"] > 0 for row in rows.values())


def test_the_committed_table_is_in_the_papers_form():
    """results/mnist_table.csv has 180 cells, as close to the paper as results/mnist.md states."""
    path = ROOT / "results" / "mnist_table.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert list(rows[0]) == COLUMNS
    paper = mnist_cells.paper_table()
    keys = [(int(r["train_size"]), int(r["epochs"]), int(r["hidden"]), r["model"]) for r in rows]
    assert set(keys) == set(paper)
    cells = []
    for key, row in zip(keys, rows, strict=True):
        ours = (float(row[name]) for name in COLUMNS[4:])
        cells.append(mnist_cells.Cell(*key, *ours, paper[key]["mean"], paper[key]["std"]))
    within = sum(bool(cell.within_2_sigmas) for cell in cells)
    near = sum(bool(cell.near) for cell in cells)
    assert within >= 171
    assert near >= 176
    text = (ROOT / "results" / "mnist.md").read_text()
    assert f"{within} of 180" in text
    assert f"{near} of 180" in text
    for cell in cells:
        if not cell.within_2_sigmas:
            size, epochs, hidden, model = cell.key
            assert f"| {size} | {epochs} | {hidden} | {model} |" in text


# ---- other experiments ---------------------------------------------------------------------


@pytest.mark.slow
def test_six_quadratic_neurons_separate_six_clusters_and_linear_ones_do_not(monkeypatch):
    monkeypatch.setattr(clusters, "WIDTHS", (1, 4, 8))
    quadratic = clusters.train("quadratic", 0, epochs=100)
    assert quadratic.argmax > 99
    assert quadratic.thresholded > 90
    linear = clusters.train("linear", 0, epochs=100)
    assert linear.thresholded < 75 < linear.argmax
    softmax = clusters.train("linear, softmax", 0, epochs=20)
    hidden = [clusters.train(f"{width} hidden, 6 linear", 0) for width in clusters.WIDTHS]
    outcome = clusters.outcome([quadratic, linear, softmax, *hidden], 100)
    assert hidden[-1].thresholded > 99
    assert hidden[0].thresholded < 90
    assert [claim.holds for claim in outcome.claims] == [None, True, True]
    assert "clusters" in outcome.figures


@pytest.mark.slow
@pytest.mark.parametrize(("C", "d"), [(2, 2), (7, 3), (5, 12)])
def test_theorem_by_construction_and_by_training(C, d):
    X, y, X_new, y_new = theorem.bounded_clusters(C, d, np.random.default_rng(0))
    assert X.shape == X_new.shape == (C * (30 + 10 * d), d)
    assert len(np.unique(y)) == len(np.unique(y_new)) == C
    row = theorem.train(C, d, 0)
    assert row["ellipsoids disjoint"]
    assert row["constructed"] == 100
    assert row["trained"] == 100


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 2), (4, 6)])
def test_formulas_agree_with_counts(m, n):
    for row in complexity.multiplications(m, n):
        if row[4] is not None:
            assert row[3] == row[4], row  # the formula and the count agree
    counted = {(row[0], row[1]): row[4] for row in complexity.multiplications(m, n)}
    assert counted["QNN", "forward"] == count_layer("qnn", m, n)["forward"] == m * n * n + m * n
    assert counted["RPQNN", "update"] == 2 * m * n + 8 * m


def test_memory_is_measured_on_the_layers():
    rows = {row[0]: row[1:] for row in complexity.held(10, 30)}
    m, n = 10, 30
    assert rows["QNN"][1] == m * n * (n + 1) // 2  # Q as its triangle
    assert rows["QNN"][0] - rows["QNN"][1] == 2 * m * n  # the paper counts V, twice
    assert rows["RPQNN"][0] == rows["RPQNN"][1] == m * n + 3 * m
    assert rows["QNN"][2] == 4 * m * (n * (n + 1) // 2 + n + 1)
    assert rows["ANN"][1] == 0


@pytest.mark.slow
def test_complexity_finds_the_known_errors_in_the_printed_counts():
    outcome = complexity.run(Context())
    holds = [claim.holds for claim in outcome.claims]
    assert holds == [False, True, True, False, False, True, None]
    assert "QNN forward, QNN update, RPQNN update" in outcome.claims[0].ours
    assert "ANN" not in outcome.claims[0].ours  # the printed count is one of two correct ones
    assert (
        "A_BP is 670; the update of layer 1, which it omits, takes 24334" in outcome.claims[3].ours
    )
    assert "QNN / ANN = 1.21" in outcome.claims[6].paper
    growth = {row[0]: row[2] for row in outcome.tables[2].rows}
    assert growth["QNN, block product A Q"] == pytest.approx(4, abs=0.01)
    wrong = {(row[0], row[1]) for row in outcome.tables[0].rows if row[5]}
    assert wrong == {("ANN", "update"), ("QNN", "forward"), ("QNN", "update"), ("RPQNN", "update")}
    assert all(row[6] for row in outcome.tables[0].rows if row[5])  # each with a reason


@pytest.mark.slow
def test_ablation_shows_the_cost_of_the_errors():
    with np.errstate(over="ignore"):
        strip_printed, strip_corrected = ablation.train_strip(1, 4)[-1]
        sign_printed, sign_corrected = ablation.train_sign(0, 2)[-1]
    assert strip_corrected > strip_printed + 10
    assert sign_corrected > 90 > 50 > sign_printed


def test_xor_claims_hold_for_two_seeds():
    outcome = xor.run(Context(seeds=2))
    assert [claim.holds for claim in outcome.claims] == [True, True]
    assert outcome.tables[0].rows[0][-1] == "ellipse 2"
    assert outcome.tables[0].rows[1][-1] == "hyperbola 2"


def test_table_cells_are_formatted_as_text():
    table = Table("t", "T", ("a", "b"), [(1.234, None)], formats={"a": ".1f"})
    assert table.text(0, 1.26) == "1.3"
    assert table.text(1, None) == "-"
    assert table.text(1, True) == "yes"
    assert json.dumps(table.rows)
