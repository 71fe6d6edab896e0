"""Dates and times: which are recognized, their parts, and splits by time."""

import datetime
import json

import numpy as np
import polars as pl
import pytest

import quadric
from quadric.apps.shell.tables import ColumnOptions, Settings, _training, open_table, train
from quadric.apps.shell.tables._schema import Schema, features
from quadric.apps.shell.tables._typical_rows import typical_rows
from quadric.certify import counterfactual
from quadric.errors import TableError
from quadric.explain import explain
from quadric.models import date_parts, typical_text
from tests.support.commands import command
from tests.support.tables import schema_of, write

QUICK = Settings(hidden=(), alpha=0.1, max_iter=15)
EPOCH = datetime.date(1970, 1, 1)


@pytest.mark.parametrize(
    ("text", "order", "day", "hour"),
    [
        ("2024-02-29", "ymd", (2024, 2, 29), 0),
        ("2024/2/9 7:30", "ymd", (2024, 2, 9), 7.5),
        ("2024-02-29T23:15:36.5Z", "ymd", (2024, 2, 29), 23.26013888888889),
        ("2024-02-29 12:00:00+00:00", "ymd", (2024, 2, 29), 12),
        ("29.02.2024 06:00", "dmy", (2024, 2, 29), 6),
        ("02/29/2024 12:30 AM", "mdy", (2024, 2, 29), 0.5),
        ("2/29/2024, 1:00 pm", "mdy", (2024, 2, 29), 13),
        ("29 Feb 2024", "name", (2024, 2, 29), 0),
        ("Thu, 29 Feb 2024 10:00:00 GMT", "name", (2024, 2, 29), 10),
        ("February 29, 2024", "name", (2024, 2, 29), 0),
        ("29-Feb-2024", "name", (2024, 2, 29), 0),
    ],
)
def test_dates_are_read(text, order, day, hour):
    date = datetime.date(*day)
    days = (date - EPOCH).days + hour / 24
    expected = (date.year, date.month, date.weekday(), hour, days)
    assert date_parts(text, order) == pytest.approx(expected, rel=1e-15)


def test_the_parts_are_those_of_the_local_time_and_the_days_those_of_utc():
    year, month, weekday, hour, days = date_parts("2024-01-01T00:30:00+02:00", "ymd")
    assert (year, month, weekday, hour) == (2024, 1, 0, 0.5)
    assert days == date_parts("2023-12-31T22:30:00Z", "ymd")[-1]
    assert days == date_parts("2023-12-31 17:00-0530", "ymd")[-1]
    assert np.isnan(date_parts("07:45:00", "time")[:3]).all()
    assert date_parts("07:45:00", "time")[3] == 7.75


@pytest.mark.parametrize(
    "text",
    [
        *("2023-02-29", "2024-13-01", "31.04.2024", "2024-01-01 25:00", "13:00 PM", "1.2.24"),
        *("2024-01-01T10:60", "29 Foo 2024", "2024-01/02", "", "today", "12:30", "0000-01-01"),
    ],
)
def test_other_text_is_not_a_date(text):
    assert all(date_parts(text, order) is None for order in ("ymd", "dmy", "mdy", "name"))


def test_the_typical_date_is_the_one_in_the_middle():
    texts = ["2024-02-01", "2022-01-31", "2023-03-05", "2022-01-31", "2024-05-06"]
    assert typical_text(texts) == "2023-03-05"
    assert typical_text(["05/03/2023", "31/01/2022", "01/02/2024"]) == "05/03/2023"
    assert typical_text(["10:30", "9:15", "9:15", "22:00", "11:00"]) == "10:30"
    assert typical_text(["2024-02-01", "2022-01-31", "soon", "soon"]) == "soon"
    assert typical_text(["b", "a", "b", 1]) == "b"


def dated(tmp_path, texts, batch=10**6, name="when", **options):
    """Return the schema of a table with a column of dates, or the reason why it is not used."""
    rows = [f"{text};{i % 7};{'ab'[i % 2]}" for i, text in enumerate(texts)]
    path = write(tmp_path / "a.csv", f"{name};x;y\n" + "\n".join(rows) + "\n")
    schema = schema_of(path, "y", batch, **options)
    return schema, {column.name: column for column in schema.columns}.get(name)


