"""The schema inferred from a table, and the resulting inputs."""

import json

import numpy as np
import polars as pl
import pytest

from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train
from quadric.apps.shell.tables._preprocessing import fitted_to_moments
from quadric.apps.shell.tables._schema import Schema, features, labels
from quadric.errors import TableError
from tests.support.tables import schema_of, write


@pytest.mark.slow
def test_classes_too_large_for_a_float_are_not_merged(tmp_path):
    labels = [2**53 + i % 3 for i in range(60)]
    frame = pl.DataFrame({"x": range(60), "c": labels})
    frame.write_parquet(tmp_path / "a.parquet")
    schema = schema_of(tmp_path / "a.parquet", "c")
    assert schema.classes == tuple(str(2**53 + i) for i in range(3))
    assert schema.class_counts == (20, 20, 20)


@pytest.mark.slow
def test_batches_give_the_same_schema_as_the_whole_table(mixed):
    whole = schema_of(mixed / "mixed.csv", "label")
    for batch in (1, 7, 100):
        parts = schema_of(mixed / "mixed.csv", "label", batch)
        for one, other in zip(whole.columns, parts.columns, strict=True):
            assert one.categories == other.categories
            assert (one.mean, one.std) == pytest.approx((other.mean, other.std), rel=1e-12)
        assert (parts.classes, parts.class_counts) == (whole.classes, whole.class_counts)
    assert Schema.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole


def test_moments_of_numbers_far_from_zero_are_accurate(tmp_path):
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


def test_options_take_precedence_over_the_values(tmp_path):
    rows = "".join(f"{i},{i % 3},{i % 4},{'ab'[i % 2]}\n" for i in range(60))
    path = write(tmp_path / "a.csv", "x,code,w,y\n" + rows)
    schema = schema_of(path, "code", task="regression", drop=["x"], categorical=["w"])
    assert schema.task == "regression"
    assert {column.name: column.kind for column in schema.columns} == {
        "w": "category",
        "y": "category",
    }
    assert schema.left_out == {"x": "dropped on request"}
    with pytest.raises(
        TableError, match=r"regression needs a numeric target, but 'y' contains 'a'"
    ):
        schema_of(path, "y", task="regression")
    with pytest.raises(TableError, match=r"there is no column 'q'. The columns are 'x', 'code'"):
        schema_of(path, "y", drop=["q"])


def test_values_are_converted_and_the_row_of_a_bad_one_is_named(mixed):
    schema = schema_of(mixed / "mixed.csv", "label")
    frame = open_table(mixed / "mixed.csv").read()
    X = features(schema, frame)
    assert X.dtypes == [pl.Float64, pl.Float64, pl.Float64, pl.String]
    assert set(X["flag"]) == {0.0, 1.0}
    y, there = labels(schema, frame)
    assert there.all()
    assert set(y) == {"in", "out"}
    bad = frame.with_columns(x=pl.Series(["1"] * 239 + ["abc"]))
    with pytest.raises(
        TableError, match=r"column 'x' must contain numbers, but row 1240 contains 'abc'"
    ):
        features(schema, bad, start=1000)


def test_preprocessing_from_moments_equals_that_of_the_data(mixed):
    schema = schema_of(mixed / "mixed.csv", "label")
    X = features(schema, open_table(mixed / "mixed.csv").read())
    trained = train(open_table(mixed / "mixed.csv"), ColumnOptions("label"), Settings(test_size=0))
    ours, theirs = fitted_to_moments(schema), trained.model[:-1]
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    A, B = ours.transform(X), theirs.transform(X)
    # scikit-learn imputes the mean before it computes the deviation
    holes = X["x"].is_null().to_numpy()
    assert np.allclose(A[:, 1:], B[:, 1:], atol=1e-12)
    ratio = (A[~holes, 0] / B[~holes, 0]).std()
    assert ratio < 1e-9
    assert np.allclose(A[holes, 0], 0, atol=1e-12)
