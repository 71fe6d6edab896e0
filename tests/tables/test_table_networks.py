"""A bare Network on tables from the shell: columns, outputs, and tables that do not fit."""

import json

import numpy as np
import polars as pl
import pytest

import quadric
from quadric import Network
from quadric.apps.shell.tables import TableNetwork, open_table, predict
from quadric.errors import TableError
from tests.support.commands import assert_error, command

X = np.random.default_rng(0).normal(size=(50, 3))
NAMES = ["a", "b", "c"]
MUST_BE = "in the model file must be"


def net(m, last, *, n=3, dtype="float64"):
    return Network.create(n, [("quadratic", m, last)], init="normal", scale=1.0, rng=0, dtype=dtype)


def write(path, names=NAMES, rows=X, **more):
    """Write a table of numbers followed by other columns."""
    frame = pl.DataFrame({name: rows[:, i] for i, name in enumerate(names)} | more)
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


def run(tmp_path, network, *options, extra=None, table=None, out="out.csv"):
    """Return the predictions as a frame, and the messages."""
    quadric.save(network, tmp_path / "net.quadric", extra=extra)
    table = write(tmp_path / "table.csv") if table is None else table
    result = command("predict", tmp_path / "net.quadric", table, "-o", tmp_path / out, *options)
    assert result.returncode == 0, result.stderr
    read = pl.read_parquet if out.endswith("parquet") else pl.read_csv
    return read(tmp_path / out), result.stderr


def refused(tmp_path, network, part, *options, extra=None, table=None):
    quadric.save(network, tmp_path / "net.quadric", extra=extra)
    table = write(tmp_path / "table.csv") if table is None else table
    result = command("predict", tmp_path / "net.quadric", table, "-o", tmp_path / "no", *options)
    assert_error(result, part)
    assert not (tmp_path / "no").exists()


# ---- outputs -------------------------------------------------------------------------------


def test_certify_C4_the_class_beside_probabilities_is_the_predicted_one(tmp_path):
    network = Network.create(
        3, [("quadratic", 4, "logistic")], init="normal", scale=40.0, rng=0, dtype="float32"
    )
    P = network.forward(X)
    assert (P.argmax(axis=1) != network.predict(X)).any()  # several probabilities are 1
    found, _ = run(tmp_path, network, "--proba")
    assert found["class"].to_list() == network.predict(X).tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("last", ["softmax", "logistic"])
def test_several_classes_are_predicted_with_probabilities(tmp_path, last, dtype):
    network = net(4, last, dtype=dtype)
    P = network.forward(X)
    found, said = run(tmp_path, network)
    assert "The inputs are the table's numeric columns, in table order: 'a', 'b', 'c'." in said
    assert found.columns == ["class"]
    assert found["class"].to_list() == P.argmax(axis=1).tolist()
    found, _ = run(tmp_path, network, "--proba")
    assert found.columns == ["class", *(f"probability of {k}" for k in range(4))]
    np.testing.assert_allclose(found.to_numpy()[:, 1:], P, rtol=1e-6 if dtype == "float32" else 0)


def test_one_logistic_neuron_predicts_two_classes(tmp_path):
    p = net(1, "logistic").forward(X)[:, 0]
    found, _ = run(tmp_path, net(1, "logistic"), "--proba")
    assert found.columns == ["class", "probability of 0", "probability of 1"]
    assert set(found["class"]) == {0, 1}
    assert found["class"].to_list() == (p > 0.5).astype(int).tolist()
    np.testing.assert_array_equal(found["probability of 1"], p)
    found, _ = run(tmp_path, net(1, "logistic"), extra={"classes": ["no", "yes"], "target": "is"})
    assert found.columns == ["is"]
    assert found["is"].to_list() == np.array(["no", "yes"])[(p > 0.5).astype(int)].tolist()


@pytest.mark.parametrize("last", ["identity", "tanh", "relu"])
def test_outputs_without_classes_are_numbers(tmp_path, last):
    found, _ = run(tmp_path, net(2, last))
    assert found.columns == ["output 0", "output 1"]
    np.testing.assert_array_equal(found.to_numpy(), net(2, last).forward(X))
    found, _ = run(tmp_path, net(1, last), extra={"target": "price"})
    assert found.columns == ["price"]
    np.testing.assert_array_equal(found.to_numpy(), net(1, last).forward(X))
    refused(tmp_path, net(2, last), "--proba needs a classifier", "--proba")


