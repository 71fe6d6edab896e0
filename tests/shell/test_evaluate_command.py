"""`quadric evaluate`, `train --test`, the options of the solver, and remarks."""

import json
import math

import numpy as np
import polars as pl
import pytest

import quadric
from quadric.apps.shell.tables import Schema
from quadric.apps.shell.tables._evaluation import LinearBaseline
from tests.support.commands import NAMES, assert_error, command, strict_json, write_iris


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Two halves of iris, a third table without the target, and a model of the first half."""
    directory = tmp_path_factory.mktemp("split")
    write_iris(directory / "train.csv", rows=np.arange(0, 150, 2))
    write_iris(directory / "test.csv", rows=np.arange(1, 150, 2))
    pl.read_csv(directory / "test.csv").drop("species").write_csv(directory / "inputs.csv")
    result = command(
        "train", "train.csv", "-t", "species", "--test", "test.csv", "--json", cwd=directory
    )
    assert result.returncode == 0, result.stderr
    (directory / "trained.json").write_text(result.stdout)
    return directory


@pytest.mark.slow
def test_train_with_a_test_table_trains_on_all_rows(split):
    found = json.loads((split / "trained.json").read_text())
    assert found["trained"] == found["held_out"] == 75
    assert "test.csv" in found["how"]
    accuracy = found["evaluation"]["scores"]["accuracy"]
    test = pl.read_csv(split / "test.csv")
    model = quadric.load(split / "train.quadric")
    expected = model.score(test.select(NAMES), test["species"].to_numpy())
    assert accuracy["value"] == found["scores"]["this model"] == pytest.approx(expected)
    assert set(accuracy["baselines"]) == {"most frequent class", "logistic regression"}
    assert np.sum(found["confusion"]) == 75


def test_evaluate_gives_the_scores_of_train(split):
    result = command("evaluate", split / "train.quadric", split / "test.csv", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    trained = json.loads((split / "trained.json").read_text())["evaluation"]
    assert found["confusion"] == trained["confusion"]
    assert found["classes"] == trained["classes"]
    for name, score in found["scores"].items():
        expected = trained["scores"][name]
        assert [score[k] for k in ("value", "low", "high")] == pytest.approx(
            [expected[k] for k in ("value", "low", "high")]
        )
        assert score["baselines"] == pytest.approx(expected["baselines"])
        assert set(score["baselines"]) == {"most frequent class", "logistic regression"}


@pytest.mark.parametrize(
    "linear",
    [
        [],
        {"coef": [[1.0]], "intercept": [0.0]},
        {"coef": [[math.nan] * 4] * 3, "intercept": [0.0] * 3},
        {"coef": [["a"] * 4] * 3, "intercept": [0.0] * 3},
        {"coef": [[10**400] * 4] * 3, "intercept": [0.0] * 3},
    ],
    ids=["list", "shape", "nan", "text", "huge"],
)
def test_a_linear_baseline_that_does_not_fit_the_model_is_refused(linear, split):
    schema = Schema.from_dict(quadric.files.info(split / "train.quadric")["extra"]["table"])
    with pytest.raises(quadric.errors.ModelFileError, match="linear baseline"):
        LinearBaseline.from_dict(linear, schema, 4)


def test_a_large_linear_baseline_is_not_saved():
    assert LinearBaseline(np.ones((1, 10)), np.ones(1), classifies=True).to_dict() is not None
    assert LinearBaseline(np.ones((30, 1000)), np.ones(30), classifies=True).to_dict() is None


def test_evaluate_prints_scores_within_80_columns(split):
    result = command("evaluate", split / "train.quadric", split / "test.csv")
    assert result.returncode == 0, result.stderr
    for part in ("balanced accuracy", "calibration error", "recall", "versicolor", "75 rows"):
        assert part in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_rows_that_cannot_be_scored_are_reported(split, tmp_path):
    lines = (split / "test.csv").read_text().splitlines()
    lines += ["1,2,3,4,", ",,,,setosa", "1,2,3,4,tulip", "1,2,3,4,tulip"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    result = command("evaluate", split / "train.quadric", tmp_path / "a.csv", "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == 75
    assert found["notes"] == [
        "Ignored 1 row without a value for 'species'.",
        "Ignored 1 row for which the model makes no prediction.",
        "Ignored 2 rows of classes that the model does not know and never predicts: 'tulip' (2).",
    ]


def test_tables_that_cannot_be_scored_are_refused(split, tmp_path):
    model = split / "train.quadric"
    assert_error(command("evaluate", model, split / "inputs.csv"), "lacks the target 'species'")
    assert_error(
        command("train", "train.csv", "-t", "species", "--test", "inputs.csv", cwd=split),
        "lacks the target 'species'",
    )
    (tmp_path / "a.csv").write_text("\n".join([",".join([*NAMES, "species"]), "1,2,3,4,tulip"]))
    assert_error(command("evaluate", model, tmp_path / "a.csv"), "no row of")
    (tmp_path / "b.csv").write_text("sepal_width,species\n1,setosa\n")
    assert_error(command("evaluate", model, tmp_path / "b.csv"), "lacks the columns")


@pytest.mark.parametrize(
    "options",
    [["--cv", "3"], ["--stream", "--max-iter", "5"], ["--checkpoint-every", "10"]],
    ids=["cv", "stream", "checkpoint"],
)
def test_options_that_exclude_each_other_are_refused(options, split):
    if "--cv" in options:
        options = [*options, "--test", split / "test.csv"]
    assert command("train", split / "train.csv", "-t", "species", *options).returncode == 2


def regression(path, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    columns = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] ** 2 + X[:, 1] + rng.normal(size=n) / 10}
    pl.DataFrame(columns).write_csv(path)
    return path


def test_evaluate_gives_the_regression_scores_of_train(tmp_path):
    train, test = regression(tmp_path / "train.csv"), regression(tmp_path / "test.csv", seed=1)
    model = tmp_path / "m"
    result = command("train", train, "-t", "y", "--test", test, "-o", model, "--json")
    trained = json.loads(result.stdout)
    assert list(trained["evaluation"]["scores"]) == ["R²", "RMSE", "MAE", "median absolute error"]
    score = trained["evaluation"]["scores"]["R²"]
    assert score["value"] > 0.95
    assert score["baselines"]["linear regression"] < 0.7
    assert abs(score["baselines"]["the mean"]) < 0.1
    found = json.loads(command("evaluate", model, test, "--json").stdout)
    assert found["scores"]["MAE"]["value"] == pytest.approx(trained["mean_absolute_error"])
    assert found["scores"]["R²"]["baselines"] == pytest.approx(score["baselines"])
    pl.read_csv(test).with_columns(y=pl.lit("high")).write_csv(tmp_path / "text.csv")
    assert_error(command("evaluate", model, tmp_path / "text.csv"), "row 1 contains 'high'")
    for value in ("inf", "-1e300"):  # the scores would be infinite or NaN
        (tmp_path / "large.csv").write_text(f"a,b,y\n1,2,3\n1,2,{value}\n")
        result = command("evaluate", model, tmp_path / "large.csv", "--json")
        assert_error(
            result, f"column 'y' contains {value.replace('e', 'e+')} in row 2: numbers must"
        )


@pytest.mark.parametrize("options", [["--test", "constant.csv"], ["--cv", "4"], ["--holdout"]])
def test_a_model_whose_R2_is_not_defined_is_saved(options, tmp_path):
    """R² needs two different targets among the rows that are scored."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.normal(size=(4, 3)), schema=["a", "b", "y"])
    table.write_csv(tmp_path / "few.csv")
    table.with_columns(y=pl.lit(1.5)).write_csv(tmp_path / "constant.csv")
    train = ["train", "few.csv", "-t", "y", "--task", "regression", "--hidden", "none", *options]
    result = command(*train, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = strict_json(result.stdout)
    assert set(found["scores"].values()) == {None}
    assert not [remark for remark in found["remarks"] if "nan" in remark]
    assert found["mean_absolute_error"] > 0
    assert "nan" not in command(*train, cwd=tmp_path).stdout
    shown = command("info", "few.quadric", cwd=tmp_path).stdout
    assert "this model: -" in shown


def rare_class(path, n=400, rare=12, seed=0):
    """Two overlapping classes; the second one is rare."""
    rng = np.random.default_rng(seed)
    y = np.array(["no"] * (n - rare) + ["yes"] * rare)
    x = rng.normal(size=n) + (y == "yes")
    pl.DataFrame({"x": x, "z": rng.normal(size=n), "y": y}).write_csv(path)
    return path


def test_a_class_that_is_never_predicted_is_remarked_and_balanced_weights_help(tmp_path):
    data = rare_class(tmp_path / "a.csv")
    arguments = ["train", data, "-t", "y", "--json", "-o", tmp_path / "m"]
    plain = json.loads(command(*arguments).stdout)
    assert plain["evaluation"]["classes"][1]["predicted"] == 0
    assert any("Never predicted: 'yes' (12 test rows)" in text for text in plain["remarks"])
    assert any("--class-weight balanced" in text for text in plain["remarks"])
    balanced = json.loads(command(*arguments, "--class-weight", "balanced").stdout)
    assert balanced["evaluation"]["classes"][1]["predicted"] > 0
    assert quadric.load(tmp_path / "m")[-1].class_weight == "balanced"


@pytest.mark.parametrize("options", [[], ["--class-weight", "balanced"]], ids=["plain", "balanced"])
def test_balanced_weights_are_not_recommended_to_a_model_that_has_them(options, tmp_path):
    data, model, page = rare_class(tmp_path / "a.csv"), tmp_path / "m", tmp_path / "page.html"
    assert command("train", data, "-t", "y", "-o", model, *options).returncode == 0
    test = tmp_path / "test.csv"
    test.write_text("x,z,y\n" + "-2,0,no\n" * 9 + "-2,0,yes\n")
    remarks = json.loads(command("evaluate", model, test, "--json").stdout)["remarks"]
    assert any("Never predicted: 'yes' (1 test row)." in text for text in remarks)
    assert any("--class-weight" in text for text in remarks) is not bool(options)
    assert command("report", model, test, "-o", page).returncode == 0
    assert ("Try --class-weight" in page.read_text()) is not bool(options)


@pytest.mark.slow
def test_balanced_weights_predict_the_rare_class_in_streaming(tmp_path):
    data = rare_class(tmp_path / "a.csv")
    arguments = ["train", data, "-t", "y", "--json", "-o", tmp_path / "m", "--stream"]
    plain = json.loads(command(*arguments).stdout)
    result = command(*arguments, "--class-weight", "balanced")
    assert result.returncode == 0, result.stderr
    predicted = json.loads(result.stdout)["evaluation"]["classes"][1]["predicted"]
    assert predicted > plain["evaluation"]["classes"][1]["predicted"]


def test_solver_options_reach_the_estimator(split, tmp_path):
    options = ["--alpha", "0.5", "--max-iter", "7", "-o", tmp_path / "m"]
    assert command("train", split / "train.csv", "-t", "species", *options).returncode == 0
    model = quadric.load(tmp_path / "m")[-1]
    assert (model.alpha, model.max_iter) == (0.5, 7)
    assert_error(
        command("train", regression(tmp_path / "r.csv"), "-t", "y", "--class-weight", "balanced"),
        "--class-weight needs a classifier",
    )


def test_noise_is_remarked(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=200) for i in range(5)}
    columns |= {"y": rng.choice(["a", "b"], 200), "t": rng.normal(size=200)}
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    for target, word in (("y", "the most frequent class"), ("t", "the mean")):
        drop = {"y": "t", "t": "y"}[target]
        result = command(
            "train", tmp_path / "a.csv", "-t", target, "--drop", drop, "-o", tmp_path / "m"
        )
        assert result.returncode == 0, result.stderr
        assert "Remark: The model is not clearly better than" in result.stdout
        assert "The inputs may be unrelated to the target." in result.stdout
        assert word in result.stdout


