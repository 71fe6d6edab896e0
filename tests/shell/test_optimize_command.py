"""`quadric optimize`, `quadric certify --noise` and the contributions of `explain --row`."""

import json

import numpy as np
import polars as pl
import pytest

import quadric
from quadric.certify import flip_probability
from tests.support.commands import assert_error, command


@pytest.fixture(scope="module")
def runs(place):
    """A table of experiments with a maximum inside, and the model trained on it."""
    rng = np.random.default_rng(0)
    T, t, kind = rng.uniform(60, 100, 200), rng.uniform(5, 30, 200), rng.choice(["A", "B"], 200)
    y = 80 - 0.02 * (T - 82) ** 2 - 0.05 * (t - 18) ** 2 + 3 * (kind == "B")
    table = pl.DataFrame({"temperature": T, "time": t, "catalyst": kind, "yield": y})
    table.write_csv(place / "runs.csv")
    result = command(
        "train", "runs.csv", "-t", "yield", "--hidden", "none", "-o", "yield.quadric", cwd=place
    )
    assert result.returncode == 0, result.stderr
    return table


def test_the_optimum_of_the_experiments_is_found(place, runs):
    result = command("optimize", "yield.quadric", "runs.csv", "--json", cwd=place)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["settings"]["temperature"] == pytest.approx(82, abs=1)
    assert found["settings"]["time"] == pytest.approx(18, abs=1)
    assert found["settings"]["catalyst"] == "B"
    assert found["gap"] <= 1e-6
    model = quadric.load(place / "yield.quadric")
    assert found["bound"] >= model.predict(runs.drop("yield")).max()
    text = command("optimize", "yield.quadric", "runs.csv", "--minimize", cwd=place).stdout
    assert text.startswith("Minimum of yield:")


def test_limits_outside_the_table_are_refused(place, runs):
    pl.DataFrame({"input": ["time"], "low": [10], "high": [15]}).write_csv(place / "bounds.csv")
    options = ["--within", "bounds.csv", "--fixed", "catalyst=A", "--json"]
    found = json.loads(command("optimize", "yield.quadric", "runs.csv", *options, cwd=place).stdout)
    assert found["settings"]["time"] == pytest.approx(15)
    assert found["settings"]["catalyst"] == "A"
    far = command("optimize", "yield.quadric", "runs.csv", "--fixed", "time=50", cwd=place)
    assert_error(far, "pass --extrapolate to allow it")
    allowed = ["--fixed", "time=50", "--extrapolate", "--json"]
    found = json.loads(command("optimize", "yield.quadric", "runs.csv", *allowed, cwd=place).stdout)
    assert found["settings"]["time"] == 50
    unknown = command("optimize", "yield.quadric", "runs.csv", "--fixed", "pressure=1", cwd=place)
    assert_error(unknown, "the inputs are temperature, time, catalyst")


def test_noise_adds_probabilities_to_the_radii(place):
    options = ["--noise", "0.1", "-o", "noisy.csv", "--json"]
    result = command("certify", "iris.quadric", "iris.csv", *options, cwd=place)
    assert result.returncode == 0, result.stderr
    found, written = json.loads(result.stdout), pl.read_csv(place / "noisy.csv")
    model, table = quadric.load(place / "iris.quadric"), pl.read_csv(place / "iris.csv")
    X = table.select(model.feature_names_in_.tolist()).cast(pl.Float64)
    expected = flip_probability(model, X, 0.1)
    np.testing.assert_allclose(written["flip_probability"], expected.probability, atol=1e-12)
    assert found["noisy"][0]["row"] == 1 + int(expected.probability.argmax())
    assert found["mean_flip_probability"] == pytest.approx(expected.probability.mean())


def test_the_contributions_of_a_row_add_up(place, runs):
    options = ["yield.quadric", "runs.csv", "--row", "3"]
    found = json.loads(command("explain", *options, "--json", cwd=place).stdout)["contributions"]
    total = sum(one["contribution"] for one in found["inputs"])
    assert found["base"] + total == pytest.approx(found["value"])
    assert {one["input"] for one in found["inputs"]} == {"temperature", "time", "catalyst"}
    assert "Shapley values" in command("explain", *options, cwd=place).stdout
