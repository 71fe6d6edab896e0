"""Tables in files: what is read, what is made of it, and what is said when it cannot be."""

import csv
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import quadric
from quadric.cli import app
from quadric.errors import TableError
from quadric.explain import boundary
from quadric.tables import Settings, Wishes, open_table, predict, train
from quadric.tables import _parquet as parquet
from quadric.tables import _source as reading
from quadric.tables._features import features, labels
from quadric.tables._preprocessing import fitted_to_moments
from quadric.tables._profile import profile_batch
from quadric.tables._schema import Schema, decide
from quadric.tables._writing import safe_for_spreadsheets
from tests.support.odd_files import KINDS

ROOT = Path(__file__).parents[2]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def schema_of(path, target, batch=10**6, **wishes):
    source, wishes = open_table(path), Wishes(target, **wishes)
    profiles, start = wishes.new_profiles(source.columns), 0
    for frame in source.batches(batch):
        profile_batch(profiles, frame, start)
        start += len(frame)
    return decide(profiles, wishes, source.unnamed)


@pytest.fixture
def mixed(tmp_path):
    """Numbers, a boolean, a category, holes: as CSV and as Parquet."""
    rng = np.random.default_rng(0)
    n = 240
    x, z = rng.normal(5, 2, n), rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n).tolist()
    frame = pl.DataFrame(
        {
            "x": [None if i % 11 == 3 else v for i, v in enumerate(x)],
            "z": z,
            "flag": rng.random(n) < 0.5,
            "colour": [None if i % 17 == 1 else v for i, v in enumerate(colour)],
            "label": np.where((x - 5) ** 2 / 4 + z**2 < 1.2, "in", "out"),
        }
    )
    frame.write_csv(tmp_path / "mixed.csv")
    frame.write_parquet(tmp_path / "mixed.parquet", row_group_size=50)
    return tmp_path


# ---- reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64, 200, 10**6])
def test_blocks_of_a_csv_file_make_the_whole(tmp_path, monkeypatch, size):
    """Wherever a block ends: within quotes, within a line, on a line's end."""
    rows = [[f"{i}", f'a "{i}",\n{"b" * (i % 7)}' if i % 3 else f"{i}é"] for i in range(60)]
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["n", "text"], *rows])
    monkeypatch.setattr(reading, "BLOCK", size)
    source = open_table(tmp_path / "a.csv")
    assert [list(row) for row in source.read().rows()] == rows
    for count, start in ((7, 0), (60, 0), (7, 22), (100, 59)):
        frames = list(source.batches(count, start))
        assert [len(frame) for frame in frames[:-1]] == [count] * (len(frames) - 1)
        assert [list(row) for frame in frames for row in frame.rows()] == rows[start:]
    assert list(source.batches(7, 60)) == []


def test_an_open_quote_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 100)
    monkeypatch.setattr(reading, "LARGEST_BLOCK", 1000)
    path = write(tmp_path / "a.csv", 'a,b\n1,2\n3,"4\n' + "5,6\n" * 1000)
    with pytest.raises(TableError, match=r"a quote that is opened after row 1 is not closed"):
        open_table(path).read()


def test_parquet_is_csv_with_types(mixed):
    by_csv, by_parquet = (schema_of(mixed / f"mixed.{end}", "label") for end in ("csv", "parquet"))
    assert by_csv.names == by_parquet.names == ["x", "z", "flag", "colour"]
    assert [column.kind for column in by_csv.columns] == ["number", "number", "boolean", "category"]
    for one, other in zip(by_csv.columns, by_parquet.columns, strict=True):
        assert (one.kind, one.categories, one.missing) == (
            other.kind, other.categories, other.missing,
        )  # fmt: skip
        assert one.mean == pytest.approx(other.mean, abs=1e-12)
    models = [
        train(open_table(mixed / f"mixed.{end}"), Wishes("label"), Settings())
        for end in ("csv", "parquet")
    ]
    assert models[0].report.scores == models[1].report.scores


