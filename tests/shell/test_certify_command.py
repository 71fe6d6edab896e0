"""`quadric certify` and `quadric explain --row`."""

import json

import numpy as np
import polars as pl
import pytest

import quadric
from quadric.certify import radius
from quadric.utils._text import rounded_down
from tests.support.commands import NAMES, assert_error, command, strict_json


@pytest.fixture(scope="module")
def loans(place):
    """A table with integers and a category, and the model trained on it."""
    rng = np.random.default_rng(0)
    income, years = rng.integers(10, 60, 300) * 1000, rng.integers(0, 10, 300)
    city = rng.choice(["north", "south"], 300)
    good = income / 1000 + 2 * years + 5 * (city == "north") + rng.normal(size=300) > 45
    table = pl.DataFrame(
        {
            "income": income,
            "years": years,
            "city": city,
            "loan": np.where(good, "approved", "refused"),
        }
    )
    table.write_csv(place / "loans.csv")
    options = ["-t", "loan", "--hidden", "none", "-o", "loans.quadric"]
    result = command("train", "loans.csv", *options, cwd=place)
    assert result.returncode == 0, result.stderr
    return table


def test_radii_are_written_beside_the_predictions(place):
    options = ["-o", "radii.csv", "--min-radius", "0.05", "--keep", "petal_width"]
    result = command("certify", "iris.quadric", "iris.csv", *options, cwd=place)
    assert result.returncode == 0, result.stderr
    written, table = pl.read_csv(place / "radii.csv"), pl.read_csv(place / "iris.csv")
    model = quadric.load(place / "iris.quadric")
    found = radius(model, table.select(model.feature_names_in_.tolist()).cast(pl.Float64))
    assert written.columns == ["petal_width", "species", "radius", "distance", "becomes"]
    np.testing.assert_allclose(written["radius"].to_numpy(), found.radius, rtol=1e-12)
    abstained = found.radius < 0.05
    assert 0 < abstained.sum() < 20
    assert (written["species"].is_null().to_numpy() == abstained).all()
    kept = written.filter(~abstained)["species"].to_list()
    assert kept == found.predicted[~abstained].tolist()
    assert f"Abstained for {abstained.sum()} rows with a radius below 0.05" in result.stdout
    weakest = int(found.radius.argmin())
    assert f"row {weakest + 1}: {found.predicted[weakest]}, radius" in result.stdout


def test_the_summary_as_json(place):
    result = command("certify", "iris.quadric", "iris.csv", "--json", "--fragile", "3", cwd=place)
    found = json.loads(result.stdout)
    curve = found["certified_accuracy"]
    assert curve[0]["radius"] == 0
    shares = [one["share"] for one in curve]
    assert 0.9 < shares[0] <= 1
    assert shares == sorted(shares, reverse=True)
    assert found["exact"]
    assert len(found["fragile"]) == 3
    scaled = command(
        "certify", "iris.quadric", "iris.csv", "--json", "--units", "scaled", cwd=place
    )
    assert json.loads(scaled.stdout)["median_radius"] != found["median_radius"]


