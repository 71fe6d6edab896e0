"""Predictions for tables: columns matched by name, one output row per row, old files kept."""

import numpy as np
import polars as pl
import pytest

from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, predict, train
from quadric.apps.shell.tables._schema import features
from quadric.errors import TableError
from tests.support.tables import write


@pytest.mark.slow
def test_predictions_follow_names_and_rows(mixed, tmp_path):
    trained = train(open_table(mixed / "mixed.csv"), ColumnOptions("label"), Settings())
    frame = open_table(mixed / "mixed.csv").read()
    X = features(trained.schema, frame)
    shuffled = frame.select(["colour", "z", "x", "flag"]).with_columns(more=pl.lit("a"))
    shuffled = shuffled.with_columns(
        colour=pl.when(pl.int_range(240) == 5).then(pl.lit("mauve")).otherwise("colour")
    )
    shuffled.write_csv(tmp_path / "new.csv")
    out = tmp_path / "out.csv"
    done = predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), out, proba=True)
    found = pl.read_csv(out)
    assert found.columns == ["label", "probability of in", "probability of out"]
    expected = trained.model.predict_proba(X)
    same = np.arange(240) != 5
    assert np.allclose(found["probability of in"].to_numpy()[same], expected[same, 0], atol=1e-12)
    assert found["label"].to_list() == [
        "in" if p > 0.5 else "out" for p in found["probability of in"]
    ]
    assert done.unknown["colour"] == 1
    notes = " ".join(done.notes())
    assert "Columns that the model does not use: 'more'." in notes
    assert "Category not seen in training: 1 value of 'colour'" in notes
    predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), tmp_path / "o.parquet")
    assert pl.read_parquet(tmp_path / "o.parquet")["label"].to_list() == found["label"].to_list()


def test_rows_without_any_value_have_no_prediction(iris, tmp_path):
    trained = train(open_table(iris), ColumnOptions("species"), Settings())
    lines = iris.read_text().splitlines()
    write(tmp_path / "new.csv", "\n".join([*lines[:3], "", ",,,,", *lines[3:5]]) + "\n")
    out = tmp_path / "out.csv"
    done = predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), out)
    assert (done.rows, done.empty) == (6, 2)
    assert out.read_text().splitlines()[1:] == ["setosa"] * 2 + [""] * 2 + ["setosa"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_an_older_output_survives_a_failure(iris, tmp_path, name):
    trained = train(open_table(iris), ColumnOptions("species"), Settings())
    rows = iris.read_text().splitlines()
    bad = [rows[0], *rows[1:] * 200, "x,1,1,1,setosa"]
    write(tmp_path / "new.csv", "\n".join(bad))
    write(tmp_path / name, "precious")
    with pytest.raises(
        TableError, match=r"column 'sepal_length' must contain numbers, but row 30001"
    ):
        predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), tmp_path / name)
    assert (tmp_path / name).read_text() == "precious"
    assert not list(tmp_path.glob(".*.part"))


def test_a_fraction_is_not_scored_as_an_integer_class(tmp_path):
    rows = "".join(f"{x},{int(x > 0)}\n" for x in np.linspace(-1, 1, 40))
    table = open_table(write(tmp_path / "train.csv", f"x,y\n{rows}"))
    trained = train(table, ColumnOptions("y"), Settings(hidden=()))
    new = open_table(write(tmp_path / "new.csv", "x,y\n0.9,1\n0.9,1.5\n"))
    done = predict(trained.model, trained.schema, new, tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv")["y"].to_list() == [1, 1]
    assert done.scores == {}
    assert done.notes() == [
        "The predictions are not scored: column 'y' must contain integers, like the model's "
        "classes, but row 2 contains 1.5."
    ]
