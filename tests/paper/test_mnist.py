"""The MNIST table: its statistics, tables and claims, on the printed and on artificial numbers."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quadric import Network, datasets
from quadric.apps.paper import Context, _mnist as mnist
from quadric.apps.paper._claims import Verdict
from quadric.apps.paper._experiment import MODELS
from quadric.apps.paper._mnist import parameters, tables
from quadric.apps.paper._mnist_claims import (
    ENOUGH,
    block_tests,
    cells_of,
    claims_of,
    compare,
    comparisons,
    expected_within,
    paper_table,
    read_table,
    rows_below,
    signs,
    smallest_width,
)
from quadric.apps.paper._statistics import Sample, sample_of
from quadric.apps.paper.sweep import Recipe, Result, Run, Store, Task
from results.write import read_mnist_runs, results_of
from tests.support.sweeps import HERE

ROOT = Path(__file__).parents[2]
COLUMNS = ["train_size", "epochs", "hidden", "model", "mean", "std", "best", "worst"]
NEGATIVE = [
    *[(1200, 20, hidden) for hidden in (15, 20, 25, 30)],
    *[(6000, 20, hidden) for hidden in (10, 15, 20, 25)],
]


@pytest.fixture(scope="module")
def paper():
    return paper_table()


def claim_about(claims, name):
    (found,) = [claim for claim in claims if claim.id == name]
    return found


def test_the_papers_table_has_its_180_cells(paper):
    assert len(paper) == 4 * 3 * 5 * 3
    assert paper[600, 5, 10, "qnn"] == Sample(72.68, 3.16, best=77.38, worst=65.51, runs=25)


def test_one_printed_cell_is_impossible(paper):
    assert [key for key, sample in paper.items() if not sample.is_possible] == [
        (6000, 10, 20, "qnn")
    ]
    claim = claim_about(claims_of(compare(paper, paper), compared=True), "table-possible")
    assert claim.paper == "impossible: 6000/10/20 QNN (mean 91.98, best 95.76, worst 93.92)"
    assert claim.verdict is claim.paper_verdict is Verdict.FAILS


def test_the_papers_own_numbers_reproduce_themselves(paper):
    claims = claims_of(compare(paper, paper), compared=True)
    means = claim_about(claims, "table-means")
    assert means.verdict is Verdict.CONDITIONALLY  # our settings are fitted to the table
    assert means.ours.startswith("180 of 180 within 2 standard errors")
    assert "at least 165 required" in means.ours
    assert "Ours were fitted" in means.ours
    rows = claim_about(claims, "table-rpqnn-below-ann")
    assert rows.verdict is Verdict.HOLDS
    assert rows.ours.startswith("less accurate in 8 of 8, significantly in 0, significantly more")
    assert signs(compare(paper, paper))[0] == NEGATIVE
    spread = claim_about(claims, "table-spread")
    assert spread.verdict is Verdict.HOLDS
    assert spread.ours.startswith("median 1.00 of the printed one; significantly different in 0 of")


BETTER = "significantly better in {}, worse in {} of {}"
SMALLER = "significantly smaller in {}, larger in {} of {}"


@pytest.mark.parametrize(
    ("name", "expected", "verdict"),
    [
        ("outperforms-qnn", BETTER.format(59, 0, 60), Verdict.HOLDS),
        (
            "outperforms-rpqnn",
            "RPQNN against ANN: better in 10 of 12 blocks",
            Verdict.CONDITIONALLY,
        ),
        ("few-qnn", BETTER.format(12, 0, 12), Verdict.HOLDS),
        ("few-rpqnn", BETTER.format(12, 0, 12), Verdict.HOLDS),
        ("gain-falls-with-images", SMALLER.format(15, 0, 15), Verdict.HOLDS),
        ("gain-falls-with-epochs", SMALLER.format(17, 0, 20), Verdict.HOLDS),
        (
            "gain-falls-with-hidden-neurons",
            f"{SMALLER.format(6, 1, 12)}; with at most 1200 images {SMALLER.format(6, 0, 6)}",
            Verdict.CONDITIONALLY,
        ),
        ("fewer-hidden-neurons-qnn", BETTER.format(12, 0, 12), Verdict.HOLDS),
        (
            "fewer-hidden-neurons-rpqnn",
            f"{BETTER.format(5, 4, 12)}; with at most 600 images {BETTER.format(3, 0, 3)}",
            Verdict.CONDITIONALLY,
        ),
        (
            "significantly-fewer-hidden-neurons",
            f"{BETTER.format(5, 4, 12)}; with at most 1200 images {BETTER.format(5, 0, 6)}",
            Verdict.CONDITIONALLY,
        ),
        ("two-thirds-of-the-hidden-neurons", BETTER.format(9, 0, 12), Verdict.HOLDS),
        (
            "significantly-fewer-hidden-neurons-rpqnn",
            BETTER.format(4, 7, 12),
            Verdict.CONDITIONALLY,
        ),
        ("rpqnn-gain-falls-with-images", SMALLER.format(15, 0, 15), Verdict.HOLDS),
        ("rpqnn-compromise", "RPQNN against ANN: better in 10 of 12 blocks", Verdict.CONDITIONALLY),
        ("rpqnn-almost-the-same", "median 36%, at least 80% in 3 of 59", Verdict.FAILS),
        ("accuracy-random", "the runs differ in 180 of 180 cells", Verdict.HOLDS),
    ],
)
def test_claims_judged_on_the_papers_own_numbers(paper, name, expected, verdict):
    claim = claim_about(claims_of(compare(paper, paper), compared=True), name)
    assert claim.paper == claim.ours
    assert claim.ours.startswith(expected)
    assert claim.paper_verdict is claim.verdict is verdict


def test_a_claim_fails_if_the_rows_of_all_sizes_contradict_it(paper):
    """With the accuracies of ANN and QNN exchanged, the QNN outperforms nowhere."""
    other = {"ann": "qnn", "qnn": "ann", "rpqnn": "rpqnn"}
    exchanged = {(*key[:3], other[key[3]]): sample for key, sample in paper.items()}
    claims = claims_of(compare(exchanged, paper), compared=True)
    for name in ("outperforms-qnn", "few-qnn", "gain-falls-with-images", "rpqnn-compromise"):
        assert claim_about(claims, name).verdict is Verdict.FAILS
    assert claim_about(claims, "table-means").verdict is Verdict.FAILS


def test_significance_of_the_rows_agrees_with_scipy(paper):
    """Welch's test from scipy, and Holm's correction written with a running maximum."""
    from scipy import stats

    found = comparisons(paper, "rpqnn", "ann")
    p = {}
    for row in found:
        one, other = paper[*row, "rpqnn"], paper[*row, "ann"]
        test = stats.ttest_ind_from_stats(
            one.mean, one.std, 25, other.mean, other.std, 25, equal_var=False
        )
        assert found[row].t == pytest.approx(test.statistic)
        p[row] = test.pvalue
    values = sorted(p.values())
    steps = np.minimum(1, np.maximum.accumulate(values * np.arange(len(values), 0, -1)))
    for row, test in found.items():
        assert test.p == pytest.approx(steps[values.index(p[row])])


def test_a_mean_is_compared_by_the_standard_error_of_the_difference(paper):
    """Half a printed standard deviation is 1.77 standard errors of two means of 25 runs."""
    key = (600, 5, 10, "qnn")
    theirs = paper[key]
    for share, within in ((0.5, True), (0.8, False), (2.5, False)):
        ours = replace(theirs, mean=theirs.mean + share * theirs.std)
        (cell,) = compare({key: ours}, paper)
        assert cell.z == pytest.approx(share * np.sqrt(25 / 2))
        assert cell.is_within is within
        assert cell.in_printed_std == pytest.approx(share)
        assert cell.is_within_leniently is (share <= 2)
    (cell,) = compare({key: replace(theirs, mean=theirs.mean + 2, std=1.0, runs=16)}, paper)
    assert cell.z == pytest.approx(2 / np.sqrt(1 / 16 + theirs.std**2 / 25))
    # a few runs do not determine their standard deviation: the printed one is used for both
    for runs, std in ((4, 1.0), (1, None)):
        (cell,) = compare({key: replace(theirs, mean=theirs.mean + 2, std=std, runs=runs)}, paper)
        assert cell.z == pytest.approx(2 / (theirs.std * np.sqrt(1 / runs + 1 / 25)))


def test_cells_that_differ_are_named(paper):
    ours = dict(paper)
    ours[600, 5, 10, "qnn"] = replace(paper[600, 5, 10, "qnn"], mean=76.0)
    ours[1200, 20, 15, "rpqnn"] = replace(paper[1200, 20, 15, "rpqnn"], mean=90.0)
    cells = compare(ours, paper)
    named = {table.name: table for table in tables(cells, datasets.digits(), True, ours)}
    assert [row[:4] for row in named["mnist_not_reproduced"].rows] == [
        (600, 5, 10, "qnn"),
        (1200, 20, 15, "rpqnn"),
    ]
    claim = claim_about(claims_of(cells, compared=True), "table-rpqnn-below-ann")
    assert "less accurate in 7 of 8" in claim.ours
    assert "significantly more accurate in 1" in claim.ours
    assert claim.ours.endswith("59 of 60 signs agree, all but 1200/20/15")
    assert claim.verdict is Verdict.FAILS
    rows = {tuple(row[:4]): row for row in named["digits_outperforms"].rows}
    assert rows["RPQNN - ANN", 1200, 20, 15][-1] is False
    assert rows["RPQNN - ANN", 1200, 20, 15][-2] == "better"
    assert rows["RPQNN - ANN", 1200, 20, 20][-1] is True


def test_three_seeds_decide_only_the_means(paper):
    for runs, judged in ((3, False), (ENOUGH, True)):
        ours = {key: replace(sample, runs=runs) for key, sample in paper.items()}
        claims = claims_of(compare(ours, paper), compared=True)
        for claim in claims:
            # those about the printed numbers, and by the printed standard deviations
            if claim.id not in ("table-possible", "table-means"):
                assert (claim.verdict is not Verdict.UNKNOWN) is judged, claim
                assert claim.ours.endswith("not judged: needs --full") is not judged
        assert claim_about(claims, "table-means").verdict is Verdict.CONDITIONALLY
        # printed: 25 runs
        assert claim_about(claims, "rpqnn-almost-the-same").paper_verdict is Verdict.FAILS
    others = claims_of(compare(paper, {}), compared=False)
    assert {claim.verdict for claim in others} == {Verdict.UNKNOWN}


def test_a_cell_has_mean_standard_deviation_best_and_worst():
    rows = [
        Run(Task(600, 10, "linear", seed), Result((a, a, a), 1.0, 1), HERE, "now")
        for seed, a in enumerate((0.1, 0.2, 0.4))
    ]
    cell = cells_of(rows, Recipe(), {})[0]
    assert cell.ours.mean == pytest.approx(70 / 3)
    assert cell.ours.std == pytest.approx(np.std([10, 20, 40], ddof=1))
    assert (cell.ours.best, cell.ours.worst) == (pytest.approx(40), pytest.approx(10))
    assert cell.ours.runs == 3
    assert cell.z is None
    assert cell.is_within is cell.is_within_leniently is None
    single = cells_of(rows[:1], Recipe(), {(600, 5, 10, "ann"): Sample(10, 1, 12, 8, 25)})[0]
    assert single.ours.std is None
    assert single.is_within is single.is_within_leniently is True


def test_smallest_widths_of_the_paper(paper):
    expected = ((600, (10, 10, 10)), (1200, (10, 10, 20)), (6000, (15, 20, 20)))
    for size, widths in (*expected, (60000, (20, 20, 25))):
        for epochs, width in zip((5, 10, 20), widths, strict=True):
            assert smallest_width(paper, size, epochs) == width


def test_parameter_counts_are_those_of_the_networks():
    for model, kind in MODELS.items():
        net = Network.create(784, [("linear", 15, "logistic"), (kind, 10, "logistic")], rng=0)
        assert parameters(15, model) == net.n_parameters


def test_tasks_and_estimate_fit_the_data_and_the_cores():
    data = datasets.digits()
    full = Context(full=True, images=data, jobs=1)
    tasks = mnist.tasks_for(full)
    assert {task.size for task in tasks} == {600, 1200}  # there are no more images
    assert len(tasks) == 2 * 5 * 3 * 60
    quick = mnist.tasks_for(Context(seeds=2, first_seed=7, images=data))
    assert {task.seed for task in quick} == {7, 8}
    wanted = sum(task.cost for task in tasks) * 1e-9 * 20
    assert mnist.estimate(full) == pytest.approx(wanted)
    assert mnist.estimate(replace(full, jobs=2)) == pytest.approx(wanted / 2)


@pytest.mark.slow
def test_the_grid_on_digits_is_labeled_and_not_compared(tmp_path, monkeypatch):
    data = datasets.digits()
    seen = []
    with Store(tmp_path / "runs.sqlite") as store:
        context = Context(seeds=2, images=data, store=store)
        tasks = [task for task in mnist.tasks_for(context) if task.size == 600]
        monkeypatch.setattr(mnist, "tasks_for", lambda context: tasks)
        told = replace(context, progress=lambda *state: seen.append(state))
        outcome = mnist.run(told)
        again = mnist.run(context)
    assert outcome.name == "digits"
    assert "This is not MNIST" in outcome.summary
    assert set(outcome.figures) <= set(outcome.captions)
    assert "digits" in outcome.summary
    assert seen[-1][0] == pytest.approx(seen[-1][1])
    assert again.tables[0].rows == outcome.tables[0].rows
    assert again.facts["steps per second, this run"] is None  # all were stored
    assert {claim.verdict for claim in outcome.claims} == {Verdict.UNKNOWN}
    assert not any(claim.id.startswith("table-") for claim in outcome.claims)
    table = next(table for table in outcome.tables if table.name == "digits_table")
    assert list(table.columns) == COLUMNS
    assert len(table.rows) == 45


@pytest.mark.parametrize(
    "table", sorted((ROOT / "results").glob("mnist*.csv")), ids=lambda p: p.name
)
def test_committed_verdicts_follow_from_the_committed_numbers(table, paper):
    """Each table has 180 cells, and its page states what is computed from them."""
    accuracies = read_mnist_runs() if table.name == "mnist.csv" else None
    ours = read_table(table.read_text().splitlines(), runs=60 if accuracies else 25)
    assert set(ours) == set(paper)
    if accuracies:  # the table follows from the runs
        for key, runs in accuracies.items():
            expected = sample_of([*runs.values()])
            for name in ("mean", "std", "best", "worst", "runs"):
                assert getattr(ours[key], name) == pytest.approx(getattr(expected, name))
        ours = {key: sample_of([*runs.values()]) for key, runs in accuracies.items()}
    cells = compare(ours, paper)
    text = table.with_suffix(".md").read_text()
    assert text.endswith(results_of(cells, accuracies))
    with table.open() as file:
        for cell, row in zip(cells, csv.DictReader(file), strict=True):
            if "z" in row:
                assert float(row["z"]) == pytest.approx(cell.z)
                assert row["within 2 standard errors"] == str(cell.is_within)
                assert float(row["paper mean"]) == cell.paper.mean


def test_the_default_recipe_reproduces_the_table(paper):
    """60 seeds that were not used to find the recipe; results/mnist.csv has their statistics."""
    ours = read_table((ROOT / "results" / "mnist.csv").read_text().splitlines(), runs=60)
    cells = compare(ours, paper)
    assert sum(cell.is_within for cell in cells) == 170
    assert sum(cell.is_within_leniently for cell in cells) >= 171
    negative, agree, _ = signs(cells)
    assert negative == NEGATIVE
    assert set(negative) <= set(agree)
    tests = [test for _, test in rows_below(cells, read_mnist_runs()).values()]
    assert [test.sign for test in tests].count(-1) == 6
    assert all(test.difference < 0 for test in tests)


# ---- paired comparisons --------------------------------------------------------------------------


def paired_table(gain, noise=0.0):
    """Return accuracies of two widths and 12 seeds: the RPQNN has a gain, with its own noise."""
    rng = np.random.default_rng(3)
    table = {}
    for hidden in (10, 15):
        common = rng.normal(0, 5, 12)  # of the images and their order
        own = rng.normal(0, 1, 12)
        table[600, 5, hidden, "ann"] = dict(enumerate(90 + common))
        table[600, 5, hidden, "rpqnn"] = dict(enumerate(90 + gain + common + noise * own))
    return table


def test_blocks_are_compared_in_pairs():
    """What the runs of a seed share cancels: a small difference is found only in pairs."""
    from scipy import stats

    table = paired_table(0.5, noise=0.2)
    (test,) = block_tests(table, "rpqnn", "ann").values()
    means = [
        np.mean([[*table[600, 5, h, model].values()] for h in (10, 15)], axis=0)
        for model in ("rpqnn", "ann")
    ]
    expected = stats.ttest_rel(*means)
    assert (test.t, test.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert test.sign == 1
    unpaired = {key: sample_of([*runs.values()]) for key, runs in table.items()}
    (test,) = block_tests(unpaired, "rpqnn", "ann").values()
    assert test.sign == 0
    (test,) = block_tests(paired_table(-0.5, noise=0.2), "rpqnn", "ann").values()
    assert test.sign == -1


def test_seeds_without_a_partner_do_not_count():
    table = paired_table(0.5, noise=0.2)
    table[600, 5, 10, "ann"][99] = 0.0
    del table[600, 5, 15, "rpqnn"][0]
    (test,) = block_tests(table, "rpqnn", "ann").values()
    del table[600, 5, 10, "ann"][99]
    for key in table:
        table[key].pop(0, None)
    assert block_tests(table, "rpqnn", "ann") == {(600, 5): test}


def test_fewer_cells_are_expected_to_agree_by_the_printed_deviations_alone():
    expected = {runs: expected_within(1000, runs)[0] for runs in (3, 25, 60)}
    assert expected[3] == pytest.approx(
        1000 * (1 - 0.0569), abs=0.5
    )  # t with 24 degrees of freedom
    assert expected[3] < expected[25] < expected[60] < 954.5
