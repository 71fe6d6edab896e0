"""The schema inferred from a table, and the resulting inputs."""

import json

import numpy as np
import polars as pl
import pytest

from quadric.apps.shell.tables import ColumnOptions, Settings, _column_profile, open_table, train
from quadric.apps.shell.tables._column_profile import ColumnProfile
from quadric.apps.shell.tables._preprocessing import fitted_to_moments
from quadric.apps.shell.tables._schema import Column, Schema, features, labels
from quadric.errors import TableError
from quadric.models import PLAIN
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


def columns_state():
    price = Column("price", "number", form=(".", ",", "$"), missing=2, low=1.0, high=2.0)
    color = Column("color", "category", categories=("blue", "red"))
    schema = Schema((price, color, Column("size", "number", mean=3.0)), "y", "regression", rows=9)
    return schema, schema.to_dict()


def test_the_usual_values_of_columns_are_not_stored():
    schema, state = columns_state()
    assert state["columns"]["kind"] == {"1": "category"}
    assert state["columns"]["form"] == {"0": [".", ",", "$"]}
    assert state["columns"]["mean"] == [0.0, 0.0, 3.0]
    assert state["columns"]["order"] == {}
    assert Schema.from_dict(state) == schema


@pytest.mark.parametrize(
    "change",
    [
        {"name": []},
        {"name": ["price", "color"]},
        {"name": {"0": "price"}},
        {"name": ["price", "price", "size"]},
        {"mean": [0.0, 0.0]},
        {"mean": {"2": 3.0}},
        {"mean": [0.0, "x", 3.0]},
        {"kind": {"1": "category", "3": "number"}},
        {"kind": {"01": "category"}},
        {"kind": ["number", "category", "number"]},
        {"kind": {}},
        {"missing": {"0": -1}},
        {"more": {}},
    ],
)
def test_columns_that_are_not_valid_are_refused(change):
    _, state = columns_state()
    with pytest.raises(ValueError, match=r"not valid|unknown fields"):
        Schema.from_dict(state | {"columns": state["columns"] | change})
    for name in state["columns"]:
        rest = {key: value for key, value in state["columns"].items() if key != name}
        with pytest.raises(ValueError, match="missing or unknown fields"):
            Schema.from_dict(state | {"columns": rest})


ODD_TEXTS = (
    *("NA", "nan", "-nan", "+nan", "", None, " 5 ", "\x1c5", "\u00a07", "true", "1,234", "$5"),
    *("5 %", "1_000", "0x10", "-999", "-999.0", "1-2", "1e", ".", "unknown", "\u22125", "\n3"),
    *("3\n4", "\u0663", "4.9e-325", "2020-01-01"),
)


def decimal_text(rng):
    """Return a number with 1 to 20 digits, perhaps with a sign, a point and an exponent."""
    digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 21))))
    at = rng.integers(len(digits) + 1)
    point = f"{digits[:at]}.{digits[at:]}" if rng.random() < 0.6 else digits
    exponent = f"{rng.choice(['e', 'E-', 'e+'])}{rng.integers(60)}" if rng.random() < 0.3 else ""
    tiny = f"e-{rng.integers(300, 345)}" if rng.random() < 0.1 else exponent
    return f"{rng.choice(['', '-', '+'])}{point}{tiny}"


def outcome(read):
    """Return the bits of the numbers that are read, or the error."""
    try:
        return np.asarray(read(), dtype=np.float64).tobytes()
    except TableError as error:
        return str(error).partition(" If commas")[0]  # advice of the shell


FORMS_AND_MISSING = [
    (PLAIN, ()),
    (PLAIN, ("-999", "unknown")),
    ((".", ",", ""), ()),
    ((".", "", "$"), ()),
    ((".", "", "%"), ()),
    ((",", ".", ""), ()),
]


@pytest.mark.parametrize(("form", "missing"), FORMS_AND_MISSING)
def test_numbers_are_those_of_the_first_step_of_the_model(form, missing):
    rng = np.random.default_rng(0)
    column = Column("c", "number", form=form, missing_values=missing)
    schema = Schema((column,), "c", "regression", target_form=form, target_missing=missing)
    tables = [[decimal_text(rng) for _ in range(2000)]]
    tables += [[decimal_text(rng), text, decimal_text(rng), "-999"] for text in ODD_TEXTS]
    for texts in tables:
        table = pl.DataFrame({"c": pl.Series(texts, dtype=pl.String)})
        exact = outcome(lambda table=table: schema.reader.read(table)["c"])
        assert outcome(lambda table=table: features(schema, table)["c"]) == exact, texts[:4]
        if isinstance(exact, bytes):
            present = np.frombuffer(exact)[~np.isnan(np.frombuffer(exact))].tobytes()
            assert outcome(lambda table=table: labels(schema, table)[0]) == present, texts[:4]


@pytest.mark.parametrize("form", [PLAIN, (".", ",", "")])
def test_profiles_of_plain_numbers_are_those_of_any_text(form, monkeypatch):
    rng = np.random.default_rng(1)
    columns = [[decimal_text(rng) for _ in range(40)], [" 1", "0", "", "NA", "1"] * 8, [None] * 40]
    columns += [["1.234", "12.000", "5", "-999"] * 10, list(map(str, range(40)))]
    columns += [["1", text, "2.5", "-999", "1"] * 8 for text in ODD_TEXTS]

    def profiled(texts):
        profile = ColumnProfile("c", 5, 8, form=form, missing_values=("-999",))
        for part in (texts[:20], texts[20:]):
            profile.add(pl.Series("c", part, dtype=pl.String))
        return repr(profile)  # with the order of the values

    fast = [profiled(texts) for texts in columns]
    monkeypatch.setattr(_column_profile, "plain_numbers", lambda *given: None)
    assert fast == [profiled(texts) for texts in columns]


def test_plain_numbers_are_not_read_one_by_one(monkeypatch):
    table = pl.DataFrame({"a": ["1", "2.5", "-3e2"], "y": ["0", "1", "0"]})
    schema = Schema((Column("a", "number"),), "y", "classification", classes=(0, 1))

    def refuse(values, form):
        assert isinstance(values, np.ndarray), "text is read in Python"
        return values

    monkeypatch.setattr("quadric.models._table_columns.numbers", refuse)
    monkeypatch.setattr(_column_profile, "numbers", refuse)
    assert features(schema, table)["a"].to_list() == [1.0, 2.5, -300.0]
    assert labels(schema, table)[0].tolist() == [0, 1, 0]
    profile = ColumnProfile("a", 5, 8)
    profile.add(table["a"])
    assert (profile.numeric, profile.values) == (3, {"1": 1, "2.5": 1, "-3e2": 1})
