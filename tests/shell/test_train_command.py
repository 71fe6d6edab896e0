"""`quadric train`, and behavior common to all commands."""

import contextlib
import errno
import json
import os
import re
import resource
import shlex
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import quadric
from tests.support import processes
from tests.support.commands import assert_error, command, process, read_iris, write_iris
from tests.support.page_blocks import run_python

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_the_tour_of_the_readme(tmp_path):
    """The table is written as shown; every command runs unchanged and prints what is shown."""
    section = README.read_text().split("## From the shell")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    with contextlib.chdir(tmp_path):
        run_python(code, {})
    assert (tmp_path / "iris.csv").read_text() == write_iris(tmp_path / "same.csv").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    lines = [line.split("  #")[0].strip() for line in "".join(blocks).splitlines()]
    assert [shlex.split(line)[:2] for line in lines] == [
        ["quadric", name] for name in ("train", "predict", "explain", "plot", "export")
    ]
    said = []
    for line in lines:
        result = process(*shlex.split(line)[1:], cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        said.append(result.stdout)
    (shown,) = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    parts = [re.escape(part) for part in shown.split("...\n")]
    assert re.fullmatch(".*\n".join(parts), said[0], re.DOTALL)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 151
    assert "versicolor and virginica: " in said[2]
    assert (tmp_path / "iris.png").read_bytes().startswith(b"\x89PNG")
    assert "int model_label(" in (tmp_path / "iris.c").read_text()


def test_train_reports_scores(place):
    said = (place / "said.txt").read_text()
    for part in ("this model", "most frequent", "logistic", "95% interval", "Model: iris.quadric"):
        assert part in said
    assert "0.333" in said
    assert (
        "5-fold cross-validation, repeated 2 times; the saved model is trained on all rows" in said
    )
    model = quadric.load(place / "iris.quadric")
    assert model.score(*read_iris(place / "iris.csv")) > 0.9


@pytest.mark.slow
def test_options_of_train_reach_the_model_and_its_json(place, tmp_path):
    options = "-t species --cv 3 --hidden 6,5 --kind reduced --drop sepal_width --json --seed 3"
    arguments = ["train", place / "iris.csv", *options.split(), "-o", tmp_path / "a.quadric"]
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["task"] == "classification"
    assert found["left_out"] == {"sepal_width": "dropped on request"}
    assert set(found["scores"]) == {"this model", "most frequent class", "logistic regression"}
    assert np.sum(found["confusion"]) == 150
    network = quadric.load(tmp_path / "a.quadric")[-1].network_
    assert [layer.kind for layer in network.layers] == ["linear", "linear", "reduced"]
    assert [layer.n_outputs for layer in network.layers] == [6, 5, 3]
    again = command(*arguments)
    assert json.loads(again.stdout) == found


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes(place, tmp_path):
    for name in ("a", "b"):
        result = command("train", place / "iris.csv", "-t", "species", "-o", tmp_path / name)
        assert result.returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_unused_columns_and_imputed_values_are_reported(tmp_path):
    rows = [
        f"{i},{'' if i % 9 == 1 else i % 5},0{1 + i % 9}/0{1 + i % 7}/2024,k,{'ab'[i % 2]}"
        for i in range(60)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["n,hole,day,same,y", *rows, "1,1,,k,"]) + "\n")
    result = command("train", "a.csv", "-t", "y", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    notes = result.stderr
    assert "note: Column 'day' is not used: it contains dates such as '01/01/2024'" in notes
    assert "note: Column 'same' is not used: it has only one value." in notes
    assert "note: Imputed missing values in 'hole' (7): " in notes
    assert "note: Ignored 1 row without a value for 'y'." in notes
    assert (tmp_path / "a.quadric").exists()


def test_user_errors_print_one_line(place, tmp_path, monkeypatch):
    data = place / "iris.csv"
    assert_error(command("train", "none.csv", "-t", "y", cwd=tmp_path), "none.csv: No such file")
    assert_error(command("train", data, "-t", "y", "-o", tmp_path / "a"), "there is no column 'y'")
    assert_error(command("train", data, "-t", "species", "-o", tmp_path), "is a directory")
    assert_error(
        command("train", data, "-t", "species", "-o", tmp_path / "no" / "a"),
        "there is no directory",
    )
    assert_error(
        command("train", data, "-t", "species", "--cv", "60", "-o", tmp_path / "a"),
        "--cv 60 needs at least 60 rows of every class; 'setosa' has 50.",
    )
    assert_error(command("train", tmp_path, "-t", "y", "-o", tmp_path / "a"), "it is a directory")
    real = os.open

    def refuse(path, *arguments, **options):  # root may read any file
        if Path(path) == data:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, *arguments, **options)

    monkeypatch.setattr("os.open", refuse)
    assert_error(
        command("train", data, "-t", "species", "-o", tmp_path / "a"),
        f"cannot read {data}: Permission denied",
    )
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "a.csv"],
        ["train", "a.csv", "-t", "y", "--hidden", "many"],
        ["train", "a.csv", "-t", "y", "--hidden", "0"],
        ["train", "a.csv", "-t", "y", "--holdout", "--cv", "3"],
        ["train", "a.csv", "-t", "y", "--holdout", "--test", "b.csv"],
        ["train", "a.csv", "-t", "y", "--equation", "--hidden", "8"],
        ["train", "a.csv", "-t", "y", "--equation", "--kind", "reduced"],
        ["train", "a.csv", "-t", "y", "--equation", "--stream"],
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
    assert command(*arguments).returncode == 2