DAYS = np.datetime64("2023-11-20T00:00") + np.arange(60) * np.timedelta64(31, "h")


@pytest.mark.parametrize("batch", [7, 10**6])
@pytest.mark.parametrize(
    ("form", "order", "parts"),
    [
        ("%Y-%m-%d", "ymd", {"year", "month", "weekday", "days"}),
        ("%Y-%m-%dT%H:%M:%SZ", "ymd", {"year", "month", "weekday", "hour", "days"}),
        ("%d/%m/%Y", "dmy", {"year", "month", "weekday", "days"}),
        ("%m/%d/%Y", "mdy", {"year", "month", "weekday", "days"}),
        ("%d %B %Y", "name", {"year", "month", "weekday", "days"}),
        ("%H:%M", "time", {"hour"}),
    ],
)
def test_the_parts_that_vary_are_used(tmp_path, form, order, parts, batch):
    texts = [day.strftime(form) for day in DAYS.tolist()]
    schema, column = dated(tmp_path, ["", *texts, "N/A"], batch)
    assert (column.kind, column.order, set(column.parts)) == ("date", order, parts)
    assert column.missing == 2
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    values = np.array([date_parts(text, order) for text in texts])[:, 3]
    if "hour" in parts:
        expected = [values.min(), values.max(), values.mean(), values.std()]
        assert column.parts["hour"] == pytest.approx(expected, rel=1e-12)
    assert features(schema, typical_rows(schema)).height == 200  # such rows can be read


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(40)], "day and month may be exchanged"),
        (["2024-01-01"] * 40, "it has only one value"),
        (
            [f"2024-01-{1 + i % 28:02d}" for i in range(39)] + ["soon"],
            "dates except for 1 value; the first is 'soon' in row 40",
        ),
    ],
)
def test_dates_that_cannot_be_used_are_named_with_the_reason(tmp_path, texts, why):
    schema, column = dated(tmp_path, texts)
    assert column is None
    assert why in schema.left_out["when"]


def test_points_between_day_and_month_mean_that_the_day_comes_first(tmp_path):
    _, column = dated(tmp_path, [f"0{1 + i % 9}.0{1 + i % 7}.2024" for i in range(40)])
    assert column.order == "dmy"


def test_names_of_parts_differ_from_those_of_other_columns(tmp_path):
    rows = [f"{day},{i % 5},{'ab'[i % 2]}" for i, day in enumerate(DAYS.astype("M8[D]"))]
    path = write(tmp_path / "a.csv", "d,d days,y\n" + "\n".join(rows) + "\n")
    names = schema_of(path, "y").reader.get_feature_names_out().tolist()
    assert names == ["d year", "d month", "d weekday", "d days'", "d days"]


@pytest.fixture
def sensors(tmp_path):
    """A load that depends on the hour and on the temperature, every three hours."""
    rng = np.random.default_rng(1)
    times = np.datetime64("2024-01-01T00:00") + np.arange(0, 3600, 3) * np.timedelta64(1, "h")
    hour = times.astype("M8[h]").astype(int) % 24
    temp = rng.normal(15, 5, len(times))
    load = (hour - 12) ** 2 + 0.5 * (temp - 15) ** 2 + rng.normal(size=len(times))
    rows = zip(times, temp.tolist(), load.tolist(), strict=True)
    order = rng.permutation(len(times))
    lines = [f"{time}Z,{a},{b}" for time, a, b in rows]
    text = "time,temp,load\n" + "\n".join(lines[i] for i in order) + "\n"
    return write(tmp_path / "sensors.csv", text)


@pytest.mark.slow
def test_the_latest_rows_are_held_out(sensors):
    settings = Settings(hidden=(), alpha=1.0, time="time")
    trained = train(open_table(sensors), ColumnOptions("load"), settings)
    times = np.array([line.split(",")[0] for line in sensors.read_text().splitlines()[1:]])
    held = np.zeros(len(times), dtype=bool)
    held[trained.tested.numbers - 1] = True
    assert held.sum() == 300
    assert max(times[~held].tolist()) < min(times[held].tolist())
    assert trained.tested.evaluation.scores["R²"].value > 0.95
    assert "the latest 25% of the rows by 'time' were held out" in trained.report["how"]
    without = train(open_table(sensors), ColumnOptions("load", drop=["time"]), settings)
    assert without.tested.evaluation.scores["R²"].value < 0.5