def test_columns_and_classes_that_the_file_names_are_used(tmp_path):
    extra = {"columns": NAMES, "classes": ["x", "y"], "target": "kind"}
    turned = write(tmp_path / "turned.csv", ["c", "a", "b"], X[:, [2, 0, 1]], kind=["x"] * 50, n=1)
    found, said = run(tmp_path, net(2, "softmax"), "--proba", extra=extra, table=turned)
    P = net(2, "softmax").forward(X)
    assert found.columns == ["kind", "probability of x", "probability of y"]
    assert found["kind"].to_list() == np.array(["x", "y"])[P.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(found.to_numpy()[:, 1:].astype(float), P)
    share = (P.argmax(axis=1) == 0).mean()
    assert said.splitlines() == [
        "note: Columns that the model does not use: 'n'.",
        f"note: Scores on 50 rows with a value for 'kind': accuracy {share:.3f}.",
    ]
    found, _ = run(tmp_path, net(2, "softmax"), extra={"classes": [7, -3]})
    assert found["class"].to_list() == np.array([7, -3])[P.argmax(axis=1)].tolist()


@pytest.mark.slow
def test_parquet_in_many_batches_gives_the_same_predictions(tmp_path, monkeypatch):
    for module in ("_prediction", "_saved_model"):
        monkeypatch.setattr(f"quadric.apps.shell.tables.{module}.ROWS_AT_ONCE", 7)
    text = write(tmp_path / "table.parquet", text=["t"] * 50)
    found, said = run(tmp_path, net(4, "softmax"), "--proba", table=text, out="out.parquet")
    np.testing.assert_array_equal(found.to_numpy()[:, 1:], net(4, "softmax").forward(X))
    assert "does not use: 'text'" in said


def test_rows_with_a_missing_number_have_no_prediction(tmp_path):
    table = write(tmp_path / "table.csv")
    lines = table.read_text().splitlines()
    lines[3] = "1.5,,0.25"
    lines[5] = ",,"
    table.write_text("\n".join(lines) + "\n")
    found, said = run(tmp_path, net(2, "softmax"), "--proba", table=table)
    blank = found["class"].is_null().to_numpy()
    assert np.flatnonzero(blank).tolist() == [2, 4]
    assert found["probability of 1"].is_null().to_list() == blank.tolist()
    P = net(2, "softmax").forward(X)
    np.testing.assert_array_equal(found.to_numpy()[~blank, 1:], P[~blank])
    assert "Made no prediction for 2 rows with a missing number." in said
    assert "Imputed" not in said


def test_the_summary_as_json_counts_rows_and_unused_columns(tmp_path):
    quadric.save(net(2, "softmax"), tmp_path / "net")
    table = write(tmp_path / "table.csv", text=["t"] * 50)
    result = command("predict", tmp_path / "net", table, "-o", tmp_path / "out.csv", "--json")
    done = json.loads(result.stdout)
    assert (done["rows"], done["unused_columns"], len(done["notes"])) == (50, ["text"], 2)


# ---- the other commands --------------------------------------------------------------------


@pytest.mark.slow
def test_info_explain_and_plot_use_the_names(tmp_path):
    extra = {"columns": NAMES, "classes": ["x", "y"], "target": "kind"}
    quadric.save(net(2, "softmax"), tmp_path / "net", extra=extra)
    facts = json.loads(command("info", tmp_path / "net", "--json").stdout)
    assert [facts["columns"], facts["classes"], facts["target"]] == [NAMES, ["x", "y"], "kind"]
    table = write(tmp_path / "table.csv", kind=["x", "y"] * 25)
    for data in ([], [table]):
        found = json.loads(command("explain", tmp_path / "net", *data, "--json").stdout)
        assert [item["label"] for item in found["classes"]] == ["x", "y"]
        assert set(found["classes"][0]["terms"][0]["features"]) <= set(NAMES)
    assert "the 50 samples" in found["ranked_by"]
    result = command("plot", tmp_path / "net", table, "-o", tmp_path / "net.png")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "net.png").stat().st_size > 1000


def test_a_column_that_is_merely_called_class_is_not_the_target(tmp_path):
    """If the file names no target, no column of the table is used as the target."""
    quadric.save(net(2, "softmax"), tmp_path / "net")
    table = write(tmp_path / "table.csv", **{"class": ["first", "second"] * 25})
    result = command("explain", tmp_path / "net", table)
    assert result.returncode == 0, result.stderr
    assert "(c - " in result.stdout
    assert "the 50 samples" in result.stdout


# ---- tables and names that do not fit ------------------------------------------------------


