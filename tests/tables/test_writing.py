"""Text that a spreadsheet would evaluate is quoted in CSV files."""

import csv

import polars as pl
import pytest
from typer.testing import CliRunner

from quadric.apps.shell import app
from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, predict, train
from quadric.apps.shell.tables._prediction import safe_for_spreadsheets
from tests.support.tables import write

FORMULAS = ["=HYPERLINK(0)", "+cmd", "-1+2", "@sum", "-", "plain", "-1", "it's"]

SHOWN = ["'=HYPERLINK(0)", "'+cmd", "'-1+2", "'@sum", "'-", "plain", "-1", "it's"]


@pytest.fixture
def formulas(tmp_path):
    """Write a model whose classes and target look like formulas, and its table."""
    rows = "".join(f"{k}.{i},{i % 3},{FORMULAS[k]}\n" for i in range(8) for k in range(8))
    table = write(tmp_path / "a.csv", "x,z,=target\n" + rows)
    result = CliRunner().invoke(
        app, ["train", str(table), "-t", "=target", "-o", str(tmp_path / "m"), "--test-size", "0"]
    )
    assert result.exit_code == 0, result.output
    return tmp_path


def predicted(place, *more):
    arguments = ["predict", place / "m", place / "a.csv", *more]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_formulas_in_labels_and_names_are_escaped(formulas):
    out = formulas / "out.csv"
    said = predicted(formulas, "-o", out, "--proba").stderr
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["'=target", *(f"probability of {label}" for label in sorted(FORMULAS))]
    found = {row[0] for row in rows[1:]}
    assert found <= set(SHOWN)
    assert {"'=HYPERLINK(0)", "'+cmd", "'-1+2", "'@sum"} <= found
    changed = sum(row[0].startswith("'") for row in rows)
    assert f"in front of {changed} strings that a spreadsheet would evaluate" in said
    assert predicted(formulas).stdout.splitlines()[0] == "'=target"


@pytest.mark.slow
def test_raw_csv_and_parquet_contain_the_labels_unchanged(formulas):
    raw, parquet = formulas / "raw.csv", formulas / "out.parquet"
    said = predicted(formulas, "-o", raw, "--raw-csv").stderr
    predicted(formulas, "-o", parquet)
    rows = [row[0] for row in csv.reader(raw.read_text().splitlines())]
    assert rows[0] == "=target"
    assert set(rows[1:]) <= set(FORMULAS)
    assert "=HYPERLINK(0)" in rows
    assert pl.read_parquet(parquet)["=target"].to_list() == rows[1:]
    assert "formulas" not in said
    assert predicted(formulas, "--raw-csv").stdout.splitlines()[0] == "=target"


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx", "=", "+1+1", "-1e", "@", "--1", "-1 "])
def test_text_that_a_spreadsheet_would_evaluate_is_quoted(text):
    safe, count = safe_for_spreadsheets(pl.DataFrame({"a": [text, None], "b": [1, 2]}))
    assert (safe.to_dict(as_series=False), count) == ({"a": ["'" + text, None], "b": [1, 2]}, 1)


@pytest.mark.parametrize("text", ["", "x=1", "-1", "+1", "-1.5e-3", "-.5", "1-2", " =x", "'=x"])
def test_text_that_a_spreadsheet_shows_unchanged_is_not_quoted(text):
    safe, count = safe_for_spreadsheets(pl.DataFrame({"a": [text]}))
    assert (safe["a"].to_list(), count) == ([text], 0)


def test_numbers_are_never_changed(tmp_path):
    """The model predicts negative numbers."""
    text = "x,y\n" + "".join(f"{i / 7},{-i / 3 - 5}\n" for i in range(60))
    trained = train(open_table(write(tmp_path / "a.csv", text)), ColumnOptions("y"), Settings())
    done = predict(
        trained.model, trained.schema, open_table(tmp_path / "a.csv"), tmp_path / "o.csv"
    )
    assert done.formulas == 0
    assert pl.read_csv(tmp_path / "o.csv")["y"].max() < 0