def with_trend(sensors, slope):
    """Return the table with a load that also increases with time."""
    days = pl.col("time").str.to_datetime(time_zone="UTC").dt.epoch("s") / 86400
    pl.read_csv(sensors).with_columns(pl.col("load") + slope * days).write_csv(sensors)
    return sensors


def test_dates_after_training_are_like_the_last_one(sensors, monkeypatch):
    """Also for the scores of a split by time, whose model has not seen the later dates."""
    ends, fitted = [], _training._fitted

    def recorded(X, y, schema, settings):
        ends.append(schema.columns[0].parts.get("days", [None] * 2)[1])
        return fitted(X, y, schema, settings)

    monkeypatch.setattr(_training, "_fitted", recorded)
    settings = Settings(hidden=(), alpha=0.1, max_iter=15, time="time", tails="keep")
    model = train(open_table(with_trend(sensors, 10.0)), ColumnOptions("load"), settings).model
    last = date_parts("2024-05-29T21:00Z", "ymd")[-1]
    early, without, *ends = ends  # of the models that decide whether the elapsed days are used
    assert early == pytest.approx(last - (300 + 225) * 3 / 24)
    assert without is None
    assert ends[0] == last
    assert ends[1:] == [pytest.approx(last - 300 * 3 / 24)] * 2  # that of the best shape, too
    later = pl.DataFrame({"time": ["2031-05-28T21:00Z", "2024-05-29T21:00Z"], "temp": ["9", "9"]})
    assert model[0].transform(later)[:, 3].tolist() == [last, last]


@pytest.mark.parametrize(("slope", "used"), [(10.0, True), (0.0, False)])
def test_elapsed_time_is_used_only_if_it_predicts_later_rows(sensors, slope, used):
    settings = Settings(hidden=(), alpha=0.1, max_iter=15, time="time", tails="keep")
    schema = train(open_table(with_trend(sensors, slope)), ColumnOptions("load"), settings).schema
    assert ("days" in schema.columns[0].parts) == ("month" in schema.columns[0].parts) == used
    assert {"weekday", "hour"} <= set(schema.columns[0].parts)
    assert set(schema.left_out) == (set() if used else {"time days", "time month"})
    notes = [note for note in schema.notes() if "later rows are outside its range" in note]
    assert len(notes) == (0 if used else 2)
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(("trend", "used"), [(0.5, True), (0.0, False)])
def test_a_number_that_grows_with_time_is_used_only_if_it_predicts_later_rows(
    tmp_path, trend, used
):
    rng = np.random.default_rng(0)
    t, x = np.arange(300), rng.normal(size=300)
    y = x + np.where(t < 150, 0.01 * (t - 75) ** 2 * (not used), 0) + trend * t
    pl.DataFrame({"t": t, "x": x, "y": y}).write_csv(tmp_path / "a.csv")
    settings = Settings(hidden=(), alpha=0.1, max_iter=30, time="t", tails="keep")
    schema = train(open_table(tmp_path / "a.csv"), ColumnOptions("y"), settings).schema
    assert ("t" in schema.names, "t" in schema.left_out) == (used, not used)


def test_the_month_recurs_if_training_covers_a_year(tmp_path):
    days = np.datetime64("2022-01-01") + np.arange(0, 800, 2)
    rng = np.random.default_rng(0)
    y = 5 * np.abs(days.astype("M8[M]").astype(int) % 12 - 5.5) + rng.normal(size=400)
    pl.DataFrame({"day": days.astype(str), "y": y}).write_csv(tmp_path / "a.csv")
    settings = Settings(hidden=(), alpha=0.1, max_iter=30, time="day", tails="keep")
    schema = train(open_table(tmp_path / "a.csv"), ColumnOptions("y"), settings).schema
    assert "month" in schema.columns[0].parts
    assert {"day days", "day year"} & set(schema.left_out)


