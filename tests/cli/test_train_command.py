"""The commands around a model file, as processes: train, predict, explain, plot, info, export."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from typer.testing import CliRunner

import quadric
from quadric import Network, model_file
from quadric.cli import app
from quadric.reference import _counts as counts

README = Path(__file__).parents[2] / "README.md"
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def write_iris(path, names=NAMES, rows=slice(None), target="species"):
    iris = load_iris()
    lines = [",".join([*names, target])]
    for x, k in zip(iris.data[rows], iris.target[rows], strict=True):
        lines.append(",".join([*map(str, x[-len(names) :]), str(iris.target_names[k])]))
    path.write_text("\n".join(lines) + "\n")
    return path


def command(*arguments, cwd, preexec_fn=None):
    return subprocess.run(
        [sys.executable, "-m", "quadric", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, check=False, preexec_fn=preexec_fn,
    )  # fmt: skip


def quick(*arguments):
    """Within this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def is_one_line(result, part):
    code = result.returncode if hasattr(result, "returncode") else result.exit_code
    assert code == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert part in result.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with iris.csv and the model trained on it."""
    directory = tmp_path_factory.mktemp("place")
    write_iris(directory / "iris.csv")
    result = command(
        "train", "iris.csv", "--target", "species", "-o", "iris.quadric", cwd=directory
    )
    assert result.returncode == 0, result.stderr
    (directory / "said.txt").write_text(result.stdout)
    return directory


# ---- the README's tour ---------------------------------------------------------------------


def test_the_tour_of_the_readme(tmp_path):
    """Every command is run as it stands; what it prints is what the README shows."""
    section = README.read_text().split("## From the shell")[1].split("\n## ")[0]
    write_iris(tmp_path / "iris.csv")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
             for line in block.splitlines()]  # fmt: skip
    lines = [line.split("  #")[0].strip() for line in lines]
    assert [shlex.split(line)[:2] for line in lines] == [
        ["quadric", name] for name in ("train", "predict", "explain", "plot", "export")
    ]
    said = []
    for line in lines:
        result = command(*shlex.split(line)[1:], cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        said.append(result.stdout)
    (shown,) = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    assert said[0] == shown
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 151
    assert "versicolor and virginica: " in said[2]
    assert (tmp_path / "iris.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "iris.onnx").stat().st_size > 500


# ---- train ---------------------------------------------------------------------------------


def test_train_says_how_good_the_model_is(place):
    said = (place / "said.txt").read_text()
    for part in ("this model", "most frequent class", "logistic regression", "Model: iris.quadric"):
        assert part in said
    assert "0.333" in said
    assert "38 rows held out" in said or "36 rows held out" in said
    model = quadric.load(place / "iris.quadric")
    assert model.score(*_frame(place / "iris.csv")) > 0.9


def _frame(path):
    import polars as pl

    frame = pl.read_csv(path)
    return frame.select(NAMES), frame["species"].to_numpy()


def test_train_json_and_options(place, tmp_path):
    arguments = ["train", place / "iris.csv", "-t", "species", "--cv", "3", "--hidden", "6,5",
                 "--kind", "reduced", "--drop", "sepal_width", "-o", tmp_path / "a.quadric",
                 "--json", "--seed", "3"]  # fmt: skip
    result = quick(*arguments)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["task"] == "classification"
    assert found["left_out"] == {"sepal_width": "as you asked"}
    assert set(found["scores"]) == {"this model", "most frequent class", "logistic regression"}
    assert np.sum(found["confusion"]) == 150
    network = quadric.load(tmp_path / "a.quadric")[-1].network_
    assert [layer.kind for layer in network.layers] == ["linear", "linear", "reduced"]
    assert [layer.n_outputs for layer in network.layers] == [6, 5, 3]
    again = quick(*arguments)
    assert json.loads(again.stdout) == found


def test_the_same_command_gives_the_same_bytes(place, tmp_path):
    for name in ("a", "b"):
        result = quick("train", place / "iris.csv", "-t", "species", "-o", tmp_path / name)
        assert result.exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_is_left_out_or_filled_in_is_said(tmp_path):
    rows = [f"{i},{'' if i % 9 == 1 else i % 5},2024-01-{1 + i % 28:02d},k,{'ab'[i % 2]}"
            for i in range(60)]  # fmt: skip
    (tmp_path / "a.csv").write_text("\n".join(["n,hole,day,same,y", *rows, "1,1,,k,"]) + "\n")
    result = command("train", "a.csv", "-t", "y", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    notes = result.stderr
    assert "note: 'day' is left out: it holds dates" in notes
    assert "note: 'same' is left out: it has only one value." in notes
    assert "note: Missing values in 'hole' (7) are imputed" in notes
    assert "note: 1 row without 'y' is not used." in notes
    assert (tmp_path / "a.quadric").exists()


def test_mistakes_of_the_user(place, tmp_path, monkeypatch):
    data = place / "iris.csv"
    is_one_line(command("train", "none.csv", "-t", "y", cwd=tmp_path), "none.csv: No such file")
    is_one_line(quick("train", data, "-t", "y", "-o", tmp_path / "a"), "there is no column 'y'")
    is_one_line(quick("train", data, "-t", "species", "-o", tmp_path), "is a directory")
    is_one_line(
        quick("train", data, "-t", "species", "-o", tmp_path / "no" / "a"), "there is no directory"
    )
    is_one_line(
        quick("train", data, "-t", "species", "--cv", "60", "-o", tmp_path / "a"),
        "--cv 60 needs 60 rows of every class; 'setosa' has 50.",
    )
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.R_OK)  # root may read all
    assert quick("train", data, "-t", "y", "-o", tmp_path / "a").exit_code == 1
    monkeypatch.undo()
    is_one_line(quick("train", tmp_path, "-t", "y", "-o", tmp_path / "a"), "it is a directory")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "a.csv"],
        ["train", "a.csv", "-t", "y", "--hidden", "many"],
        ["train", "a.csv", "-t", "y", "--hidden", "0"],
        ["train", "a.csv", "-t", "y", "--cv", "1"],
        ["train", "a.csv", "-t", "y", "--kind", "cubic"],
        ["train", "a.csv", "-t", "y", "--stream", "--cv", "5"],
        ["train", "a.csv", "-t", "y", "--resume"],
        ["train", "a.csv", "-t", "y", "--test-size", "1.5"],
        ["predict", "a.quadric"],
        ["predict", "a.quadric", "a.csv", "--json"],
        ["plot", "a.quadric", "-o", "a.txt"],
        ["export", "a.quadric", "a.txt"],
        ["complexity", "10"],
        ["complexity", "10", "5", "--kinds", "cubic"],
        ["complexity", "10", "5", "2", "--kinds", "linear,linear,linear"],
    ],
)
def test_usage_mistakes_have_exit_code_2(arguments):
    assert quick(*arguments).exit_code == 2


@pytest.mark.parametrize("name", ["train", "predict", "explain", "plot", "info", "export",
                                  "complexity"])  # fmt: skip
def test_help_has_an_example(name):
    result = quick(name, "--help")
    assert result.exit_code == 0
    assert re.search(r"Examples?: ", result.stdout)
    assert f"quadric {name}" in result.stdout


def test_the_model_file_that_was_there_survives(place, tmp_path):
    """A file too large for the disk, and a directory that is not ours to write."""
    shutil.copy(place / "iris.csv", tmp_path)
    precious = tmp_path / "iris.quadric"
    precious.write_text("precious")

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = command("train", "iris.csv", "-t", "species", cwd=tmp_path, preexec_fn=small_disk)
    is_one_line(result, "cannot save the model: File too large")
    assert precious.read_text() == "precious"
    write_iris(tmp_path / "many.csv", rows=np.arange(6000) % 150)
    (tmp_path / "out.csv").write_text("precious")
    result = command(
        "predict", place / "iris.quadric", "many.csv", "-o", "out.csv", "--proba", cwd=tmp_path,
        preexec_fn=small_disk,
    )  # fmt: skip
    is_one_line(result, "File too large")
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "iris.csv", "iris.quadric", "many.csv", "out.csv",
    ]  # fmt: skip


def test_a_full_disk_in_streaming(place, tmp_path):
    shutil.copy(place / "iris.csv", tmp_path)

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = command(
        "train", "iris.csv", "-t", "species", "--stream", cwd=tmp_path, preexec_fn=small_disk
    )
    is_one_line(result, "File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["iris.csv"]


def test_an_output_that_cannot_be_written_is_said_before_the_work(place, tmp_path, monkeypatch):
    monkeypatch.setattr("quadric.cli._console.os.access", lambda path, mode: not mode & os.W_OK)
    monkeypatch.setattr("quadric.tables.train", None)
    for arguments in (
        ["train", place / "iris.csv", "-t", "species", "-o", tmp_path / "a.quadric"],
        ["predict", place / "iris.quadric", place / "iris.csv", "-o", tmp_path / "a.csv"],
        ["plot", place / "iris.quadric", "-o", tmp_path / "a.png"],
        ["export", place / "iris.quadric", tmp_path / "a.onnx"],
    ):
        is_one_line(quick(*arguments), "permission denied")


def test_interrupted_streaming_says_how_to_go_on(place, tmp_path):
    write_iris(tmp_path / "iris.csv", rows=np.arange(30_000) % 150)
    arguments = [sys.executable, "-m", "quadric", "train", "iris.csv", "-t", "species", "--stream",
                 "--epochs", "400", "--buffer", "3000", "--checkpoint-every", "1"]  # fmt: skip
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    checkpoint = tmp_path / "iris.quadric.checkpoint"
    end = time.monotonic() + 60
    while time.monotonic() < end and not checkpoint.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "--resume goes on" in said
    assert checkpoint.exists()
    assert not (tmp_path / "iris.quadric").exists()


# ---- predict -------------------------------------------------------------------------------


def test_predict_matches_columns_by_name(place, tmp_path):
    rows = (place / "iris.csv").read_text().splitlines()
    turned = [",".join(["more", *row.split(",")[3::-1]]) for row in rows]
    (tmp_path / "new.csv").write_text("\n".join(turned) + "\n")
    result = command(
        "predict", place / "iris.quadric", "new.csv", "-o", "out.csv", "--proba", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "150 predictions: out.csv\n"
    assert "Columns that the model does not use: 'more'." in result.stderr
    found = np.genfromtxt(tmp_path / "out.csv", delimiter=",", skip_header=1)[:, 1:]
    X, _ = _frame(place / "iris.csv")
    assert np.allclose(found, quadric.load(place / "iris.quadric").predict_proba(X), atol=1e-12)
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o644


def test_predict_to_stdout_and_into_a_closed_pipe(place):
    result = command("predict", "iris.quadric", "iris.csv", cwd=place)
    assert result.stdout.splitlines()[:2] == ["species", "setosa"]
    assert len(result.stdout.splitlines()) == 151
    write_iris(place / "many.csv", rows=np.arange(60_000) % 150)
    shell = f"{sys.executable} -m quadric predict iris.quadric many.csv --proba | head -n 1"
    result = subprocess.run(
        shell, shell=True, capture_output=True, text=True, cwd=place, check=False
    )
    assert result.stdout.startswith("species,probability of setosa")
    assert result.stderr == ""


def test_predict_and_a_table_that_does_not_fit(place, tmp_path):
    write_iris(tmp_path / "two.csv", NAMES[2:])
    result = command("predict", place / "iris.quadric", "two.csv", "-o", "o.csv", cwd=tmp_path)
    is_one_line(result, "columns 'sepal_length', 'sepal_width' must be there")
    assert not (tmp_path / "o.csv").exists()
    fitted = quadric.QuadraticLogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    model_file.save(fitted, tmp_path / "net")
    is_one_line(quick("predict", tmp_path / "net", tmp_path / "two.csv"), "`quadric train`")
    is_one_line(quick("predict", tmp_path / "two.csv", tmp_path / "two.csv"), "two.csv")
    is_one_line(quick("predict", tmp_path / "none", tmp_path / "two.csv"), "there is no file")


# ---- explain, plot, info, export, complexity -----------------------------------------------


def test_explain_in_the_users_units(place):
    result = command("explain", "iris.quadric", "iris.csv", cwd=place)
    assert result.returncode == 0, result.stderr
    assert "in your own units" in result.stdout
    assert "petal_width" in result.stdout
    assert "on the 150 samples given" in result.stdout
    found = json.loads(quick("explain", place / "iris.quadric", "--json").stdout)
    assert [item["label"] for item in found["classes"]] == ["setosa", "versicolor", "virginica"]
    assert len(found["boundaries"]) == 3
    is_one_line(quick("explain", place / "iris.csv"), "iris.csv")


def test_explain_with_categories_and_holes(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.3f},{'' if i % 9 == 0 else 'rgb'[i % 3]},{'' if i % 10 == 5 else i % 7},"
        f"{'in' if abs(x) < 0.7 else 'out'}"
        for i, x in enumerate(rng.normal(size=120))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["x,colour,n,y", *rows]) + "\n")
    assert quick("train", tmp_path / "a.csv", "-t", "y", "-o", tmp_path / "a").exit_code == 0
    result = quick("explain", tmp_path / "a", tmp_path / "a.csv")
    assert result.exit_code == 0, result.stderr
    assert "colour_missing" in result.stdout or "smaller terms" in result.stdout
    assert "12 rows with missing values are not used" in result.stderr
    assert "on the 108 samples given" in result.stdout


def test_plot(place, tmp_path):
    result = command("plot", place / "iris.quadric", "-o", "a.png", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "versicolor and virginica tie" in result.stderr
    with_points = tmp_path / "b.svg"
    arguments = [place / "iris.quadric", place / "iris.csv", "--classes", "setosa,virginica"]
    assert quick("plot", *arguments, "-o", with_points).exit_code == 0
    assert with_points.read_text().startswith("<?xml")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    is_one_line(
        quick("plot", place / "iris.quadric", "--classes", "rose,tulip", "-o", with_points),
        "--classes takes two of the model's classes, setosa, versicolor, virginica",
    )
    write_iris(tmp_path / "two.csv", NAMES[2:])
    model = tmp_path / "two.quadric"
    assert quick("train", tmp_path / "two.csv", "-t", "species", "-o", model).exit_code == 0
    for data in ([], [tmp_path / "two.csv"]):
        result = quick("plot", model, *data, "-o", tmp_path / "c.png")
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / "c.png").stat().st_size > 10_000
        (tmp_path / "c.png").unlink()
    hidden = ["train", place / "iris.csv", "-t", "species", "--hidden", "5", "-o", model]
    assert quick(*hidden).exit_code == 0
    is_one_line(quick("plot", model, "-o", tmp_path / "d.png"), "hidden layer and 4 inputs")
    numbers = ["train", place / "iris.csv", "-t", "petal_width", "-o", model]
    assert quick(*numbers).exit_code == 0
    is_one_line(quick("plot", model, "-o", tmp_path / "d.png"), "only a classifier")


def test_plot_images(tmp_path):
    digits = load_digits()
    lines = [",".join([*(f"p{i}" for i in range(64)), "digit"])]
    for x, y in zip(digits.data[:150], digits.target[:150], strict=True):
        lines.append(",".join([*map(str, x.astype(int)), str(y)]))
    (tmp_path / "digits.csv").write_text("\n".join(lines) + "\n")
    model = tmp_path / "digits.quadric"
    result = quick("train", tmp_path / "digits.csv", "-t", "digit", "-o", model, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == list(range(10))
    assert "'p0' is left out" in result.stdout + result.stderr  # constant pixels are no inputs
    result = quick("plot", model, "--image-shape", "8x8", "-o", tmp_path / "a.png")
    assert result.exit_code == 0, result.stderr
    is_one_line(
        quick("plot", model, "--image-shape", "7x8", "-o", tmp_path / "a.png"), "pixels in all"
    )
    assert quick("plot", model, "--image-shape", "x", "-o", tmp_path / "a.png").exit_code == 2


def test_info(place, tmp_path):
    result = command("info", "iris.quadric", "--json", cwd=place)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["kind"] == "QuadraticClassifier"
    assert found["preprocessing"] == ["SimpleImputer", "StandardScaler"]
    assert found["layers"] == ["4 -> 3 quadratic (softmax)"]
    assert found["parameters"] == counts.PARAMETERS["qnn"](3, 4) == 45
    assert found["classes"] == ["setosa", "versicolor", "virginica"]
    assert found["columns"][0] == "sepal_length (number)"
    assert found["versions"]["quadric"] == quadric.__version__
    assert "sepal_length (number)" in quick("info", place / "iris.quadric").stdout
    model_file.save(Network.create(2, [("reduced", 1, "logistic")], rng=0), tmp_path / "net")
    found = json.loads(quick("info", tmp_path / "net", "--json").stdout)
    assert (found["kind"], found["parameters"]) == ("Network", 6)
    is_one_line(quick("info", place / "iris.csv"), "iris.csv")


def test_export(place, tmp_path, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")
    result = command("export", place / "iris.quadric", "iris.onnx", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    session = onnxruntime.InferenceSession(tmp_path / "iris.onnx")
    assert session.get_outputs()
    monkeypatch.setitem(sys.modules, "quadric.onnx", None)  # as where the extra is missing
    result = quick("export", place / "iris.quadric", tmp_path / "b.onnx")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_an_exported_table_gives_the_same_answers(tmp_path):
    """Text, whole numbers with holes and decimals: `predict --proba` and onnxruntime agree."""
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=200), rng.integers(0, 7, 200)
    colours = rng.choice(list("rgb"), 200)
    inside = np.where(np.abs(x) < 0.7, "in", "out")
    rows = [
        f"{x[i]:.6f},{colours[i]},{'' if i % 10 == 5 else n[i]},{inside[i]}" for i in range(200)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["x,colour,n,y", *rows]) + "\n")
    assert quick("train", tmp_path / "a.csv", "-t", "y", "-o", tmp_path / "a").exit_code == 0
    assert quick("export", tmp_path / "a", tmp_path / "a.onnx").exit_code == 0
    out = tmp_path / "out.csv"
    assert quick("predict", tmp_path / "a", tmp_path / "a.csv", "-o", out, "--proba").exit_code == 0
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


def test_complexity():
    result = quick("complexity", "784", "30", "10", "--kinds", "linear,quadratic", "--json")
    assert result.exit_code == 0, result.stderr
    first, last = json.loads(result.stdout)["layers"]
    assert (first["parameters"], last["parameters"]) == (30 * 785, 10 * (30 * 31 // 2 + 31))
    assert last["multiplications_forward"] == 10 * 30 * 30 + 10 * 30
    assert last["bytes"] == {"float32": 4 * 4960, "float64": 8 * 4960}
    assert 0 < last["seconds_step_estimated"] < 0.01
    text = quick("complexity", "784", "30", "10").stdout
    assert "28,510" in text
    assert "estimate" in text
    every = json.loads(quick("complexity", "5", "4", "3", "--kinds", "reduced", "--json").stdout)
    assert [layer["kind"] for layer in every["layers"]] == ["reduced", "reduced"]


def test_a_read_only_directory(place, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    result = command("train", place / "iris.csv", "-t", "species", "-o", closed / "a", cwd=tmp_path)
    is_one_line(result, "permission denied")


def test_an_output_that_is_also_an_input_is_refused(place, tmp_path):
    model, table = tmp_path / "m.quadric", tmp_path / "iris.csv"
    shutil.copy(place / "iris.quadric", model)
    shutil.copy(place / "iris.csv", table)
    before = model.read_bytes(), table.read_bytes()
    for arguments in (
        ("train", table, "-t", "species", "-o", table),
        ("predict", model, table, "-o", table),
        ("predict", model, table, "-o", model),
        ("export", model, model),
    ):
        is_one_line(quick(*arguments), "it would be lost")
    assert (model.read_bytes(), table.read_bytes()) == before


def test_numbers_as_categories_are_spelled_one_by_one(tmp_path):
    """1.0 is the category '1' whatever other numbers are in its batch."""
    import polars as pl

    rng = np.random.default_rng(0)
    k = rng.choice([1.0, 2.5, 3.0], 200)
    target = np.where(k == 1, "p", "n")
    table = {"k": k, "x": rng.normal(size=200), "t": target}
    pl.DataFrame(table).write_parquet(tmp_path / "a.parquet")
    arguments = ["train", tmp_path / "a.parquet", "-t", "t", "--categorical", "k"]
    assert quick(*arguments, "-o", tmp_path / "m").exit_code == 0
    for values in ([1.0, 1.0, 3.0], [1.0, 1.0, 3.0, 2.5]):
        pl.DataFrame({"k": values, "x": [0.0] * len(values)}).write_parquet(tmp_path / "b.parquet")
        result = quick(
            "predict", tmp_path / "m", tmp_path / "b.parquet", "-o", tmp_path / "out.csv"
        )
        assert "were not seen" not in result.stderr
        assert pl.read_csv(tmp_path / "out.csv")["t"].to_list()[:3] == ["p", "p", "n"]
    pl.DataFrame({"x": k + rng.normal(size=200) / 10, "t": k}).write_parquet(tmp_path / "c.parquet")
    for stream in ([], ["--stream"]):
        result = quick(
            "train", tmp_path / "c.parquet", "-t", "t", "--task", "classification", "--json",
            "-o", tmp_path / "c", *stream,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        confusion = np.array(json.loads(result.stdout)["confusion"])
        assert (confusion.sum(axis=1) > 5).all()  # no class is lost
        assert np.trace(confusion) > 0.75 * confusion.sum()


def test_short_rows_and_quoted_separators(tmp_path):
    rows = [f"{x / 10},{x % 3},{'ab'[x % 2]}" for x in range(60)]
    (tmp_path / "a.csv").write_text('"x; y; z",n,t\n' + "\n".join(rows) + "\n")
    assert quick("train", tmp_path / "a.csv", "-t", "t", "-o", tmp_path / "m").exit_code == 0
    (tmp_path / "b.csv").write_text('"x; y; z",n\n0.5\n0.7\n')  # every row lacks its last value
    result = quick("predict", tmp_path / "m", tmp_path / "b.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_standard_output_is_one_line(place):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "quadric", "info", str(place / "iris.quadric"), "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("labels", [("007", "07"), ("9007199254740993", "9007199254740992")])
def test_labels_that_are_no_plain_numbers_stay_as_they_are(tmp_path, labels):
    rows = [f"{x / 10},{x % 5},{labels[x > 30]}" for x in range(60)]
    (tmp_path / "a.csv").write_text("x,n,t\n" + "\n".join(rows) + "\n")
    assert quick("train", tmp_path / "a.csv", "-t", "t", "-o", tmp_path / "m").exit_code == 0
    arguments = ["predict", tmp_path / "m", tmp_path / "a.csv", "-o", tmp_path / "out.csv"]
    assert quick(*arguments).exit_code == 0
    said = (tmp_path / "out.csv").read_text().split()[1:]
    assert set(said) == set(labels)
    assert (np.array(said) == np.repeat(labels, [31, 29])).mean() > 0.9
