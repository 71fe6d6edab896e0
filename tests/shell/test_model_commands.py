"""`quadric predict`, `explain`, `plot`, `info`, `export` and `complexity`."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import quadric
from quadric import Network, files
from quadric.reference import PARAMETERS
from tests.support.commands import NAMES, assert_error, command, read_iris, write_iris


@pytest.mark.slow
def test_predict_matches_columns_by_name(place, tmp_path):
    rows = (place / "iris.csv").read_text().splitlines()
    turned = [",".join(["more", *row.split(",")[3::-1]]) for row in rows]
    (tmp_path / "new.csv").write_text("\n".join(turned) + "\n")
    result = command(
        "predict", place / "iris.quadric", "new.csv", "-o", "out.csv", "--proba", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Predictions: out.csv (150 rows)\n"
    assert "Columns that the model does not use: 'more'." in result.stderr
    found = np.genfromtxt(tmp_path / "out.csv", delimiter=",", skip_header=1)[:, 1:]
    X, _ = read_iris(place / "iris.csv")
    assert np.allclose(found, quadric.load(place / "iris.quadric").predict_proba(X), atol=1e-12)
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o644


def test_predict_prints_to_stdout_by_default(place):
    result = command("predict", "iris.quadric", "iris.csv", cwd=place)
    assert result.stdout.splitlines()[:2] == ["species", "setosa"]
    assert len(result.stdout.splitlines()) == 151


@pytest.mark.slow
def test_predict_into_a_closed_pipe_ends_quietly(place):
    write_iris(place / "many.csv", rows=np.arange(60_000) % 150)
    shell = f"{sys.executable} -m quadric predict iris.quadric many.csv --proba | head -n 1"
    result = subprocess.run(
        shell, shell=True, capture_output=True, text=True, cwd=place, check=False
    )
    assert result.stdout.startswith("species,probability of setosa")
    assert result.stderr == ""


def test_predict_with_a_table_that_does_not_fit(place, tmp_path):
    write_iris(tmp_path / "two.csv", NAMES[2:])
    result = command("predict", place / "iris.quadric", "two.csv", "-o", "o.csv", cwd=tmp_path)
    assert_error(result, "the table lacks the columns 'sepal_length', 'sepal_width'")
    assert not (tmp_path / "o.csv").exists()
    fitted = quadric.QuadraticLogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    files.save(fitted, tmp_path / "net")
    assert_error(
        command("predict", tmp_path / "net", tmp_path / "two.csv"), "it was fitted to an array"
    )
    assert_error(command("predict", tmp_path / "two.csv", tmp_path / "two.csv"), "two.csv")
    assert_error(command("predict", tmp_path / "none", tmp_path / "two.csv"), "none: No such file")


def test_explain_in_the_users_units(place):
    result = command("explain", "iris.quadric", "iris.csv", cwd=place)
    assert result.returncode == 0, result.stderr
    assert "in your own units" in result.stdout
    assert "petal_width" in result.stdout
    assert "for the 150 samples given" in result.stdout
    found = json.loads(command("explain", place / "iris.quadric", "--json").stdout)
    assert [item["label"] for item in found["classes"]] == ["setosa", "versicolor", "virginica"]
    assert len(found["boundaries"]) == 3
    assert all(len(item["terms"]) == item["n_terms"] for item in found["classes"])
    assert "smaller terms; use --all for more)" in result.stdout
    whole = command("explain", place / "iris.quadric", "--all").stdout
    assert not any(hint in whole for hint in ("--all", "lists all"))
    assert_error(command("explain", place / "iris.csv"), "iris.csv")


def test_explain_ranks_inputs_by_permutation(place):
    result = command("explain", "iris.quadric", "iris.csv", "--permutation", cwd=place)
    assert "Drop of the accuracy if an input is shuffled (150 rows)" in result.stdout
    found = command("explain", "iris.quadric", "iris.csv", "--permutation", "--json", cwd=place)
    assert json.loads(found.stdout)["permutation"][0]["name"].startswith("petal")
    assert_error(
        command("explain", place / "iris.quadric", "--permutation"), "a table with the target"
    )


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """A table with categories and missing values, and two models with hidden neurons."""
    place, rng = tmp_path_factory.mktemp("networks"), np.random.default_rng(0)
    x, colour = rng.uniform(-2, 2, 240), rng.choice(["red", "blue"], 240)
    kind = np.where(np.abs(x) < 1, "in", "out")
    lines = [
        f"{'' if i == 7 else f'{a:.3f}'},{c},{i % 5},{k},{a * a:.3f}"
        for i, (a, c, k) in enumerate(zip(x, colour, kind, strict=True))
    ]
    (place / "a.csv").write_text("\n".join(["x,colour,n,kind,square", *lines]) + "\n")
    for target, other in (("kind", "square"), ("square", "kind")):
        options = ["--drop", other, "--hidden", "6", "--alpha", "0.1", "-o", f"{target}.quadric"]
        result = command("train", "a.csv", "-t", target, *options, cwd=place)
        assert result.returncode == 0, result.stderr
    return place


@pytest.mark.slow
def test_explain_a_network_by_importances_and_dependence(networks):
    result = command("explain", "kind.quadric", "a.csv", cwd=networks)
    assert result.returncode == 0, result.stderr
    assert "train with `quadric train --equation`" in result.stdout
    assert "Importance of inputs   total\n  x  " in result.stdout
    assert "Drop of" not in result.stdout
    permuted = command("explain", "kind.quadric", "a.csv", "--permutation", cwd=networks)
    assert "Drop of the accuracy if an input is shuffled (240 rows)\n  x  " in permuted.stdout
    assert "\n  colour  " in result.stdout  # its one-hot columns are one input
    assert "\n  p(out)  " in result.stdout
    found = json.loads(command("explain", "kind.quadric", "a.csv", "--json", cwd=networks).stdout)
    assert found["importances"][0]["name"] == "x"
    assert found["importances"][0]["total"] > 0
    assert found["permutation"] == []
    assert found["dependences"][0]["inputs"] == ["x"]
    without = command("explain", "kind.quadric", cwd=networks).stdout
    assert without.endswith("partial dependence need data: quadric explain MODEL DATA.\n")


@pytest.mark.slow
def test_explain_a_row_of_a_network(networks):
    """A row has a class, a certified radius, and the effect of each input."""
    arguments = ["explain", "kind.quadric", "a.csv", "--row"]
    result = command(*arguments, "8", cwd=networks)  # x is missing
    assert result.returncode == 0, result.stderr
    assert "No change smaller than " in result.stdout
    assert "missing" in result.stdout
    found = json.loads(command(*arguments, "1", "--json", cwd=networks).stdout)
    assert found["effects"][0]["input"] == "x"
    assert {one["typical"] for one in found["effects"]} >= {2.0}
    assert found["radius"] > 0
    assert found["exact"] is False
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    changes = [abs(one["change"]) for one in found["effects"]]
    assert changes == sorted(changes, reverse=True)
    assert_error(command(*arguments, "241", cwd=networks), "--row must be at most 240")


@pytest.mark.slow
def test_explain_a_row_of_a_regressor(networks):
    arguments = ["explain", "square.quadric", "a.csv", "--row", "1"]
    result = command(*arguments, cwd=networks)
    assert "Row 1: square = " in result.stdout
    assert "changes the class" not in result.stdout
    found = json.loads(command(*arguments, "--json", cwd=networks).stdout)
    one = found["effects"][0]
    assert one["input"] == "x"
    assert one["change"] == pytest.approx(one["output"] - found["predicted"])
    assert "radius" not in found


@pytest.mark.slow
def test_the_report_of_a_network_shows_importances_and_dependence(networks):
    result = command("report", "kind.quadric", "a.csv", "-o", "r.html", cwd=networks)
    assert result.returncode == 0, result.stderr
    page = (networks / "r.html").read_text(encoding="utf-8")
    assert "To get one, train with <code>--equation</code>" in page
    assert "Importances: shares of the mean absolute change of the prediction" in page
    assert '<th scope="col">colour</th>' in page
    assert "No equation" not in page


@pytest.mark.slow
def test_explain_a_regressor(place, tmp_path):
    model = tmp_path / "width.quadric"
    target = ["-t", "petal_width", "--hidden", "none"]
    result = command("train", place / "iris.csv", *target, "-o", model)
    assert result.returncode == 0, result.stderr
    result = command("explain", model, place / "iris.csv")
    assert "\npetal_width = " in result.stdout
    assert " = 0" not in result.stdout
    assert "\n  species  " in result.stdout  # its one-hot columns are one input


@pytest.mark.slow
def test_explain_groups_categories_and_imputes_missing_values(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.3f},{'' if i % 9 == 0 else 'rgb'[i % 3]},{'' if i % 10 == 5 else i % 7},"
        f"{'in' if abs(x) < 0.7 else 'out'}"
        for i, x in enumerate(rng.normal(size=120))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["x,colour,n,y", *rows]) + "\n")
    assert (
        command(
            "train", tmp_path / "a.csv", "-t", "y", "--hidden", "none", "-o", tmp_path / "a"
        ).returncode
        == 0
    )
    result = command("explain", tmp_path / "a", tmp_path / "a.csv")
    assert result.returncode == 0, result.stderr
    assert "\n  colour  " in result.stdout
    assert "Ignored" not in result.stderr
    assert "for the 120 samples given" in result.stdout
    result = command(
        "plot",
        tmp_path / "a",
        tmp_path / "a.csv",
        "--what",
        "calibration",
        "-o",
        tmp_path / "c.svg",
    )
    assert result.returncode == 0, result.stderr
    assert "Ignored" not in result.stderr


@pytest.mark.slow
def test_plot_draws_boundaries_and_refuses_wrong_options(place, tmp_path):
    result = command("plot", place / "iris.quadric", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "no points are drawn" in result.stderr
    assert (tmp_path / "iris.png").read_bytes().startswith(b"\x89PNG")
    with_points = tmp_path / "b.svg"
    arguments = [place / "iris.quadric", place / "iris.csv", "--classes", "setosa,virginica"]
    assert command("plot", *arguments, "-o", with_points).returncode == 0
    assert with_points.read_text().startswith("<?xml")
    for wrong in ("rose,tulip", "setosa"):
        assert_error(
            command("plot", place / "iris.quadric", "--classes", wrong, "-o", with_points),
            "--classes takes two or more of the model's classes, setosa, versicolor, virginica",
        )
    assert_error(
        command("plot", place / "iris.quadric", "--inputs", "a,b", cwd=tmp_path), "must be two of"
    )
    assert_error(
        command("plot", place / "iris.quadric", "--what", "residuals", cwd=tmp_path),
        "does not suit a classifier. Use boundaries, dependence, calibration, confusion, "
        "precision-recall, roc, spectrum, similarity, truncation.",
    )
    assert_error(
        command("plot", place / "iris.quadric", "--what", "confusion", cwd=tmp_path),
        "needs a table with the target",
    )
    assert command("plot", place / "iris.quadric", "--what", "all", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--image-shape", "2x2", "--what", "spectrum"], "--image-shape cannot be combined"),
        (["--image-shape", "2x2", "--classes", "setosa,virginica"], "--image-shape cannot be"),
        (["--what", "dependence", "--inputs", "petal_length,petal_width"], "--inputs needs"),
        (["--what", "confusion", "--classes", "setosa,virginica"], "--classes needs"),
    ],
)
def test_plot_refuses_options_that_would_be_ignored(options, message, place, tmp_path):
    result = command("plot", place / "iris.quadric", place / "iris.csv", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("what", ["dependence", "calibration", "confusion"])
def test_plots_are_named_after_the_model(place, tmp_path, what):
    arguments = ["plot", place / "iris.quadric", place / "iris.csv", "--what", what]
    result = command(*arguments, cwd=tmp_path)
    assert result.stdout == f"Picture: iris-{what}.png\n", result.stderr
    assert (tmp_path / f"iris-{what}.png").stat().st_size > 10_000


@pytest.mark.slow
def test_plots_of_hidden_layers_and_regressors(place, tmp_path):
    model = tmp_path / "model.quadric"
    hidden = ["train", place / "iris.csv", "-t", "species", "--hidden", "5", "-o", model]
    assert command(*hidden).returncode == 0
    assert command("plot", model, place / "iris.csv", cwd=tmp_path).returncode == 0
    numbers = ["train", place / "iris.csv", "-t", "petal_width", "-o", model]
    assert command(*numbers).returncode == 0
    for what in ([], ["--what", "residuals"]):
        result = command("plot", model, place / "iris.csv", *what, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert_error(
        command("plot", model, place / "iris.csv", "--classes", "setosa,virginica", cwd=tmp_path),
        "--classes needs a classifier",
    )
    assert_error(
        command("plot", model, place / "iris.csv", "--what", "boundaries", cwd=tmp_path),
        "does not suit a regressor. Use surface, dependence, residuals, spectrum, truncation.",
    )


@pytest.mark.slow
def test_plot_shows_eigenvectors_as_images(tmp_path):
    digits = load_digits()
    lines = [",".join([*(f"p{i}" for i in range(64)), "digit"])]
    for x, y in zip(digits.data[:150], digits.target[:150], strict=True):
        lines.append(",".join([*map(str, x.astype(int)), str(y)]))
    (tmp_path / "digits.csv").write_text("\n".join(lines) + "\n")
    model = tmp_path / "digits.quadric"
    options = ("-t", "digit", "-o", model, "--json", "--equation")
    result = command("train", tmp_path / "digits.csv", *options)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == list(range(10))
    assert "'p0' is not used" in result.stdout + result.stderr  # constant pixels are not inputs
    result = command("plot", model, "--image-shape", "8x8", "-o", tmp_path / "a.png")
    assert result.returncode == 0, result.stderr
    assert_error(
        command("plot", model, "--image-shape", "7x8", "-o", tmp_path / "a.png"), "pixels in all"
    )
    assert command("plot", model, "--image-shape", "x", "-o", tmp_path / "a.png").returncode == 2


@pytest.mark.slow
def test_info_describes_a_model(place, tmp_path):
    result = command("info", "iris.quadric", "--json", cwd=place)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["kind"] == "QuadraticClassifier"
    assert found["preprocessing"] == ["TableColumns", "SimpleImputer", "StandardScaler"]
    assert found["layers"] == ["4 -> 3 quadratic (softmax)"]
    assert found["parameters"] == PARAMETERS["qnn"](3, 4) == 45
    assert found["classes"] == ["setosa", "versicolor", "virginica"]
    assert found["columns"][0] == "sepal_length (number)"
    assert found["versions"]["quadric"] == quadric.__version__
    assert "sepal_length (number)" in command("info", place / "iris.quadric").stdout
    files.save(Network.create(2, [("reduced", 1, "logistic")], rng=0), tmp_path / "net")
    found = json.loads(command("info", tmp_path / "net", "--json").stdout)
    assert (found["kind"], found["parameters"]) == ("Network", 6)
    assert_error(command("info", place / "iris.csv"), "iris.csv")


def test_export_writes_a_graph_or_reports_the_missing_extra(place, tmp_path, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")
    result = command("export", place / "iris.quadric", "iris.onnx", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    session = onnxruntime.InferenceSession(tmp_path / "iris.onnx")
    assert session.get_outputs()
    monkeypatch.setitem(sys.modules, "quadric.onnx", None)  # as if the extra were missing
    result = command("export", place / "iris.quadric", tmp_path / "b.onnx")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1


def test_export_writes_code_that_predicts_the_same(place, tmp_path):
    hash_of_file = files.info(place / "iris.quadric")["hash"]
    for ending in ("h", "sql", "py"):
        result = command("export", place / "iris.quadric", tmp_path / f"iris.{ending}")
        assert result.returncode == 0, result.stderr
        assert hash_of_file in (tmp_path / f"iris.{ending}").read_text("utf-8")
    result = command("export", place / "iris.quadric", tmp_path / "a.sql", "--database", "oracle")
    assert_error(result, "oracle")
    module = {}
    exec((tmp_path / "iris.py").read_text("utf-8"), module)
    names = [name.split(" (")[0] for name in module["INPUTS"]]
    assert names == ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    pd = pytest.importorskip("pandas")
    model, rows = files.load(place / "iris.quadric"), pd.read_csv(place / "iris.csv")
    labels = [module["label"](row) for row in rows[names].to_numpy().tolist()]
    assert labels == model.predict(rows[names]).tolist()


@pytest.mark.slow
def test_an_exported_table_model_gives_the_same_predictions(tmp_path):
    """Text, integers with missing values, decimals: `predict --proba` and onnxruntime agree."""
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=200), rng.integers(0, 7, 200)
    colours = rng.choice(list("rgb"), 200)
    inside = np.where(np.abs(x) < 0.7, "in", "out")
    rows = [
        f"{x[i]:.6f},{colours[i]},{'' if i % 10 == 5 else n[i]},{inside[i]}" for i in range(200)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["x,colour,n,y", *rows]) + "\n")
    assert command("train", tmp_path / "a.csv", "-t", "y", "-o", tmp_path / "a").returncode == 0
    assert command("export", tmp_path / "a", tmp_path / "a.onnx").returncode == 0
    out = tmp_path / "out.csv"
    assert (
        command("predict", tmp_path / "a", tmp_path / "a.csv", "-o", out, "--proba").returncode == 0
    )
    import polars as pl

    said = pl.read_csv(out)
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    gaps = np.where(np.arange(200) % 10 == 5, np.nan, n)
    columns = {"x": np.round(x, 6), "colour": colours.astype(object), "n": gaps}
    feeds = {}
    for wanted in session.get_inputs():
        column = columns[wanted.name]
        kind = object if column.dtype == object else np.float32
        feeds[wanted.name] = column.astype(kind).reshape(-1, 1)
    label, probabilities = session.run(None, feeds)
    proba = said.select([name for name in said.columns if "proba" in name or "(" in name])
    assert said[said.columns[-1 - proba.width]].to_list() == label.ravel().tolist()
    np.testing.assert_allclose(probabilities, proba.to_numpy(), atol=1e-5)
    assert command("export", tmp_path / "a", tmp_path / "a.py").returncode == 0
    module = {}
    exec((tmp_path / "a.py").read_text("utf-8"), module)
    rows = zip(*(columns[name].tolist() for name in module["INPUTS"]), strict=True)
    found = [module["probabilities"](row) for row in rows]
    np.testing.assert_allclose(found, proba.to_numpy(), atol=1e-5)


def test_complexity_counts_parameters_multiplications_and_bytes():
    result = command("complexity", "784", "30", "10", "--kinds", "linear,quadratic", "--json")
    assert result.returncode == 0, result.stderr
    first, last = json.loads(result.stdout)["layers"]
    assert (first["parameters"], last["parameters"]) == (30 * 785, 10 * (30 * 31 // 2 + 31))
    assert last["multiplications_forward"] == 10 * 30 * 30 + 10 * 30
    assert last["bytes"] == {"float32": 4 * 4960, "float64": 8 * 4960}
    assert first["multiplications_step"] + last["multiplications_step"] == 62_910
    assert 0 < last["seconds_step_estimated"] < 0.01
    text = command("complexity", "784", "30", "10", "--nonzero", "0.19").stdout
    assert "19 % non-zero" in text
    assert "28,510" in text
    assert "estimate" in text
    every = json.loads(command("complexity", "5", "4", "3", "--kinds", "reduced", "--json").stdout)
    assert [layer["kind"] for layer in every["layers"]] == ["reduced", "reduced"]


def test_short_rows_and_quoted_separators_are_read(tmp_path):
    rows = [f"{x / 10},{x % 3},{'ab'[x % 2]}" for x in range(60)]
    (tmp_path / "a.csv").write_text('"x; y; z",n,t\n' + "\n".join(rows) + "\n")
    assert command("train", tmp_path / "a.csv", "-t", "t", "-o", tmp_path / "m").returncode == 0
    (tmp_path / "b.csv").write_text('"x; y; z",n\n0.5\n0.7\n')  # every row lacks its last value
    result = command("predict", tmp_path / "m", tmp_path / "b.csv", "-o", tmp_path / "out.csv")
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_writing_to_a_full_device_is_a_one_line_error(place):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "quadric", "info", str(place / "iris.quadric"), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("labels", [("007", "07"), ("9007199254740993", "9007199254740992")])
def test_labels_that_are_not_plain_numbers_stay_unchanged(tmp_path, labels):
    rows = [f"{x / 10},{x % 5},{labels[x > 30]}" for x in range(60)]
    (tmp_path / "a.csv").write_text("x,n,t\n" + "\n".join(rows) + "\n")
    assert command("train", tmp_path / "a.csv", "-t", "t", "-o", tmp_path / "m").returncode == 0
    arguments = ["predict", tmp_path / "m", tmp_path / "a.csv", "-o", tmp_path / "out.csv"]
    assert command(*arguments).returncode == 0
    said = (tmp_path / "out.csv").read_text().split()[1:]
    assert set(said) == set(labels)
    assert (np.array(said) == np.repeat(labels, [31, 29])).mean() > 0.9
