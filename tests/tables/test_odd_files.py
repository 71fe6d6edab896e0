"""Unusual CSV files lead to a correct result or a one-line error."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from quadric.apps.shell import app
from tests.support.odd_files import KINDS, table


def check_odd_file(kind, seed, directory):
    """Check for a correct result or a one-line error."""
    rng = np.random.default_rng(seed)
    odd = KINDS[kind](rng, *table(rng))
    data, model = directory / f"{kind}_{seed}.csv", directory / f"{kind}.quadric"
    data.write_bytes(odd.content)
    arguments = ["train", data, "-t", odd.target, "-o", model, "--json", *odd.options]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    context = f"{kind}, seed {seed}: {result.output}"
    if odd.error is not None:
        assert result.exit_code == 1, context
        assert result.stderr.startswith("error: "), context
        assert result.stderr.count("\n") == 1, context
        assert odd.error in result.stderr, context
        assert not model.exists(), context
        return
    assert result.exit_code == 0, (context, result.exception)
    found = json.loads(result.stdout)
    assert found["rows"] == odd.rows, context
    assert set(found["left_out"]) == odd.left_out, context
    assert len(found["classes"]) == odd.classes, context
    out = directory / "out.csv"
    result = CliRunner().invoke(
        app, ["predict", str(model), str(data), "-o", str(out), "--json", "--raw-csv"]
    )
    assert result.exit_code == 0, (context, result.output)
    assert json.loads(result.stdout)["rows"] == odd.rows, context
    assert set(pl.read_csv(out, infer_schema=False)[:, 0].drop_nulls()) <= {
        str(label) for label in found["classes"]
    }, context
    model.unlink()


@pytest.mark.sample(20)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_odd_files(kind, tmp_path):
    check_odd_file(kind, 0, tmp_path)


@pytest.mark.full
def test_3000_odd_files_give_a_correct_result_or_a_one_line_error(tmp_path):
    for seed in range(3000):
        check_odd_file(list(KINDS)[seed % len(KINDS)], seed, tmp_path)