@pytest.mark.slow
def test_duplicates_and_few_rows_are_remarked(split, tmp_path):
    arguments = ["train", split / "train.csv", "-t", "species", "-o", tmp_path / "m"]
    result = command(*arguments, "--test", split / "train.csv")
    assert "Remark: 75 of 75 test rows also occur in the training data" in result.stdout
    assert "Remark: There are only 75 rows, so the scores are uncertain.\n" in result.stdout
    assert "With --cv 5" in command(*arguments, "--holdout").stdout


@pytest.mark.slow
def test_streaming_is_scored_on_a_test_table(split, tmp_path):
    arguments = ["train", "train.csv", "-t", "species", "--test", "test.csv", "--stream"]
    result = command(*arguments, "-o", tmp_path / "m", "--json", cwd=split)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["trained"] == 75
    assert found["scores"]["this model"] > 0.9
    assert "logistic regression" in found["evaluation"]["scores"]["accuracy"]["baselines"]


def test_scores_on_the_training_table_are_said_to_be_too_optimistic(place, tmp_path):
    """Unless the model has not seen its held-out rows, which are then part of the table."""
    data, page = place / "iris.csv", tmp_path / "page.html"
    for options in ([], ["--holdout"]):
        model = tmp_path / "m"
        train = ["train", data, "-t", "species", "--hidden", "none", "--alpha", "1", "-o", model]
        assert command(*train, *options).returncode == 0
        seen = "The model was trained on all rows of a table with this name."
        assert (seen in command("evaluate", model, data).stderr) is not bool(options)
        assert command("report", model, data, "-o", page).returncode == 0
        assert (seen in page.read_text(encoding="utf-8")) is not bool(options)


def test_train_report_explain_and_certify_tell_how_to_get_an_equation(place, tmp_path):
    model, page = tmp_path / "m", tmp_path / "page.html"
    train = ["train", place / "iris.csv", "-t", "species", "-o", model, "--cv", "2"]
    result = command(*train, "--hidden", "4", "--max-iter", "40", "--report", page)
    assert "--equation saves that model instead.\n" in result.stdout
    assert "--equation saves that model instead.</p>" in page.read_text(encoding="utf-8")
    for command_line in (["explain", model], ["certify", model, place / "iris.csv"]):
        said = command(*command_line)
        assert "`quadric train --equation`" in said.stdout + said.stderr
    result = command(*train, "--equation", "--json")
    equation = strict_json(result.stdout)["equation"]
    assert equation["saved"]
    assert equation["metric"] == "accuracy"
    assert 0.9 < equation["value"] <= 1