def test_parquet_types(tmp_path):
    n = 30
    frame = pl.DataFrame(
        {
            "int": pl.Series(range(n), dtype=pl.Int16),
            "decimal": pl.Series([i / 4 for i in range(n)]).cast(pl.Decimal(10, 2)),
            "cat": pl.Series(["a", "b", "c"] * 10, dtype=pl.Categorical),
            "day": pl.Series(range(n)).cast(pl.Date),
            "list": [[i] for i in range(n)],
            "bytes": [bytes([i]) for i in range(n)],
            "empty": pl.Series([None] * n),
            "label": [True, False] * 15,
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    schema = schema_of(tmp_path / "a.parquet", "label")
    assert {column.name: column.kind for column in schema.columns} == {
        "int": "number", "decimal": "number", "cat": "category",
    }  # fmt: skip
    assert set(schema.left_out) == {"day", "list", "bytes", "empty"}
    assert schema.classes == ("false", "true")


def decided(path, **wishes):
    """What is made of the column 'c' of a file as an input, and as the target."""
    found = []
    try:
        schema = schema_of(path, "y", **wishes)
        columns = {column.name: column for column in schema.columns}
        column = columns.get("c")
        found.append(schema.left_out.get("c") if column is None else
                     (column.kind, column.categories, column.missing))  # fmt: skip
        frame = features(schema, open_table(path).read())
        found.append(frame["c"].to_list() if column is not None else None)
    except TableError as error:
        found.append(str(error))
    try:
        schema = schema_of(path, "c")
        found.append((schema.task, schema.classes, schema.class_counts))
        found.append(labels(schema, open_table(path).read())[0].tolist())
    except TableError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize(
    ("values", "wishes"),
    [
        ([dt.time(i % 24, 30) for i in range(60)], {}),
        ([dt.time(i % 4, 30, 7, 500_000 * (i % 2)) for i in range(60)], {}),
        ([dt.time(i // 60, i % 60) for i in range(600)], {}),
        ([dt.date(2024, 1, 1 + i % 28) for i in range(60)], {}),
        ([dt.datetime(2024, 1, 1 + i % 28, 13) for i in range(60)], {}),
        ([None if i % 9 == 2 else dt.date(2024, 1, 1 + i % 5) for i in range(60)], {}),
        ([i % 3 for i in range(60)], {"categorical": ["c"]}),
        ([2**53 + i % 3 for i in range(60)], {"categorical": ["c"]}),
        ([2**53 + i % 3 for i in range(60)], {}),
        (pl.Series([2**64 - 1 - i % 3 for i in range(60)], dtype=pl.UInt64), {}),
        (pl.Series([i % 5 / 4 for i in range(60)]).cast(pl.Decimal(10, 2)),
         {"categorical": ["c"]}),
        (pl.Series([i % 5 for i in range(60)]).cast(pl.Decimal(20, 0)), {}),
        ([i % 3 == 0 for i in range(60)], {"categorical": ["c"]}),
        ([i % 3 == 0 for i in range(60)], {}),
        (pl.Series(["a", "b", None] * 20, dtype=pl.Categorical), {}),
        (["NA", "b", "c "] * 20, {}),
        ([1.5, float("nan"), 2.25] * 20, {"categorical": ["c"]}),
    ],
)  # fmt: skip
def test_a_column_is_the_same_in_csv_and_parquet(tmp_path, values, wishes):
    """Its kind, its categories and classes, why it is left out, and what each row has."""
    series = values if isinstance(values, pl.Series) else pl.Series(values)
    n = len(series)
    frame = pl.DataFrame({"x": range(n), "c": series, "y": ["a", "b"] * (n // 2)})
    frame.write_csv(
        tmp_path / "a.csv", time_format="%H:%M:%S%.f", datetime_format="%Y-%m-%d %H:%M:%S%.6f"
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert decided(tmp_path / "a.csv", **wishes) == decided(tmp_path / "a.parquet", **wishes)


def test_classes_too_large_for_a_float_are_not_merged(tmp_path):
    labels = [2**53 + i % 3 for i in range(60)]
    frame = pl.DataFrame({"x": range(60), "c": labels})
    frame.write_parquet(tmp_path / "a.parquet")
    schema = schema_of(tmp_path / "a.parquet", "c")
    assert schema.classes == tuple(str(2**53 + i) for i in range(3))
    assert schema.class_counts == (20, 20, 20)


# ---- what the columns are ------------------------------------------------------------------


def test_batches_give_the_schema_of_the_whole(mixed):
    whole = schema_of(mixed / "mixed.csv", "label")
    for batch in (1, 7, 100):
        parts = schema_of(mixed / "mixed.csv", "label", batch)
        for one, other in zip(whole.columns, parts.columns, strict=True):
            assert one.categories == other.categories
            assert (one.mean, one.std) == pytest.approx((other.mean, other.std), rel=1e-12)
        assert (parts.classes, parts.class_counts) == (whole.classes, whole.class_counts)
    assert Schema.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole


def test_moments_of_numbers_far_from_zero(tmp_path):
    values = 1e9 + np.random.default_rng(0).normal(size=3000)
    text = "x,y\n" + "".join(f"{v!r},{i % 2}\n" for i, v in enumerate(values.tolist()))
    (column,) = schema_of(write(tmp_path / "a.csv", text), "y", 100).columns
    assert column.mean == pytest.approx(values.mean(), rel=1e-14)
    assert column.std == pytest.approx(values.std(), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["1", "2", "3"], "classification", (1, 2, 3)),
        (["1.0", "2.0"], "classification", (1, 2)),
        (["0.5", "1.5", "2"], "regression", ()),
        ([str(i) for i in range(30)], "regression", ()),
        (["yes", "no"], "classification", ("no", "yes")),
        (["true", "false"], "classification", ("false", "true")),
        (["1", "2", "x"], "classification", ("1", "2", "x")),
    ],
)
def test_the_task_follows_from_the_target(tmp_path, values, task, classes):
    rows = "".join(f"{i},{values[i % len(values)]}\n" for i in range(60))
    schema = schema_of(write(tmp_path / "a.csv", "x,y\n" + rows), "y")
    assert (schema.task, schema.classes) == (task, classes)


def test_wishes(tmp_path):
    rows = "".join(f"{i},{i % 3},{i % 4},{'ab'[i % 2]}\n" for i in range(60))
    path = write(tmp_path / "a.csv", "x,code,w,y\n" + rows)
    schema = schema_of(path, "code", task="regression", drop=["x"], categorical=["w"])
    assert schema.task == "regression"
    assert {column.name: column.kind for column in schema.columns} == {
        "w": "category", "y": "category",
    }  # fmt: skip
    assert schema.left_out == {"x": "as you asked"}
    with pytest.raises(TableError, match=r"regression needs a target of numbers; 'y' holds 'a'"):
        schema_of(path, "y", task="regression")
    with pytest.raises(TableError, match=r"there is no column 'q'. The columns are 'x', 'code'"):
        schema_of(path, "y", drop=["q"])


def test_values_are_converted_and_the_place_of_a_bad_one_is_named(mixed, tmp_path):
    schema = schema_of(mixed / "mixed.csv", "label")
    frame = open_table(mixed / "mixed.csv").read()
    X = features(schema, frame)
    assert X.dtypes == [pl.Float64, pl.Float64, pl.Float64, pl.String]
    assert set(X["flag"]) == {0.0, 1.0}
    y, there = labels(schema, frame)
    assert there.all()
    assert set(y) == {"in", "out"}
    bad = frame.with_columns(x=pl.Series(["1"] * 239 + ["abc"]))
    with pytest.raises(TableError, match=r"column 'x' must hold numbers; row 1240 has 'abc'"):
        features(schema, bad, start=1000)


def test_preprocessing_from_moments_is_that_of_the_data(mixed):
    schema = schema_of(mixed / "mixed.csv", "label")
    X = features(schema, open_table(mixed / "mixed.csv").read())
    trained = train(open_table(mixed / "mixed.csv"), Wishes("label"), Settings(test_size=0))
    ours, theirs = fitted_to_moments(schema), trained.model[:-1]
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    A, B = ours.transform(X), theirs.transform(X)
    # the mean is put where numbers are missing before scikit-learn takes the deviation
    holes = X["x"].is_null().to_numpy()
    assert np.allclose(A[:, 1:], B[:, 1:], atol=1e-12)
    ratio = (A[~holes, 0] / B[~holes, 0]).std()
    assert ratio < 1e-9
    assert np.allclose(A[holes, 0], 0, atol=1e-12)


# ---- training and predicting ---------------------------------------------------------------


@pytest.fixture
def iris(tmp_path):
    data = load_iris()
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    frame = pl.DataFrame(data.data, schema=names)
    frame.with_columns(species=pl.Series(data.target_names[data.target])).write_csv(
        tmp_path / "iris.csv"
    )
    return tmp_path / "iris.csv"


def test_training_on_iris(iris):
    trained = train(open_table(iris), Wishes("species"), Settings(cv=5))
    scores = trained.report.scores
    assert scores["this model"] > 0.94
    assert scores["most frequent class"] == pytest.approx(1 / 3)
    assert scores["logistic regression"] > 0.9
    assert trained.report.confusion.counts.sum() == 150
    assert trained.report.confusion.score == pytest.approx(scores["this model"])
    tie = boundary(trained.model, "versicolor", "virginica")  # in the user's units: centimetres
    X = load_iris().data[50:]
    right = (tie.value(X) > 0) == (np.arange(100) < 50)
    assert right.mean() > 0.95


def test_held_out_rows_are_not_seen(iris):
    trained = train(open_table(iris), Wishes("species"), Settings(test_size=0.4))
    report = trained.report
    assert (report.trained, report.held_out) == (90, 60)
    assert report.confusion.counts.sum(axis=1).tolist() == [20, 20, 20]
    assert trained.model[1].n_samples_seen_ == 90
    again = train(open_table(iris), Wishes("species"), Settings(test_size=0.4))
    assert again.report.scores == report.scores
    other = train(open_table(iris), Wishes("species"), Settings(test_size=0.4, seed=1))
    assert other.report.confusion.counts.tolist() != report.confusion.counts.tolist()


def test_regression(iris):
    trained = train(open_table(iris), Wishes("petal_width"), Settings(cv=5))
    scores = trained.report.scores
    assert scores["this model"] > 0.9
    assert scores["the mean"] < 0.05
    assert trained.report.error < 0.2


def test_predictions_follow_names_and_rows(mixed, tmp_path):
    trained = train(open_table(mixed / "mixed.csv"), Wishes("label"), Settings())
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
    assert done.counts.unknown["colour"] == 1
    notes = " ".join(done.notes("label"))
    assert "Columns that the model does not use: 'more'." in notes
    assert "1 values of 'colour' were not seen in training" in notes
    predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), tmp_path / "o.parquet")
    assert pl.read_parquet(tmp_path / "o.parquet")["label"].to_list() == found["label"].to_list()


def test_rows_without_any_value_have_no_prediction(iris, tmp_path):
    trained = train(open_table(iris), Wishes("species"), Settings())
    lines = iris.read_text().splitlines()
    write(tmp_path / "new.csv", "\n".join([*lines[:3], "", ",,,,", *lines[3:5]]) + "\n")
    out = tmp_path / "out.csv"
    done = predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), out)
    assert (done.rows, done.empty) == (6, 2)
    assert (
        out.read_text().splitlines()[1:] == ["setosa"] * 2 + ['""'] * 0 + ["", ""] + ["setosa"] * 2
    )


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_an_older_output_survives_a_failure(iris, tmp_path, name):
    trained = train(open_table(iris), Wishes("species"), Settings())
    rows = iris.read_text().splitlines()
    bad = [rows[0], *rows[1:] * 200, "x,1,1,1,setosa"]
    write(tmp_path / "new.csv", "\n".join(bad))
    write(tmp_path / name, "precious")
    with pytest.raises(TableError, match=r"column 'sepal_length' must hold numbers; row 30001"):
        predict(trained.model, trained.schema, open_table(tmp_path / "new.csv"), tmp_path / name)
    assert (tmp_path / name).read_text() == "precious"
    assert not list(tmp_path.glob(".*.part"))


# ---- spreadsheets --------------------------------------------------------------------------


FORMULAS = ["=HYPERLINK(0)", "+cmd", "-1+2", "@sum", "-", "plain", "-1", "it's"]
SHOWN = ["'=HYPERLINK(0)", "'+cmd", "'-1+2", "'@sum", "'-", "plain", "-1", "it's"]


@pytest.fixture
def formulas(tmp_path):
    """A model whose classes and target look like formulas, and its table."""
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


def test_formulas_in_labels_and_names_are_shown_and_not_computed(formulas):
    out = formulas / "out.csv"
    said = predicted(formulas, "-o", out, "--proba").stderr
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["'=target", *(f"probability of {label}" for label in sorted(FORMULAS))]
    found = {row[0] for row in rows[1:]}
    assert found <= set(SHOWN)
    assert {"'=HYPERLINK(0)", "'+cmd", "'-1+2", "'@sum"} <= found
    changed = sum(row[0].startswith("'") for row in rows)
    assert f"note: {changed} texts that a spreadsheet would take for formulas" in said
    assert predicted(formulas).stdout.splitlines()[0] == "'=target"


def test_raw_csv_and_parquet_have_the_labels_as_they_are(formulas):
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
def test_what_a_spreadsheet_would_compute(text):
    safe, count = safe_for_spreadsheets(pl.Series([text, None]))
    assert (safe.to_list(), count) == (["'" + text, None], 1)


@pytest.mark.parametrize("text", ["", "x=1", "-1", "+1", "-1.5e-3", "-.5", "1-2", " =x", "'=x"])
def test_what_a_spreadsheet_shows_as_it_is(text):
    assert safe_for_spreadsheets(pl.Series([text]))[0].to_list() == [text]


def test_numbers_are_never_changed(tmp_path):
    """A model that predicts negative numbers."""
    text = "x,y\n" + "".join(f"{i / 7},{-i / 3 - 5}\n" for i in range(60))
    trained = train(open_table(write(tmp_path / "a.csv", text)), Wishes("y"), Settings())
    done = predict(
        trained.model, trained.schema, open_table(tmp_path / "a.csv"), tmp_path / "o.csv"
    )
    assert done.formulas == 0
    assert pl.read_csv(tmp_path / "o.csv")["y"].max() < 0


# ---- damaged Parquet files -----------------------------------------------------------------


def damage_parquet(count, seed=0):
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.damaged_parquet", str(count), str(seed)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout)
    assert outcome["refused"] + outcome["same"] + outcome["another table"] == count
    return outcome


def test_damaged_parquet_files():
    damage_parquet(12)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("aborts", "takes more memory than there is"), ("panics", "called `Option::unwrap()`")],
)
def test_a_parquet_file_that_ends_its_reader(name, reason, tmp_path):
    """A column of three texts with one bit flipped: Polars 2.1 aborts, or panics."""
    table = ROOT / "tests" / "fixtures" / f"{name}.parquet"
    command = [sys.executable, "-m", "quadric", "train", table, "-t", "x", "-o", tmp_path / "m"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith(f"error: {table} is a damaged Parquet file")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.full
def test_2500_damaged_parquet_files(capsys):
    outcome = damage_parquet(2500)
    with capsys.disabled():
        print(f"\n2500 damaged Parquet files: {json.dumps(outcome)}")
    assert outcome["refused"] > 1000


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.abort()", "is a damaged Parquet file, or takes more memory than there is"),
        ("import sys; sys.exit(3)", "or takes more memory than there is"),
        ("import nowhere", "No module named 'nowhere'"),
        ("print('{\"error\": \"a\\\\u001b[31m\\\\nb\"}')", "damaged Parquet file: a?[31m."),
        ("import sys; print('{\"columns\": [\"x\"], \"rows\": 2}'); "
         "print('thread 7 panicked at x.rs', file=sys.stderr)", "its reader panicked"),
        ("print('{\"columns\": [], \"rows\": 0}')", "has no columns"),
        ("print('{\"columns\": [\"x\", \"y\"], \"rows\": 31}')", "30 of 31 rows could be read"),
    ],
)  # fmt: skip
def test_whatever_becomes_of_the_process_that_reads_first(tmp_path, monkeypatch, script, words):
    pl.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, "PROBE", write(tmp_path / "probe.py", script))
    result = CliRunner().invoke(
        app, ["train", str(tmp_path / "a.parquet"), "-t", "y", "-o", str(tmp_path / "m")]
    )
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_a_panic_in_this_process_is_one_line_too(tmp_path, monkeypatch):
    def panic(*_, **__):
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    pl.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).write_parquet(tmp_path / "a.parquet")
    source = open_table(tmp_path / "a.parquet")
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", panic)
    with pytest.raises(TableError, match=r"damaged Parquet file: called `Option::unwrap\(\)`"):
        source.read()


