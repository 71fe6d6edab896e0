"""Tables in files: what is read, what is made of it, and what is said when it cannot be."""

import csv
import json

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import quadric
from quadric.cli import app
from quadric.errors import TableError
from quadric.explain import boundary
from quadric.tables import Settings, Wishes, open_table, predict, reading, train
from quadric.tables.columns import features, labels
from quadric.tables.preprocessing import fitted_to_moments
from quadric.tables.profile import profile_batch
from quadric.tables.schema import Schema, decide
from tests.odd_files import KINDS


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
    result = CliRunner().invoke(app, ["predict", str(model), str(data), "-o", str(out), "--json"])
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
def test_a_thousand_odd_files(tmp_path):
    for seed in range(1000):
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
