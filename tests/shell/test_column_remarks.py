"""Remarks about columns on the terminal, in JSON and in the report; missing values and ranges."""

import numpy as np
import polars as pl
import pytest

import quadric
from tests.support.commands import assert_error, command, strict_json


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Houses with a leak, a code for missing values and a code, and a model without layers."""
    directory = tmp_path_factory.mktemp("house")
    rng = np.random.default_rng(0)
    n = 300
    size, age = rng.uniform(60, 250, n).round(1), rng.integers(0, 80, n)
    price = (3000 * size - 900 * age + 60_000 * rng.normal(size=n)).round(0)
    size[:9] = -999
    frame = pl.DataFrame(
        {
            "size": size,
            "age": age,
            "deed": rng.integers(10**11, 10**12, n),
            "tax": (price * 0.035).round(1),
            "price": price,
        }
    )
    frame.write_csv(directory / "a.csv")
    return directory, frame


QUICK = ("--hidden", "none", "--alpha", "1", "--test-size", "0.3")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [(), ("--stream", "--epochs", "1", "--buffer", "37")])
def test_remarks_are_on_the_terminal_in_json_and_in_the_report(house, stream):
    directory, _ = house
    given = ("train", "a.csv", "-t", "price", "-o", "all.quadric")
    given += stream or QUICK
    found = strict_json(command(*given, "--json", cwd=directory).stdout)
    assert {one["kind"]: one["columns"] for one in found["findings"]} == {
        "leak": ["tax"],
        "sentinel": ["size"],
        "code": ["deed"],
    }
    said = " ".join(command(*given, cwd=directory).stdout.split())
    command("report", "all.quadric", "a.csv", "-o", "all.html", cwd=directory)
    page = (directory / "all.html").read_text(encoding="utf-8").replace("&#39;", "'")
    for text in (
        "'tax' (correlation 1.00) alone predicts 'price'; the next best column, 'size', has",
        "-999 in 'size' (3.0% of the rows). If so, use --missing-values size=-999.",
        "'deed' (12 digits). If so, use --drop deed.",
    ):
        assert text in said
        assert text in page
        assert any(text in remark for remark in found["remarks"])


def test_missing_values_are_saved_with_the_model(house):
    directory, frame = house
    result = command(
        *("train", "a.csv", "-t", "price", "--drop", "tax,deed", "-o", "m.quadric", *QUICK),
        *("--missing-values", "size=-999, -77"),
        cwd=directory,
    )
    assert result.returncode == 0, result.stderr
    assert "'size' (9)" in result.stderr
    assert "-999" not in result.stdout
    command("predict", "m.quadric", "a.csv", "-o", "p.csv", cwd=directory)
    found = pl.read_csv(directory / "p.csv")["price"].to_numpy()
    empty = frame.with_columns(pl.when(pl.col("size") != -999).then("size").alias("size"))
    empty.write_csv(directory / "empty.csv")
    command("predict", "m.quadric", "empty.csv", "-o", "q.csv", cwd=directory)
    assert (found == pl.read_csv(directory / "q.csv")["price"].to_numpy()).all()
    model = quadric.load(directory / "m.quadric")
    assert np.allclose(model.predict(frame), found, rtol=1e-12)
    texts = frame.with_columns(pl.col("size").cast(pl.String).replace("-999.0", "-77"))
    assert (model.predict(texts) == model.predict(frame)).all()
    assert (
        model.predict(frame)[0]
        != model.predict(frame.with_columns(pl.lit(-998.0).alias("size")))[0]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sise=-1", "there is no column 'sise'"),
        ("=-1", "--missing-values must be a value such as -999, or COLUMN=-999. Got '=-1'"),
        ("size=", "--missing-values must be a value"),
    ],
)
def test_wrong_missing_values_are_refused(house, text, message):
    directory, _ = house
    wrong = command("train", "a.csv", "-t", "price", "--missing-values", text, cwd=directory)
    assert_error(wrong, message)


def test_missing_values_of_the_target_are_not_used(house, tmp_path):
    _, frame = house
    frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 20).then(-1).otherwise("price").alias("price")
    ).write_csv(tmp_path / "t.csv")
    given = ("train", "t.csv", "-t", "price", "--drop", "tax", *QUICK, "--json")
    found = strict_json(command(*given, "--missing-values", "-1", cwd=tmp_path).stdout)
    assert "Ignored 20 rows without a value for 'price'." in found["notes"]
    said = command("evaluate", "t.quadric", "t.csv", cwd=tmp_path)
    assert "Ignored 20 rows without a value for 'price'." in said.stderr
    assert "280 rows" in said.stdout


def test_rows_outside_the_training_range_are_counted_and_named(house):
    directory, frame = house
    made = command(
        *("train", "a.csv", "-t", "price", "--drop", "tax,deed", "-o", "r.quadric", *QUICK),
        *("--missing-values", "size=-999"),
        cwd=directory,
    )
    assert made.returncode == 0
    new = frame.head(12).with_columns(
        pl.Series("size", [30_000.0, 30_000.0, 10.0, *[100.0] * 8, None]),
        pl.Series("age", [200, *[30] * 11]),
    )
    new.write_csv(directory / "new.csv")
    result = command("predict", "r.quadric", "new.csv", cwd=directory)
    note = " ".join(result.stderr.split())
    high = frame["size"].max()
    low = frame["size"].filter(frame["size"] > 0).min()
    assert (
        "3 rows with inputs outside the range of the training table, where the model extrapolates: "
        f"'size' (3 rows outside {low:.4g} to {high:.4g}), 'age' (1 row outside 0 to 79)"
    ) in note
    kept = ("predict", "r.quadric", "new.csv", "--keep", "age", "-o", "new_p.csv", "--json")
    summary = strict_json(command(*kept, cwd=directory).stdout)
    assert summary["outside_range"] == {"rows": 3, "columns": {"size": 3, "age": 1}}
    written = pl.read_csv(directory / "new_p.csv")
    assert written.columns == ["age", "price", "outside_range"]
    assert written["outside_range"].to_list() == ["size, age", "size", "size", *[None] * 9]
    inside = command("predict", "r.quadric", "a.csv", cwd=directory)
    assert "outside the range" not in inside.stderr
