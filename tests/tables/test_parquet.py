"""Damaged Parquet files lead to a one-line error, even if they crash a process."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from quadric.apps.shell import app
from quadric.apps.shell.tables import _source as parquet, open_table
from quadric.errors import TableError
from tests.support.commands import process
from tests.support.processes import answer_of
from tests.support.tables import write

ROOT = Path(__file__).parents[2]


def damage_parquet(count, seed=0):
    outcome = answer_of("damaged_files.parquet", count, seed)
    assert outcome["refused"] + outcome["same"] + outcome["another table"] == count
    return outcome


@pytest.mark.slow
def test_damaged_parquet_files():
    damage_parquet(12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [("aborts", "needs more memory than is available"), ("panics", "called `Option::unwrap()`")],
)
def test_a_parquet_file_that_crashes_its_reader_is_a_one_line_error(name, reason, tmp_path):
    """With one bit flipped in a column of three strings, Polars 2.1 aborts or panics."""
    table = ROOT / "tests" / "fixtures" / f"{name}.parquet"
    result = process("train", table, "-t", "x", "-o", tmp_path / "m")
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith(f"error: {table} is a damaged Parquet file")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.full
def test_2500_damaged_parquet_files_are_read_or_refused(capsys):
    outcome = damage_parquet(2500)
    with capsys.disabled():
        print(f"\n2500 damaged Parquet files: {json.dumps(outcome)}")
    assert outcome["refused"] > 1000


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.abort()", "is a damaged Parquet file, or needs more memory"),
        ("import sys; sys.exit(3)", "or needs more memory than is available"),
        ("import nowhere", "No module named 'nowhere'"),
        ('print(\'{"error": "a\\\\u001b[31m\\\\nb"}\')', "damaged Parquet file: a?[31m."),
        (
            'import sys; print(\'{"columns": ["x"], "rows": 2}\'); '
            "print('thread 7 panicked at x.rs', file=sys.stderr)",
            "its reader panicked",
        ),
        ('print(\'{"columns": [], "rows": 0}\')', "has no columns"),
        ('print(\'{"columns": ["x", "y"], "rows": 31}\')', "only 30 of 31 rows can be read"),
    ],
)
def test_failures_of_the_process_that_reads_first_are_one_line_errors(
    tmp_path, monkeypatch, script, words
):
    pl.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, "PROBE", write(tmp_path / "probe.py", script))
    result = CliRunner().invoke(
        app, ["train", str(tmp_path / "a.parquet"), "-t", "y", "-o", str(tmp_path / "m")]
    )
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_a_panic_in_this_process_is_also_a_one_line_error(tmp_path, monkeypatch):
    def panic(*_, **__):
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    pl.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).write_parquet(tmp_path / "a.parquet")
    source = open_table(tmp_path / "a.parquet")
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", panic)
    with pytest.raises(TableError, match=r"damaged Parquet file: called `Option::unwrap\(\)`"):
        source.read()


@pytest.mark.slow
def test_a_parquet_file_without_columns_is_refused(tmp_path):
    pl.DataFrame().write_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match="has no columns"):
        open_table(tmp_path / "a.parquet")
