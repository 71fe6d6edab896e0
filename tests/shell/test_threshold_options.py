"""`predict --threshold` and `--cost` of train and evaluate."""

import numpy as np
import polars as pl
import pytest

from tests.support.commands import assert_error, command, strict_json


@pytest.fixture(scope="module")
def fraud(tmp_path_factory):
    """A table with a rare class, and a model without hidden layers."""
    directory = tmp_path_factory.mktemp("fraud")
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 600))
    rare = rng.random(600) < 1 / (1 + np.exp(3.5 - 2 * x))
    frame = pl.DataFrame({"x": x, "z": z, "state": np.where(rare, "fraud", "ok")})
    frame.write_csv(directory / "a.csv")
    result = command(
        *("train", "a.csv", "-t", "state", "--hidden", "none", "--alpha", "1", "--json"),
        *("--cost", "fraud=20", "--report", "a.html"),
        cwd=directory,
    )
    assert result.returncode == 0, result.stderr
    return directory, strict_json(result.stdout), frame


def test_train_and_evaluate_report_the_cheapest_threshold(fraud):
    directory, found, _ = fraud
    threshold = found["threshold"]
    assert (threshold["label"], threshold["costs"]) == ("fraud", {"fraud": 20.0, "ok": 1.0})
    assert 0 < threshold["value"] < 0.2
    assert threshold["cost"] < min(threshold["cost_of_half"], threshold["cost_of_constant"])
    assert f"quadric predict --threshold fraud={threshold['value']}" in (
        directory / "a.html"
    ).read_text(encoding="utf-8")
    said = command("evaluate", "a.quadric", "a.csv", "--cost", "fraud=20", cwd=directory)
    assert (
        "Cheapest threshold if missing a row of 'fraud' costs 20 and of 'ok' costs 1: predict"
        in said.stdout
    )
    assert "average" in said.stdout
    plain = strict_json(command("evaluate", "a.quadric", "a.csv", "--json", cwd=directory).stdout)
    assert plain["threshold"] is None
    assert 0.2 < plain["scores"]["average precision"]["value"] < 1


def test_predict_uses_the_threshold(fraud):
    directory, _, frame = fraud
    result = command(
        *("predict", "a.quadric", "a.csv", "-o", "p.csv", "--proba", "--threshold", "fraud=0.1"),
        cwd=directory,
    )
    assert result.returncode == 0, result.stderr
    assert "Predicted 'fraud' where its probability is at least 0.1" in result.stderr
    found = pl.read_csv(directory / "p.csv")
    expected = np.where(found["probability of fraud"].to_numpy() >= 0.1, "fraud", "ok")
    assert found["state"].to_list() == expected.tolist()
    assert 60 < (expected == "fraud").sum() < 400
    accuracy = (expected == frame["state"].to_numpy()).mean()
    assert f"accuracy {accuracy:.3f}" in result.stderr
    second = ("predict", "a.quadric", "a.csv", "-o", "q.csv", "--threshold", "0.9")
    summary = strict_json(command(*second, "--json", cwd=directory).stdout)
    assert summary["threshold"]["label"] == "ok"
    assert (
        pl.read_csv(directory / "q.csv")["state"].to_list()
        == np.where(found["probability of ok"].to_numpy() >= 0.9, "ok", "fraud").tolist()
    )


def test_wrong_options_are_refused_before_training(fraud, tmp_path):
    directory, _, _ = fraud
    wrong = command("predict", "a.quadric", "a.csv", "--threshold", "yes=0.1", cwd=directory)
    assert_error(wrong, "--threshold names 'yes', but the classes are 'fraud', 'ok'")
    result = command(
        *("train", "a.csv", "-t", "state", "--cost", "yes=2", "-o", tmp_path / "b.quadric"),
        cwd=directory,
    )
    assert_error(result, "--cost names 'yes', but the classes are 'fraud', 'ok'")
    assert not (tmp_path / "b.quadric").exists()
    result = command(
        *("train", "a.csv", "-t", "state", "--cost", "ok=2", "--test-size", "0"), cwd=directory
    )
    assert "--cost needs scores" in " ".join(result.stderr.split())
