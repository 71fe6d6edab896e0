"""CSV and Parquet files are read completely and in the same way."""

import csv
import datetime as dt
import os

import polars as pl
import pytest

from quadric.apps.shell.tables import (
    ColumnOptions,
    Settings,
    _csv_file as reading,
    open_table,
    train,
)
from quadric.apps.shell.tables._schema import features, labels
from quadric.errors import TableError
from tests.support.tables import schema_of, schema_of_source, write


@pytest.mark.parametrize("size", [64, 200, 10**6])
def test_blocks_of_a_csv_file_contain_every_row(tmp_path, monkeypatch, size):
    """A block may end within quotes, within a line or at the end of a line."""
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


def test_an_unclosed_quote_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 100)
    monkeypatch.setattr(reading, "LARGEST_BLOCK", 1000)
    path = write(tmp_path / "a.csv", 'a,b\n1,2\n3,"4\n' + "5,6\n" * 1000)
    with pytest.raises(TableError, match=r"has an unclosed quote after row 1"):
        open_table(path).read()


@pytest.mark.slow
def test_parquet_and_csv_give_the_same_schema_and_scores(mixed):
    by_csv, by_parquet = (schema_of(mixed / f"mixed.{end}", "label") for end in ("csv", "parquet"))
    assert by_csv.names == by_parquet.names == ["x", "z", "flag", "colour"]
    assert [column.kind for column in by_csv.columns] == ["number", "number", "boolean", "category"]
    for one, other in zip(by_csv.columns, by_parquet.columns, strict=True):
        assert (one.kind, one.categories, one.missing) == (
            other.kind,
            other.categories,
            other.missing,
        )
        assert one.mean == pytest.approx(other.mean, abs=1e-12)
    models = [
        train(open_table(mixed / f"mixed.{end}"), ColumnOptions("label"), Settings())
        for end in ("csv", "parquet")
    ]
    assert models[0].report["scores"] == models[1].report["scores"]


@pytest.mark.slow
def test_parquet_types_decide_which_columns_are_used(tmp_path):
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
        "int": "number",
        "decimal": "number",
        "cat": "category",
        "day": "date",
    }
    assert set(schema.left_out) == {"list", "bytes", "empty"}
    assert schema.classes == ("false", "true")


def decided(path, **options):
    """Return how the column 'c' of a file is used as an input and as the target."""
    found, table = [], open_table(path)
    try:
        schema = schema_of_source(table, "y", **options)
        columns = {column.name: column for column in schema.columns}
        column = columns.get("c")
        found.append(
            schema.left_out.get("c")
            if column is None
            else (column.kind, column.categories, column.missing)
        )
        frame = features(schema, table.read())
        found.append(frame["c"].to_list() if column is not None else None)
    except TableError as error:
        found.append(str(error))
    try:
        schema = schema_of_source(table, "c")
        found.append((schema.task, schema.classes, schema.class_counts))
        found.append(labels(schema, table.read())[0].tolist())
    except TableError as error:
        found.append(str(error))
    return found


@pytest.mark.sample(9)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "options"),
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
        (pl.Series([i % 5 / 4 for i in range(60)]).cast(pl.Decimal(10, 2)), {"categorical": ["c"]}),
        (pl.Series([i % 5 for i in range(60)]).cast(pl.Decimal(20, 0)), {}),
        ([i % 3 == 0 for i in range(60)], {"categorical": ["c"]}),
        ([i % 3 == 0 for i in range(60)], {}),
        (pl.Series(["a", "b", None] * 20, dtype=pl.Categorical), {}),
        (["NA", "b", "c "] * 20, {}),
        ([1.5, float("nan"), 2.25] * 20, {"categorical": ["c"]}),
    ],
)
def test_a_column_is_the_same_in_csv_and_parquet(tmp_path, values, options):
    """Compare kind, categories, classes, the reason for not using it, and the values."""
    series = values if isinstance(values, pl.Series) else pl.Series(values)
    n = len(series)
    frame = pl.DataFrame({"x": range(n), "c": series, "y": ["a", "b"] * (n // 2)})
    frame.write_csv(
        tmp_path / "a.csv", time_format="%H:%M:%S%.f", datetime_format="%Y-%m-%d %H:%M:%S%.6f"
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert decided(tmp_path / "a.csv", **options) == decided(tmp_path / "a.parquet", **options)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_refused(tmp_path):
    """It can be read only once, so rows would be lost."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="it is a device or a pipe, not a file"):
        open_table(tmp_path / "pipe")
