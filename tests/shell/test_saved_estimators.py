"""Every command accepts an estimator that was fitted to a DataFrame in Python and saved."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import quadric
from quadric import QuadraticLogisticRegression, QuadraticRegressor
from tests.support.commands import NAMES, assert_error, command, write_iris


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Models of iris and of a table with a category, saved in Python."""
    place = tmp_path_factory.mktemp("saved")
    frame = pd.read_csv(write_iris(place / "iris.csv"))
    X, y = frame[NAMES], frame["species"]
    scaled = make_pipeline(StandardScaler(), QuadraticLogisticRegression())
    quadric.save(scaled.fit(X, y), place / "pandas.quadric", extra={"target": "species"})
    scaled.fit(pl.from_pandas(X), y.to_numpy())
    quadric.save(scaled, place / "polars.quadric")
    quadric.save(scaled.fit(X, y == "setosa"), place / "boolean.quadric")
    quadric.save(scaled.fit(X.to_numpy(), y), place / "array.quadric")
    quadric.save(QuadraticLogisticRegression().fit(X, y), place / "bare.quadric")
    mixed = X.assign(color=np.where(np.arange(150) % 2, "red", "blue"))
    price = mixed["sepal_length"] ** 2 + (mixed["color"] == "red")
    mixed.assign(price=price).to_csv(place / "mixed.csv", index=False)
    encode = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = make_column_transformer((encode, ["color"]), (StandardScaler(), NAMES))
    model = make_pipeline(columns, QuadraticRegressor((), random_state=0))
    with warnings.catch_warnings(action="ignore"):  # it need not converge
        quadric.save(model.fit(mixed, price), place / "mixed.quadric")
    return place


@pytest.mark.parametrize("name", ["pandas", "polars", "bare"])
def test_every_command_accepts_it(name, directory, tmp_path):
    model, data = directory / f"{name}.quadric", directory / "iris.csv"
    for arguments in (
        ["info", model],
        ["predict", model, data, "-o", tmp_path / "out.csv", "--proba"],
        ["evaluate", model, data],
        ["explain", model, data],
        ["plot", model, data, "-o", tmp_path / "a.png"],
    ):
        result = command(*arguments)
        assert result.returncode == 0, (arguments, result.stderr)
    out = pl.read_csv(tmp_path / "out.csv")
    assert out.columns[0] == "species"
    assert np.mean(out["species"].to_numpy() == pl.read_csv(data)["species"].to_numpy()) > 0.95


def test_info_names_columns_and_classes(directory):
    found = json.loads(command("info", directory / "polars.quadric", "--json").stdout)
    assert found["columns"] == NAMES
    assert found["classes"] == ["setosa", "versicolor", "virginica"]


def test_the_target_is_the_stored_name_or_the_only_other_column(directory):
    data = directory / "iris.csv"
    assert command("evaluate", directory / "pandas.quadric", data, "--json").stderr == ""
    found = json.loads(command("evaluate", directory / "polars.quadric", data, "--json").stdout)
    assert found["target"] == "species"
    assert found["scores"]["accuracy"]["value"] > 0.95
    assert found["notes"][0] == "The model file does not name its target; assumed 'species'."
    assert "uses this table" in found["notes"][1]


def test_boolean_classes_are_scored(directory, tmp_path):
    frame = pl.read_csv(directory / "iris.csv")
    truth = (pl.col("species") == "setosa").alias("is setosa")
    frame.with_columns(truth).write_csv(tmp_path / "a.csv")
    model = directory / "boolean.quadric"
    result = command("evaluate", model, tmp_path / "a.csv", "-t", "is setosa", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["confusion"] == [[100, 0], [0, 50]]
    assert_error(command("evaluate", model, tmp_path / "a.csv"), "lacks the target 'class'")


def test_text_columns_are_categories(directory, tmp_path):
    model, data = directory / "mixed.quadric", directory / "mixed.csv"
    found = json.loads(command("evaluate", model, data, "--json").stdout)
    assert found["target"] == "price"
    assert found["scores"]["R²"]["value"] > 0.99
    result = command("predict", model, data, "-o", tmp_path / "out.csv")
    assert result.returncode == 0, result.stderr
    expected = quadric.load(model).predict(pd.read_csv(data))
    np.testing.assert_allclose(pl.read_csv(tmp_path / "out.csv")["price"], expected)


@pytest.mark.parametrize(
    "columns",
    [[4], slice(4, 5), slice("color", "color"), np.arange(5) == 4, ["color"]],
    ids=["index", "slice", "slice of names", "mask", "name"],
)
def test_text_columns_may_be_given_in_every_way(columns, directory, tmp_path):
    data = pd.read_csv(directory / "mixed.csv")
    X, y = data.drop(columns="price"), data["price"] > data["price"].median()
    encode = make_column_transformer((OneHotEncoder(), columns), remainder=StandardScaler())
    model = make_pipeline(encode, QuadraticLogisticRegression()).fit(X, y)
    quadric.save(model, tmp_path / "m.quadric", extra={"target": "expensive"})
    out = tmp_path / "out.csv"
    result = command("predict", tmp_path / "m.quadric", directory / "mixed.csv", "-o", out)
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(pl.read_csv(out)["expensive"], model.predict(X).astype(int))


def test_a_model_of_an_array_has_no_column_names(directory):
    result = command("predict", directory / "array.quadric", directory / "iris.csv")
    assert_error(result, "it was fitted to an array. Fit it to a pandas or Polars DataFrame")