@pytest.mark.parametrize(
    "name", ["train", "predict", "explain", "plot", "info", "export", "complexity"]
)
def test_help_has_an_example(name):
    result = command(name, "--help")
    assert result.returncode == 0
    assert "Examples:" in result.stdout
    assert f"quadric {name}" in result.stdout


def small_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.slow
def test_an_existing_model_file_survives_a_failure(place, tmp_path):
    """The file is too large for the disk, or the directory is not writable."""
    shutil.copy(place / "iris.csv", tmp_path)
    precious = tmp_path / "iris.quadric"
    precious.write_text("precious")

    result = process("train", "iris.csv", "-t", "species", cwd=tmp_path, limit=small_disk)
    assert_error(result, "cannot save the model: File too large")
    assert precious.read_text() == "precious"
    write_iris(tmp_path / "many.csv", rows=np.arange(6000) % 150)
    (tmp_path / "out.csv").write_text("precious")
    result = process(
        "predict",
        place / "iris.quadric",
        "many.csv",
        "-o",
        "out.csv",
        "--proba",
        cwd=tmp_path,
        limit=small_disk,
    )
    assert_error(result, "File too large")
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "iris.csv",
        "iris.quadric",
        "many.csv",
        "out.csv",
    ]


@pytest.mark.slow
def test_a_full_disk_in_streaming_is_a_one_line_error(place, tmp_path):
    shutil.copy(place / "iris.csv", tmp_path)

    result = process(
        "train", "iris.csv", "-t", "species", "--stream", cwd=tmp_path, limit=small_disk
    )
    assert_error(result, "File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["iris.csv"]


def test_an_unwritable_output_is_reported_before_any_work(place, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "quadric.apps.shell.commands._console.os.access", lambda path, mode: not mode & os.W_OK
    )
    monkeypatch.setattr("quadric.apps.shell.tables.train", None)
    for arguments in (
        ["train", place / "iris.csv", "-t", "species", "-o", tmp_path / "a.quadric"],
        ["predict", place / "iris.quadric", place / "iris.csv", "-o", tmp_path / "a.csv"],
        ["plot", place / "iris.quadric", "-o", tmp_path / "a.png"],
        ["export", place / "iris.quadric", tmp_path / "a.onnx"],
    ):
        assert_error(command(*arguments), "permission denied")


@pytest.mark.slow
def test_interrupted_streaming_prints_how_to_resume(tmp_path):
    write_iris(tmp_path / "iris.csv", rows=np.arange(30_000) % 150)
    options = "-t species --stream --epochs 400 --buffer 3000 --checkpoint-every 1"
    process = processes.Started(
        ["-m", "quadric", "train", "iris.csv", *options.split()], cwd=tmp_path
    )
    checkpoint = tmp_path / "iris.quadric.checkpoint"
    end = time.monotonic() + 60
    while time.monotonic() < end and not checkpoint.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "with --resume to continue" in said
    assert checkpoint.exists()
    assert not (tmp_path / "iris.quadric").exists()


@pytest.mark.unix
def test_a_read_only_directory_is_a_one_line_error(place, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    result = command("train", place / "iris.csv", "-t", "species", "-o", closed / "a", cwd=tmp_path)
    assert_error(result, "permission denied")


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
        ("train", table, "-t", "species", "-o", tmp_path / "new", "--report", tmp_path / "new"),
    ):
        assert_error(command(*arguments), "would be overwritten")
    assert (model.read_bytes(), table.read_bytes()) == before


@pytest.mark.slow
def test_numeric_categories_are_formatted_one_by_one(tmp_path):
    """1.0 is the category '1', regardless of the other numbers in its batch."""
    import polars as pl

    rng = np.random.default_rng(0)
    k = rng.choice([1.0, 2.5, 3.0], 200)
    target = np.where(k == 1, "p", "n")
    table = {"k": k, "x": rng.normal(size=200), "t": target}
    pl.DataFrame(table).write_parquet(tmp_path / "a.parquet")
    arguments = ["train", tmp_path / "a.parquet", "-t", "t", "--categorical", "k"]
    assert command(*arguments, "-o", tmp_path / "m").returncode == 0
    for values in ([1.0, 1.0, 3.0], [1.0, 1.0, 3.0, 2.5]):
        pl.DataFrame({"k": values, "x": [0.0] * len(values)}).write_parquet(tmp_path / "b.parquet")
        result = command(
            "predict", tmp_path / "m", tmp_path / "b.parquet", "-o", tmp_path / "out.csv"
        )
        assert "were not seen" not in result.stderr
        assert pl.read_csv(tmp_path / "out.csv")["t"].to_list()[:3] == ["p", "p", "n"]
    pl.DataFrame({"x": k + rng.normal(size=200) / 10, "t": k}).write_parquet(tmp_path / "c.parquet")
    for stream in ([], ["--stream"]):
        result = command(
            "train",
            tmp_path / "c.parquet",
            "-t",
            "t",
            "--task",
            "classification",
            "--json",
            "-o",
            tmp_path / "c",
            *stream,
        )
        assert result.returncode == 0, result.stderr
        confusion = np.array(json.loads(result.stdout)["confusion"])
        assert (confusion.sum(axis=1) > 5).all()  # no class is lost
        assert np.trace(confusion) > 0.75 * confusion.sum()


def write_long_tails(path):
    """Write 300 rows: the product of the logarithms of two columns decides."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    columns = [100 * np.exp(1.5 * z[:, 0]), np.exp(1.5 * z[:, 1]), 40 + 10 * z[:, 2]]
    target = np.where(z[:, 0] * z[:, 1] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
    rows = [
        f"{a:.6g},{b:.6g},{c:.6g},{'x' if c > 40 else 'y'},{y}"
        for a, b, c, y in zip(*columns, target, strict=True)
    ]
    rows[5] = "," + rows[5].split(",", 1)[1]  # a missing amount
    path.write_text("\n".join(["amount,duration,age,kind,fraud", *rows]) + "\n")
    return path


@pytest.mark.slow
def test_train_transforms_long_tails_and_says_so(tmp_path):
    data, model = write_long_tails(tmp_path / "a.csv"), tmp_path / "a.quadric"
    train = ["train", data, "-t", "fraud", "-o", model, "--hidden", "none"]
    said = " ".join(command(*train).stdout.split())
    assert "Inputs with long tails: amount, duration; transformed by a power, which reduced" in said
    facts = json.loads(command(*train, "--json").stdout)["tails"]
    assert (facts["columns"], facts["transformed"]) == (["amount", "duration"], True)
    assert facts["transformed_loss"] < 0.95 * facts["kept_loss"]
    assert len(command("predict", model, data).stdout.splitlines()) == 301
    assert "amount·duration" in command("explain", model).stdout
    assert "Power). Fit with --tails keep instead." in command("certify", model, data).stderr
    assert json.loads(command(*train, "--tails", "keep", "--json").stdout)["tails"] is None
    assert command("certify", model, data).returncode == 0
    fixed = [*train, "--tails", "power", "--alpha", "1"]
    said = " ".join(command(*fixed).stdout.split())
    assert "amount, duration; transformed by a power." in said


def test_a_stream_does_not_transform_long_tails(place):
    result = command("train", place / "iris.csv", "-t", "species", "--stream", "--tails", "power")
    assert result.returncode == 2
    assert "--tails power cannot be combined with --stream" in result.stderr
