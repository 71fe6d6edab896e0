"""The committed results of the bilinear MLPs: the page agrees with the tables."""

import csv
from pathlib import Path

import pytest

from quadric.apps.paper._bilinear import NAMES, PUBLISHED, TITLES, PublishedComparison
from quadric.apps.paper._statistics import Sample

RESULTS = Path(__file__).parents[2] / "results"


def committed(name):
    """Return the rows of a committed table."""
    with (RESULTS / "bilinear" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def sample(mean):
    return Sample(mean, None, mean, mean, 1)


def cells_of_the_page():
    """Return the rows of all tables of results/bilinear.md, as texts."""
    lines_of = (RESULTS / "bilinear.md").read_text().splitlines()
    return [tuple(line.strip("| ").split(" | ")) for line in lines_of if line.startswith("| ")]


def test_the_committed_page_agrees_with_the_committed_tables():
    rows, page = committed("bilinear"), cells_of_the_page()
    assert len(rows) in (4, 8)
    published_of = {
        (NAMES[name], TITLES[variant]): one for (name, variant), one in PUBLISHED.items()
    }
    for row in rows:
        published = published_of[row["data"], row["variant"]]
        ours, rank = sample(float(row["ours, %"])), sample(float(row["our rank"]))
        one = PublishedComparison(published, ours, rank)
        assert float(row["difference"]) == pytest.approx(one.difference)
        assert row["within 0.3 points"] == str(one.is_close)
        (shown,) = (
            cells
            for cells in page
            if cells[:2] == (row["data"], row["variant"]) and len(cells) == 12
        )
        assert shown[2] == f"{published.accuracy:.2f}"
        assert shown[4] == f"{ours.mean:.2f}"
        assert shown[7:9] == (f"{one.difference:+.2f}", "yes" if one.is_close else "no")
        assert shown[10] == f"{rank.mean:.1f}"


def test_the_committed_mnist_figures_are_close_to_the_published_ones():
    rows = [row for row in committed("bilinear") if row["data"] == "MNIST"]
    assert [row["within 0.3 points"] for row in rows] == ["True"] * 4
    assert max(abs(float(row["difference"])) for row in rows) < 0.1
    assert max(abs(float(row["difference of ranks"])) for row in rows) < 0.7
    radii = {
        row["variant"]: float(row["median radius"])
        for row in committed("bilinear_radii")
        if row["data"] == "MNIST"
    }
    assert radii["input noise"] > 3.5 * radii["neither"]
    assert radii["weight decay"] < 1.2 * radii["neither"]


def test_committed_radii_and_truncated_accuracies_are_on_the_page():
    page = cells_of_the_page()
    for name, column, style in (
        ("bilinear_radii", "median radius", ".3f"),
        ("bilinear_truncation", "rank 10", ".2f"),
    ):
        rows = committed(name)
        assert len(rows) in (4, 8)
        place = list(rows[0]).index(column)
        for row in rows:
            shown = [cells for cells in page if cells[:2] == (row["data"], row["variant"])]
            assert format(float(row[column]), style) in {
                cells[place] for cells in shown if len(cells) == len(row)
            }
