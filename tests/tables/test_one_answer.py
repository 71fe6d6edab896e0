"""A model predicts the same in the shell and in Python, or refuses the table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import quadric
from quadric.apps.shell.tables import (
    ColumnOptions,
    OpenedModel,
    Settings,
    TableFormat,
    open_table,
    predict,
    train,
)
from quadric.apps.shell.tables._schema import features
from quadric.errors import TableError
from tests.support.messy_tables import messy_table
from tests.support.tables import write

MOST_ONE_HOT = 8  # towns are encoded by the target
QUICK = Settings(hidden=(), alpha=0.1, test_size=0.0, max_iter=15)


def trained(path, target, model, table_format=None, **options):
    """Train on a file as `quadric train` does, and save the model."""
    found = train(open_table(path, table_format), ColumnOptions(target, **options), QUICK)
    quadric.save(found.model, model, extra={"table": found.schema.to_dict()})
    return found


def predicted(model, path, out, table_format=None):
    """Return what `quadric predict` writes, and the inputs as the shell reads them."""
    extra, source = quadric.files.info(model)["extra"], open_table(path, table_format)
    opened = OpenedModel.of(quadric.load(model), extra, source)
    proba = opened.schema.task == "classification"
    predict(opened.model, opened.schema, source, out, proba=proba)
    return pl.read_parquet(out), features(opened.schema, source.read())


def answer(model, X):
    """Return the predictions of a loaded model as columns."""
    if hasattr(model, "predict_proba"):
        return [model.predict(X).tolist(), *model.predict_proba(X).T.tolist()]
    return [model.predict(X).tolist()]


def compare(model, X, shell, *, refusable=False):
    """Check that the predictions are those of the shell; return whether they were refused."""
    try:
        ours = answer(model, X)
    except TableError as error:
        if not refusable or not any(repr(name) in str(error) for name in model.feature_names_in_):
            raise
        return True
    rows = shell[:, 0].is_not_null().to_numpy()  # without any value, the shell predicts nothing
    for column, values in zip(shell.iter_columns(), ours, strict=True):
        expected = np.array(column.to_list(), dtype=object)[rows]
        assert np.array_equal(expected, np.array(values, dtype=object)[rows]), column.name
    return False


def frames(path, table):
    """Return the table as frames of strings, and as frames whose columns were interpreted."""
    text = path.read_bytes().decode(table.encoding).removeprefix("\ufeff")
    plain = path.with_suffix(".plain")
    plain.write_text(text, encoding="utf-8")
    options = {"sep": table.separator}
    strings = [
        pd.read_csv(plain, dtype=str, keep_default_na=False, **options),
        pd.read_csv(plain, dtype=str, **options),
        pl.read_csv(plain, separator=table.separator, infer_schema=False),
    ]
    strings.append(strings[0][strings[0].columns[::-1]].to_dict("list"))
    strings[-1] = pl.DataFrame(strings[-1])  # in another order
    typed = [
        pd.read_csv(plain, **options),
        pl.read_csv(plain, separator=table.separator, infer_schema_length=None),
    ]
    typed.append(typed[0].astype(dict.fromkeys(typed[0].select_dtypes("float").columns, "float32")))
    typed.append(typed[0].convert_dtypes())
    return strings, typed


def check_table(seed, place):
    """Train on a random table; return how many interpreted frames were accepted and refused."""
    table = messy_table(seed)
    encoding = TableFormat(table.encoding if table.encoding == "latin-1" else None)
    suffix = ".tsv" if table.separator == "\t" else ".csv"
    train_file = table.write(place / f"train{suffix}", table.columns)
    new_file = table.write(place / f"new{suffix}", table.new)
    codes = [name for name, kind in table.kinds.items() if kind == "codes" and seed % 2]
    options = {"categorical": codes, "most_categories": MOST_ONE_HOT}
    trained(train_file, table.target, place / "m.quadric", encoding, **options)
    shell, read = predicted(place / "m.quadric", new_file, place / "out.parquet", encoding)
    model = quadric.load(place / "m.quadric")
    strings, typed = frames(new_file, table)
    for X in [*strings, read, pd.DataFrame({c.name: c.to_list() for c in read})]:
        compare(model, X, shell)
    refused = [compare(model, X, shell, refusable=True) for X in typed]
    return refused.count(False), refused.count(True)


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(300))
def test_python_predicts_what_the_shell_predicts_or_refuses(seed, tmp_path):
    check_table(seed, tmp_path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A model for prices, zip codes, counts and days."""
    place = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal(50, 9)!r},{rng.choice(['01', '02', '10'])},{rng.choice(['red', 'blue'])},"
        f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
        for i in range(80)
    ]
    lines = ["price,zip,color,day,y", *(f"{row},{'ab'[i % 2]}" for i, row in enumerate(rows))]
    write(place / "a.csv", "\n".join(lines) + "\n")
    trained(place / "a.csv", "y", place / "m.quadric", categorical=["zip"])
    return quadric.load(place / "m.quadric"), pd.read_csv(place / "a.csv", dtype=str)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", " ", "N/A", "nan", "?", "#N/A"])
