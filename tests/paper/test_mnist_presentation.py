"""The MNIST table in the paper's form, condensed, in sentences, and one row of it."""

from dataclasses import replace

import pytest

from quadric import datasets
from quadric.apps.paper import Context, Store, _mnist as mnist, parse_row
from quadric.apps.paper._mnist_claims import Cell, expected_within, paper_table
from quadric.apps.paper.sweep import Recipe
from tests.support.sweeps import check_presentation

DIGITS = datasets.digits()


def shifted(amount):
    """Return the paper's cells, and as ours the same with 25 runs and means shifted."""
    return [
        Cell(key, replace(sample, mean=sample.mean + amount), sample)
        for key, sample in paper_table().items()
    ]


def test_the_table_has_the_papers_form_and_a_condensed_one():
    cells = shifted(0.0)
    table = mnist._side_by_side(cells)
    assert len(table.rows) == 60
    assert table.rows[0][:6] == (600, 5, 10, 10.08, 10.08, 0.0)
    assert {len(row) for row in table.rows} == {len(table.columns)} == {12}
    summary = mnist._summary(cells, "mnist")
    assert len(summary.rows) == 12
    assert summary.rows[0] == (600, 5, *summary.rows[0][2:8], 15, 15)
    ours, paper = summary.rows[0][2:4]
    assert ours == paper == pytest.approx((10.08 + 11.18 + 12.80 + 16.69 + 22.49) / 5)
    assert {row[-1] for row in mnist._summary(shifted(30.0), "mnist").rows} == {0}


def test_findings_name_the_agreement_and_the_largest_and_smallest_gains():
    agreement, qnn, rpqnn = mnist.findings(shifted(0.0), compared=True)
    expected, _ = expected_within(180, 25)
    assert agreement.startswith("180 of 180 mean accuracies of Table IV agree")
    assert f"With 25 seeds, about {expected:.0f} are expected" in agreement
    assert "a higher mean accuracy than the ANN in 12 of 12 blocks" in qnn
    assert "+62.3 points (paper: +62.3) with 600 images and 5 epochs" in qnn
    assert "-0.5 points (paper: -0.5) with 1200 images and 20 epochs" in rpqnn


@pytest.mark.slow
def test_other_images_have_findings_and_no_comparison(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        outcome = mnist.run(Context(images=DIGITS, seeds=1, store=store))
    check_presentation(outcome)
    assert outcome.headline.ours == "not MNIST"
    assert not any(table.name == mnist.SIDE_BY_SIDE for table in outcome.tables)
    (summary,) = [table for table in outcome.tables if table.name == "digits_summary"]
    assert {row[3] for row in summary.rows} == {row[-1] for row in summary.rows} == {None}


def test_a_row_has_the_cells_of_the_table(tmp_path):
    """It trains no more epochs than it has, and gives the same accuracies as the table."""
    row = parse_row("600/5/10")
    with Store(tmp_path / "runs.sqlite") as store:
        context = Context(images=DIGITS, seeds=2, store=store, row=row)
        short = mnist.run(replace(context, recipe=Recipe(epochs=(5,))))
        assert mnist.run(context).tables == short.tables
    (table,) = short.tables
    assert [line[0] for line in table.rows] == ["ANN", "QNN", "RPQNN"]
    assert not short.claims
    assert len(mnist.tasks_for(replace(context, seeds=None))) == 3 * 25