def test_a_parquet_file_without_columns(tmp_path):
    pl.DataFrame().write_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match="has no columns"):
        open_table(tmp_path / "a.parquet")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_no_table(tmp_path):
    """It can be read once only: rows would be lost."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="it is a device or a pipe, not a file"):
        open_table(tmp_path / "pipe")


# ---- odd files -----------------------------------------------------------------------------


def check_odd_file(make, seed, directory):
    """A right result, or one clear line."""
    odd = make(np.random.default_rng(seed))
    data, model = directory / f"{make.__name__}_{seed}.csv", directory / f"{make.__name__}.quadric"
    data.write_bytes(odd.content)
    arguments = ["train", data, "-t", odd.target, "-o", model, "--json", *odd.options]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    context = f"{make.__name__}, seed {seed}: {result.output}"
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


@pytest.mark.parametrize("make", KINDS)
def test_odd_files(make, tmp_path):
    check_odd_file(make, 0, tmp_path)


@pytest.mark.full
def test_3000_odd_files(tmp_path):
    for seed in range(3000):
        check_odd_file(KINDS[seed % len(KINDS)], seed, tmp_path)


def test_ten_thousand_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = [",".join(row) for row in rng.normal(size=(30, 10_000)).round(3).astype(str)]
    header = ",".join(f"c{i}" for i in range(10_000))
    body = "".join(f"{row},{'ab'[i % 2]}\n" for i, row in enumerate(rows))
    path = write(tmp_path / "wide.csv", f"{header},y\n{body}")
    source = open_table(path)
    quadric.set_config(max_memory=2**30)
    try:
        with pytest.raises(TableError, match=r"Use --kind reduced, --hidden 30, or fewer columns"):
            train(source, Wishes("y"), Settings())
    finally:
        quadric.set_config(max_memory=None)
    trained = train(source, Wishes("y"), Settings(kind="reduced"))
    assert len(trained.schema.columns) == 10_000
    assert trained.report.held_out == 8