@pytest.mark.slow
def test_tables_that_do_not_fit(tmp_path):
    four = write(tmp_path / "four.csv", n=1, text=["t"] * 50)
    message = "has 3 inputs, but {} has {} numeric columns: {}. Not numeric: {}. Use a"
    shown = message.format(four, 4, "'a', 'b', 'c', 'n'", "'text' ('t' in row 1)")
    refused(tmp_path, net(2, "softmax"), shown, table=four)
    two = write(tmp_path / "two.csv", ["a", "b"], dates=["2024-01-01"] * 50)
    shown = message.format(two, 2, "'a', 'b'", "'dates' ('2024-01-01' in row 1)")
    refused(tmp_path, net(2, "softmax"), shown, table=two)
    two.write_text("a,b,c\n1,,3\n4,five,6\n")
    refused(tmp_path, net(2, "softmax"), "Not numeric: 'b' ('five' in row 2)", table=two)
    two.write_text("a,b,c\n1,,3\n4,,6\n")
    refused(tmp_path, net(2, "softmax"), "'b' (all its values are missing)", table=two)
    two.write_text("x\nabc\n")
    refused(tmp_path, net(2, "softmax"), "has 0 numeric columns. Not numeric: 'x'", table=two)
    two.write_text("x,y\n")
    refused(tmp_path, net(2, "softmax"), "has column names but no rows", table=two)
    refused(
        tmp_path,
        net(2, "softmax"),
        "the table lacks the column 'z'",
        extra={"columns": list("abz")},
    )
    date = pl.DataFrame({"day": [1]}).with_columns(pl.col("day").cast(pl.Date))
    date.write_parquet(tmp_path / "date.parquet")
    part = "Not numeric: 'day' ('1970-01-02' in row 1)"
    refused(tmp_path, net(2, "softmax"), part, table=tmp_path / "date.parquet")
    many = write(tmp_path / "many.csv", [f"x{i}" for i in range(20)], np.ones((2, 20)))
    refused(tmp_path, net(2, "softmax"), "'x11' and 8 more. Use", table=many)


def test_a_column_without_a_name_is_not_an_input(tmp_path):
    """pandas writes its index this way."""
    table = tmp_path / "table.csv"
    table.write_text(",a,b,c\n0,1,2,3\n1,4,5,6\n")
    found, said = run(tmp_path, net(2, "identity"), table=table)
    wanted = net(2, "identity").forward([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    assert "does not use: 'column 1 (no name)'" in said
    table.write_text(",a,b\n0,1,2\n")
    refused(tmp_path, net(2, "identity"), "'column 1 (no name)' (no name)", table=table)


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        (
            {"columns": ["a", "b"]},
            f"'columns' {MUST_BE} a list of 3 distinct names, one per input. Got a list of 2",
        ),
        (
            {"columns": ["a", "b", "b"]},
            f"'columns' {MUST_BE} a list of 3 distinct names",
        ),
        (
            {"columns": ["a", "b", 1]},
            f"'columns' {MUST_BE} a list of 3 distinct names",
        ),
        ({"columns": "abc"}, "Got 'abc' instead. Save the network again"),
        (
            {"classes": ["x"]},
            f"'classes' {MUST_BE} a list of 2 distinct names or integers",
        ),
        ({"classes": ["x", 1]}, f"'classes' {MUST_BE} a list of 2 distinct names"),
        (
            {"classes": [True, False]},
            f"'classes' {MUST_BE} a list of 2 distinct names",
        ),
        ({"classes": {"x": 1}}, f"'classes' {MUST_BE} a list of 2 distinct names"),
        ({"target": 5}, "'target' in the model file must be a name. Got 5"),
        ({"target": ""}, "'target' in the model file must be a name. Got ''"),
    ],
)
def test_names_that_do_not_fit_the_network(tmp_path, extra, part):
    refused(tmp_path, net(2, "softmax"), part, extra=extra)
    with pytest.raises(TableError):
        TableNetwork(net(2, "softmax"), extra)


def test_classes_need_probabilities(tmp_path):
    extra = {"classes": ["x", "y"]}
    refused(
        tmp_path,
        net(2, "identity"),
        "activation is 'identity', which does not give prob",
        extra=extra,
    )


@pytest.mark.parametrize("value", [1e30, 1e50])
def test_numbers_that_are_too_large_are_refused(tmp_path, value):
    rows = X.copy()
    rows[4, 1] = value
    table = write(tmp_path / "large.csv", rows=rows)
    part = f"numbers so large (up to {value:g}) that the network's output is not finite in float32"
    refused(tmp_path, net(2, "softmax", dtype="float32"), part, table=table)


def test_a_table_network_predicts_in_python(tmp_path):
    source = open_table(write(tmp_path / "table.csv"))
    model = TableNetwork(net(2, "softmax"), {}, source)
    done = predict(model, model.schema, source, tmp_path / "out.csv")
    assert done.rows == 50
    assert TableNetwork(net(2, "softmax"), {}).schema is None
    np.testing.assert_array_equal(model.predict_proba(X), net(2, "softmax").forward(X))