def test_the_curve_is_drawn(place):
    result = command("certify", "iris.quadric", "iris.csv", "--plot", "curve.png", cwd=place)
    assert result.returncode == 0, result.stderr
    assert (place / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_fixed_inputs_and_a_table_without_labels(place):
    table = pl.read_csv(place / "iris.csv").drop("species")
    table.write_csv(place / "unlabeled.csv")
    free, held = (
        json.loads(
            command("certify", "iris.quadric", "unlabeled.csv", "--json", *more, cwd=place).stdout
        )
        for more in ([], ["--fixed", "petal_length,petal_width"])
    )
    assert held["median_radius"] > free["median_radius"]
    assert free["certified_share"][0]["share"] == 1
    assert free["accuracy_of_answered"] is None


def test_a_row_with_a_missing_value_is_imputed_and_an_empty_row_has_no_radius(place):
    text = (place / "iris.csv").read_text().splitlines()
    names = text[0].split(",")
    (place / "holes.csv").write_text(
        "\n".join([text[0], "," + text[1].split(",", 1)[1], "," * (len(names) - 1), text[2]])
    )
    result = command("certify", "iris.quadric", "holes.csv", "-o", "holes_out.csv", cwd=place)
    assert result.returncode == 0, result.stderr
    assert "Certified nothing for 1 row without a prediction" in result.stderr
    written = pl.read_csv(place / "holes_out.csv")
    assert written["radius"].is_null().to_list() == [False, True, False]


def test_an_unknown_label_that_begins_with_the_predicted_class_is_not_counted_as_correct(place):
    table = pl.read_csv(place / "iris.csv").filter(pl.col("species") == "versicolor")
    table.with_columns(species=pl.lit("versicolored")).write_csv(place / "unknown.csv")
    result = command("certify", "iris.quadric", "unknown.csv", "--json", cwd=place)
    found = json.loads(result.stdout)
    assert found["certified_accuracy"][0] == {"radius": 0, "share": 0}
    assert found["accuracy_of_answered"] == 0


def test_rows_whose_class_cannot_change_have_no_finite_radius(place):
    fixed = ["certify", "iris.quadric", "iris.csv", "--fixed", ",".join(NAMES)]
    found = strict_json(command(*fixed, "--json", cwd=place).stdout)
    assert found["median_radius"] is None
    assert found["fragile"] == []
    (only,) = found["certified_accuracy"]
    assert only["radius"] == 0
    assert only["share"] > 0.9
    result = command(*fixed, cwd=place)
    assert result.returncode == 0, result.stderr
    assert "nan" not in result.stdout
    assert "Most fragile rows" not in result.stdout


def test_a_row_with_only_categories_is_explained(place):
    letters = pl.DataFrame({"a": ["u", "v"] * 40, "b": ["x", "y", "z", "z"] * 20})
    table = letters.with_columns(good=pl.col("a") == "u")
    table.write_csv(place / "letters.csv")
    options = ["-t", "good", "--hidden", "none", "-o", "letters.quadric"]
    assert command("train", "letters.csv", *options, cwd=place).returncode == 0
    explain = ["explain", "letters.quadric", "letters.csv", "--row", "1"]
    result = command(*explain, cwd=place)
    assert result.returncode == 0, result.stderr
    assert "No change of the numeric inputs changes the class." in result.stdout
    assert strict_json(command(*explain, "--json", cwd=place).stdout)["radius"] is None


def test_wrong_names_and_files_are_one_line_errors(place):
    for arguments, message in [
        (["iris.quadric", "iris.csv", "--fixed", "age"], "fixed must name inputs: sepal_length"),
        (["iris.quadric", "nothing.csv"], "cannot read nothing.csv"),
        (["iris.quadric", "iris.csv", "--keep", "age"], "age"),
    ]:
        assert_error(command("certify", *arguments, "-o", "x.csv", cwd=place), message)
    for options, message in [
        (["--units", "meters"], "--units must be"),
        (["--keep", "petal_width"], "--keep and --raw-csv need"),
        (["--raw-csv"], "--keep and --raw-csv need"),
        (["--plot", "curve.txt"], "--plot must end with .png"),
    ]:
        result = command("certify", "iris.quadric", "iris.csv", *options, cwd=place)
        assert result.returncode == 2
        assert message in result.stderr


def test_a_target_with_the_name_of_a_column_of_results_is_not_overwritten(place):
    table = pl.read_csv(place / "iris.csv").rename({"species": "radius"})
    table.write_csv(place / "named.csv")
    options = ["-t", "radius", "--hidden", "none", "-o", "named.quadric"]
    assert command("train", "named.csv", *options, cwd=place).returncode == 0
    result = command("certify", "named.quadric", "named.csv", "-o", "out.csv", cwd=place)
    assert_error(result, "the target 'radius' has the same name as a column of results")
    assert not (place / "out.csv").exists()
    assert command("certify", "named.quadric", "named.csv", cwd=place).returncode == 0


def test_a_row_is_explained_in_words_with_integers_and_fixed_categories(place, loans):
    model = quadric.load(place / "loans.quadric")
    refused = model.predict(loans.select("income", "years", "city")) == "refused"
    number = int(np.flatnonzero(refused)[0]) + 1
    arguments = ["explain", "loans.quadric", "loans.csv", "--row", str(number)]
    result = command(*arguments, cwd=place)
    assert result.returncode == 0, result.stderr
    assert f"Row {number}: refused (probability" in result.stdout
    assert "approved with " in result.stdout
    (one,) = json.loads(command(*arguments, "--json", cwd=place).stdout)["counterfactuals"]
    changed = loans.row(number - 1, named=True)
    for change in one["changes"]:
        assert change["name"] in ("income", "years")
        assert change["before"] == changed[change["name"]]
        assert change["after"] == round(change["after"])
        changed[change["name"]] = change["after"]
    row = pl.DataFrame([changed]).select(pl.col("income", "years").cast(pl.Float64), pl.col("city"))
    assert model.predict(row)[0] == "approved"
    assert one["lower_bound"] <= one["distance"]


def test_certify_C13_a_row_has_the_same_radius_in_both_commands(place):
    arguments = ["iris.quadric", "iris.csv"]
    certified = json.loads(command("certify", *arguments, "--json", cwd=place).stdout)
    fragile = certified["fragile"][0]
    explain = ["explain", *arguments, "--row", str(fragile["row"])]
    row = json.loads(command(*explain, "--json", cwd=place).stdout)
    assert certified["units"] == "inputs"
    assert row["units"] == "scaled"
    assert row["radius_in_inputs"] == pytest.approx(fragile["radius"], rel=1e-9)
    said = command(*explain, cwd=place).stdout
    scaled, inputs = rounded_down(row["radius"]), rounded_down(row["radius_in_inputs"])
    assert (
        f"No change smaller than {scaled} standard deviations, or {inputs} in the units of the "
        "inputs, changes the class."
    ) in said


def test_the_nearest_of_many_classes_is_shown(place):
    rng = np.random.default_rng(0)
    x, noise = np.repeat(np.arange(13.0), 10), rng.normal(size=130) / 20
    table = pl.DataFrame({"x": x + noise, "k": [f"k{int(value):02}" for value in x]})
    table.write_csv(place / "many.csv")
    options = ["-t", "k", "--hidden", "none", "--alpha", "0.001", "-o", "many.quadric"]
    assert command("train", "many.csv", *options, cwd=place).returncode == 0
    arguments = ["explain", "many.quadric", "many.csv", "--row", "130", "--json"]
    result = command(*arguments, cwd=place)
    assert "Only 10 of the 12 other classes are shown." in result.stderr
    found = json.loads(result.stdout)
    assert found["predicted"] == "k12"
    assert found["counterfactuals"][0]["to"] == "k11"


def test_wrong_rows_are_one_line_errors(place):
    for arguments, message in [
        (["iris.csv", "--row", "151"], "--row must be at most 150"),
        (["--row", "3"], "--row needs a table"),
    ]:
        assert_error(command("explain", "iris.quadric", *arguments, cwd=place), message)