@pytest.mark.slow
def test_a_random_split_of_dated_rows_is_remarked(sensors):
    settings = Settings(hidden=(), alpha=1.0, test_size=0.25)
    remarks = train(open_table(sensors), ColumnOptions("load"), settings).remarks
    assert any("use --time time" in remark for remark in remarks)
    timed = Settings(hidden=(), alpha=1.0, time="time")
    remarks = train(open_table(sensors), ColumnOptions("load"), timed).remarks
    assert not any("--time" in remark for remark in remarks)


@pytest.mark.slow
def test_a_model_of_the_earlier_rows_can_be_saved_and_read_by_the_shell(sensors, tmp_path):
    model = tmp_path / "m.quadric"
    options = ["--hidden", "none", "--time", "time", "--holdout", "-o", model]
    result = command("train", sensors, "-t", "load", *options)
    assert result.returncode == 0, result.stderr
    result = command("predict", model, sensors, "-o", tmp_path / "o.csv")
    assert result.returncode == 0, result.stderr
    ours = quadric.load(model).predict(pl.read_csv(sensors))
    assert np.array_equal(pl.read_csv(tmp_path / "o.csv")["load"].to_numpy(), ours)


def test_mistakes_with_time_are_one_line(tmp_path):
    rows = [f"{i % 3},{i},{'ab'[i > 40]},c{i % 5}" for i in range(60)]
    path = write(tmp_path / "a.csv", "x,t,y,c\n" + "\n".join(rows) + "\n")

    def refused(said, **settings):
        with pytest.raises(TableError, match=said):
            train(open_table(path), ColumnOptions("y"), Settings(hidden=(), alpha=1.0, **settings))

    refused(r"'c' is none\. It contains 'c0' in row 1", time="c")
    refused("the class 'b' occurs only in the latest rows by 't'", time="t", test_size=0.5)
    refused("there is no column 'q'", time="q")
    refused("--time must not be the target", time="y")
    for options in (["--cv", "5"], ["--stream"], ["--test", path]):
        result = command("train", path, "-t", "y", "--time", "t", *options)
        assert result.returncode == 2
        assert "--time cannot be combined with --cv, --test or --stream" in result.stderr


@pytest.mark.slow
def test_streams_read_dates_and_money_as_training_in_memory_does(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{day};${value:,.2f};{'ab'[int(value > 5000)]}"
        for day, value in zip(np.tile(DAYS, 20), rng.normal(5000, 900, 1200), strict=True)
    ]
    path = write(tmp_path / "a.csv", "when;price;y\n" + "\n".join(rows) + "\n")
    arguments = ["train", path, "-t", "y", "--stream", "--epochs", "1", "--buffer", "100", "--json"]
    result = command(*arguments, "-o", tmp_path / "s.quadric")
    assert result.returncode == 0, result.stderr
    kinds = {column["name"]: column["kind"] for column in json.loads(result.stdout)["columns"]}
    assert kinds == {"when": "date", "price": "number"}
    streamed = quadric.load(tmp_path / "s.quadric")
    memory = train(open_table(path), ColumnOptions("y"), QUICK).model
    assert streamed[0].columns == memory[0].columns
    X = open_table(path).read()
    ours, theirs = (model[:-1].transform(X) for model in (streamed, memory))
    assert np.allclose(ours, theirs, atol=1e-9)


@pytest.mark.slow
def test_explanations_certificates_and_onnx_take_the_parts_as_inputs(sensors, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    table = pl.read_csv(sensors).with_columns(
        kind=pl.when(pl.col("load") > 40).then(pl.lit("high")).otherwise(pl.lit("low"))
    )
    table.drop("load").write_csv(tmp_path / "a.csv")
    model = train(open_table(tmp_path / "a.csv"), ColumnOptions("kind"), QUICK).model
    names = ["time month", "time weekday", "time hour", "time days", "temp"]
    found = explain(model)
    assert found.names == names
    assert "in your own units" in str(found)
    X = table[:50]
    nearest = counterfactual(model, X[:1], units="scaled")
    assert nearest.distance > 0
    quadric.onnx.export(model, tmp_path / "m.onnx", dtype="float64")
    session = runtime.InferenceSession((tmp_path / "m.onnx").read_bytes())
    (given,) = session.get_inputs()
    label, probabilities = session.run(None, {given.name: model[0].transform(X)})
    assert label.tolist() == model.predict(X).tolist()
    assert np.allclose(probabilities, model.predict_proba(X), atol=1e-9)
