"""`quadric train --readable`, and the terms of an equation as a table."""

import json

import numpy as np
import pandas as pd
import pytest

import quadric
from tests.support.commands import command


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("readable")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 4)) * [1, 5, 1, 1] + 20, columns=list("abcd"))
    z = (X.a - 20) * (X.c - 20) + (X.b - 20) / 5
    X["y"] = (3 * z + rng.normal(size=120) / 3).round(3)
    X["kind"] = np.where(z > 0.1, "high", "low")
    X.to_csv(place / "table.csv", index=False)
    trained = command(
        *("train", "table.csv", "-t", "y", "--drop", "kind", "--readable", "--terms", "3"),
        *("--test-size", "0.25", "-o", "model.quadric", "--report", "report.html"),
        cwd=place,
    )
    assert trained.returncode == 0, trained.stderr
    return place, " ".join(trained.stdout.split())  # lines are wrapped


def test_the_equation_and_its_cost_are_printed(table):
    place, said = table
    assert "selected" in said
    assert "(a - " in said
    assert "optimal over all 14 terms" in said
    assert "With 2 terms: " in said or "With 3 terms: " in said
    assert "for the best shape" in said
    model = quadric.load(place / "model.quadric")
    assert {(0, 2), (1,)} <= set(model[-1].terms_)
    assert len(model[-1].terms_) <= 3
    assert model[-1].stability_.by_term[(0, 2)] == 1
    page = (place / "report.html").read_text()
    assert "Selected: on halves of the training rows" in page
    assert "100 %" in page


def test_the_terms_are_written_as_a_table(table):
    place, _ = table
    assert command("explain", "model.quadric", "--csv", "terms.csv", cwd=place).returncode == 0
    rows = pd.read_csv(place / "terms.csv")
    first = rows[(rows.input == "a") & (rows.other_input == "c")].iloc[0]
    assert first.kind == "interaction"
    assert first.frequency == 1
    assert first.coefficient == pytest.approx(3, rel=0.2)
    assert first.unit == "y per a·c"
    printed = command("explain", "model.quadric", "--csv", "-", cwd=place).stdout
    assert printed == (place / "terms.csv").read_text()
    refused = command("explain", "model.quadric", "--csv", "-", "--json", cwd=place)
    assert refused.returncode == 2
    assert "--csv cannot be combined with --json" in refused.stderr


def test_strong_hierarchy_and_classes(table):
    place, _ = table
    result = command(
        *("train", "table.csv", "-t", "kind", "--drop", "y", "--readable", "--hierarchy", "strong"),
        *("--test-size", "0", "-o", "strong.quadric", "--json"),
        cwd=place,
    )
    assert json.loads(result.stdout)["task"] == "classification"
    terms = set(quadric.load(place / "strong.quadric")[-1].terms_)
    assert (0, 2) in terms
    assert all((i,) in terms for term in terms for i in term)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--readable", "--equation"], "--readable cannot be combined with --equation"),
        (["--readable", "--hidden", "3"], "--readable cannot be combined with --equation"),
        (["--terms", "3"], "--terms and --hierarchy need --readable"),
        (["--readable", "--alpha", "0"], "--alpha must be above 0 with --readable"),
    ],
)
def test_options_that_do_not_fit_are_refused(table, options, text):
    place, _ = table
    result = command("train", "table.csv", "-t", "y", *options, cwd=place)
    assert result.returncode == 2
    assert text in result.stderr