def test_every_missing_marker_is_imputed_in_python(shop, missing):
    model, X = shop
    X = X.astype(object)
    X.loc[3] = [missing, "01", missing, missing, "a"]
    other = X.copy()
    other.loc[3] = [None, "01", None, None, "a"]
    assert np.array_equal(model.predict_proba(X), model.predict_proba(other))
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X: X.assign(zip=X["zip"].astype(int)), r"'zip' must contain text.*dtype=\{'zip'"),
        (lambda X: X.assign(zip=X["zip"].astype(float)), "'zip' must contain text"),
        (lambda X: X.assign(color=1.5), "'color' must contain text"),
        (lambda X: X.assign(price=X["price"].astype("float32")), "'price' .*float32.*rounded"),
        (lambda X: X.assign(price="12,5"), "'price' must contain numbers, but row 1 contains '12"),
        (lambda X: X.assign(price="inf"), "'price' contains inf in row 1"),
        (lambda X: X.assign(day="last week"), "'day' must contain dates, but row 1"),
        (lambda X: X.assign(day=5.0), "'day' must contain dates"),
        (lambda X: X.drop(columns="zip"), "the table lacks the column 'zip'"),
        (lambda X: pd.concat([X, X[["zip"]]], axis=1), "several columns named 'zip'"),
    ],
)
def test_a_column_that_lost_information_or_cannot_be_read_is_named(shop, change, said):
    model, X = shop
    with pytest.raises(TableError, match=said):
        model.predict(change(X))


def test_equal_values_of_other_types_give_equal_predictions(shop):
    model, X = shop
    expected = model.predict_proba(X)
    days = pd.to_datetime(X["day"])
    for other in (
        X.assign(price=X["price"].astype(float), color=X["color"] + " "),
        X.assign(day=days),
        X.assign(day=days.dt.date),
        X.assign(color=X["color"].astype("category"), price=X["price"].astype("Float64")),
        pl.DataFrame(X.to_dict("list")).with_columns(pl.col("day").str.to_date()),
        X[["price", "zip", "color", "day"]].to_numpy(),
        X[["price", "zip", "color", "day"]].to_numpy().tolist(),
    ):
        assert np.array_equal(model.predict_proba(other), expected)


def test_local_times_that_were_converted_to_utc_are_refused(tmp_path):
    """Readers such as Polars' convert them without being asked, and the hours change."""
    hours = [f"2024-03-{1 + i % 28:02d} {i % 24:02d}:30:00-05:00" for i in range(80)]
    frame = pl.DataFrame({"when": hours, "x": range(80), "y": ["a", "b"] * 40})
    frame.write_csv(tmp_path / "a.csv")
    trained(tmp_path / "a.csv", "y", tmp_path / "m.quadric")
    model = quadric.load(tmp_path / "m.quadric")
    expected = model.predict_proba(frame)
    parsed = pl.read_csv(tmp_path / "a.csv", try_parse_dates=True)
    utc = pd.to_datetime(pd.Series(hours), utc=True)
    for X in (parsed, frame.to_pandas().assign(when=utc)):
        with pytest.raises(TableError, match="'when' contains times in UTC, but the model was"):
            model.predict(X)
    local = frame.to_pandas().assign(when=utc.dt.tz_convert("-05:00"))
    assert np.array_equal(model.predict_proba(local), expected)
    frame.with_columns(pl.col("when").str.replace("-05:00", "Z")).write_csv(tmp_path / "b.csv")
    trained(tmp_path / "b.csv", "y", tmp_path / "m.quadric")
    parsed = pl.read_csv(tmp_path / "b.csv", try_parse_dates=True)
    strings = pl.read_csv(tmp_path / "b.csv")
    model = quadric.load(tmp_path / "m.quadric")
    assert np.array_equal(model.predict_proba(parsed), model.predict_proba(strings))


def test_a_pyarrow_table_gives_the_same(shop):
    arrow = pytest.importorskip("pyarrow")
    model, X = shop
    table = arrow.table(X.to_dict("list"))
    assert np.array_equal(model.predict_proba(table), model.predict_proba(X))
    table = table.set_column(0, "price", table["price"].cast(arrow.float64()))
    assert np.array_equal(model.predict_proba(table), model.predict_proba(X))
    table = table.set_column(0, "price", table["price"].cast(arrow.float32()))
    with pytest.raises(TableError, match="'price' contains numbers of type float"):
        model.predict(table)


def test_a_table_of_numbers_written_otherwise_is_read_as_the_option_says(tmp_path):
    """The model reads points; `--decimal ,` is about the new file."""
    rows = [f"{i % 13}.25;{'ab'[i % 2]}" for i in range(60)]
    path = write(tmp_path / "a.csv", "x;y\n" + "\n".join(rows) + "\n")
    comma = write(tmp_path / "b.csv", path.read_text().replace(".", ","))
    trained(path, "y", tmp_path / "m.quadric")
    plain, _ = predicted(tmp_path / "m.quadric", path, tmp_path / "a.parquet")
    other, _ = predicted(
        tmp_path / "m.quadric", comma, tmp_path / "b.parquet", TableFormat(decimal=",")
    )
    assert plain.equals(other)
    with pytest.raises(TableError, match=r"contains '0,25'\. If commas are decimal marks"):
        predicted(tmp_path / "m.quadric", comma, tmp_path / "c.parquet")
