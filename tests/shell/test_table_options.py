"""Options for tables: formats, names with commas, kept columns, and scores of predictions."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from tests.support.commands import NAMES, assert_error, command, write_iris


def with_stdin(path, *arguments, cwd):
    with path.open("rb") as stream:
        return subprocess.run(
            [sys.executable, "-m", "quadric", *map(str, arguments)],
            stdin=stream,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
        )


@pytest.mark.slow
def test_predict_and_train_in_a_pipe(place, tmp_path):
    result = with_stdin(place / "iris.csv", "predict", place / "iris.quadric", "-", cwd=tmp_path)
    assert result.stdout == command("predict", place / "iris.quadric", place / "iris.csv").stdout
    result = with_stdin(place / "iris.csv", "train", "-", "-t", "species", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Model: stdin.quadric" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["stdin.quadric"]


def test_streaming_needs_a_file():
    result = command("train", "-", "-t", "species", "--stream")
    assert result.returncode == 2
    assert "--stream reads the table several times" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.csv.gz", lambda text: gzip.compress(text.encode()), []),
        ("a.csv", lambda text: text.encode("utf-16"), []),
        ("a.csv", lambda text: text.encode("latin-1"), ["--encoding", "latin-1"]),
        ("a.tsv", lambda text: text.replace(",", "\t").encode(), []),
        (
            "a.csv",
            lambda text: text.replace(",", ";").replace(".", ",").encode(),
            ["--decimal", ","],
        ),
    ],
)
def test_every_command_reads_other_formats(place, tmp_path, name, content, options):
    """The predictions are the same as those for the plain file."""
    table = tmp_path / name
    table.write_bytes(content((place / "iris.csv").read_text()))
    result = command("predict", place / "iris.quadric", table, "-o", tmp_path / "o.csv", *options)
    assert result.returncode == 0, result.stderr
    expected = command("predict", place / "iris.quadric", place / "iris.csv").stdout
    assert (tmp_path / "o.csv").read_text() == expected
    result = command("explain", place / "iris.quadric", table, *options)
    assert "for the 150 samples given" in result.stdout, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("stream", [[], ["--stream", "--epochs", "1"]])
def test_train_with_decimal_commas(place, tmp_path, stream):
    table = tmp_path / "de.csv"
    table.write_text((place / "iris.csv").read_text().replace(",", ";").replace(".", ","))
    arguments = ["train", table, "-t", "species", "-o", tmp_path / "m", "--json", *stream]
    found = json.loads(command(*arguments, "--decimal", ",").stdout)
    assert [column["kind"] for column in found["columns"]] == ["number"] * 4
    assert found["findings"] == []
    assert json.loads(command(*arguments).stdout) == found  # recognized
    assert found["notes"][0].startswith("Read as numbers: 'sepal_length' (decimal mark ',')")
    arguments = ["predict", place / "iris.quadric", table]
    assert_error(
        command(*arguments), "contains '5,1'. If commas are decimal marks, use --decimal ,"
    )


@pytest.mark.slow
def test_likely_mistakes_are_reported(place, tmp_path):
    lines = (place / "iris.csv").read_text().splitlines()
    lines[5] = "5.1cm" + lines[5][3:]
    rows = [f"{i * 7919 % 1009},{line}" for i, line in enumerate(lines[1:])]
    (tmp_path / "a.csv").write_text("\n".join([f"customer_id,{lines[0]}", *rows]) + "\n")
    result = command("train", "a.csv", "-t", "species", cwd=tmp_path)
    for part in (
        "are used as categories: 'sepal_length' (1 value; '5.1cm' in row 5)",
        "identifiers or codes: 'customer_id'. If so, use --drop customer_id",
    ):
        assert result.stdout.count(part) == 1  # among the remarks
        assert part not in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--drop", "sepal, length", "--drop", "petal_width"],
        ["--drop", '"sepal, length",petal_width'],
        ["--drop", "petal_width", "--drop", "sepal, length"],
    ],
)
def test_names_with_commas(tmp_path, options):
    names = ['"sepal, length"', *NAMES[1:]]
    write_iris(tmp_path / "a.csv", names)
    result = command("train", "a.csv", "-t", "species", *options, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [column["name"] for column in found["columns"]] == ["sepal_width", "petal_length"]


def test_several_names_in_one_option_are_split(place, tmp_path):
    options = ["--drop", "sepal_length,sepal_width", "-o", tmp_path / "m", "--json"]
    found = json.loads(command("train", place / "iris.csv", "-t", "species", *options).stdout)
    assert [column["name"] for column in found["columns"]] == NAMES[2:]
    assert_error(
        command(
            "train", place / "iris.csv", "-t", "species", "--drop", "a,b", "-o", tmp_path / "m"
        ),
        "there is no column 'a'. The columns are 'sepal_length'",
    )


def test_a_directory_without_a_table(tmp_path):
    assert_error(
        command("train", ".", "-t", "y", cwd=tmp_path), "a directory without Parquet files"
    )
    assert_error(command("train", "*.csv", "-t", "y", cwd=tmp_path), "no file matches *.csv")


@pytest.mark.slow
def test_default_names_follow_the_input(place, tmp_path):
    parts = tmp_path / "sales.2024"
    parts.mkdir()
    frame = pl.read_csv(place / "iris.csv")
    for i in range(2):
        frame[i::2].write_parquet(parts / f"part-{i}.parquet")
    for directory, data in ((tmp_path, parts), (parts, "."), (tmp_path, "sales.2024/*.parquet")):
        result = command("train", data, "-t", "species", "--test-size", "0", cwd=directory)
        assert result.returncode == 0, result.stderr
        assert (directory / "sales.quadric").exists()
        (directory / "sales.quadric").unlink()
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((place / "iris.csv").read_bytes()))
    assert command("train", "b.csv.gz", "-t", "species", cwd=tmp_path).returncode == 0
    assert (tmp_path / "b.quadric").exists()
    assert command("plot", place / "iris.quadric", cwd=tmp_path).returncode == 0
    assert (tmp_path / "iris.png").exists()


def test_the_format_of_the_output_follows_its_name(place, tmp_path):
    model, table = place / "iris.quadric", place / "iris.csv"
    for name in ("o.csv", "o.tsv", "o.parquet"):
        result = command("predict", model, table, "--proba", "-o", tmp_path / name)
        assert result.returncode == 0, result.stderr
    expected = pl.read_parquet(tmp_path / "o.parquet")
    assert pl.read_csv(tmp_path / "o.csv").equals(expected)
    assert pl.read_csv(tmp_path / "o.tsv", separator="\t").equals(expected)
    for name in ("o.xlsx", "o.json", "o.csv.gz"):
        result = command("predict", model, table, "-o", tmp_path / name)
        assert result.returncode == 2
        assert ".csv, .tsv or .parquet" in " ".join(re.split(r"[│\s]+", result.stderr))
        assert not (tmp_path / name).exists()


def test_predict_keeps_columns(place, tmp_path):
    lines = (place / "iris.csv").read_text().splitlines()
    rows = [f"{i:04d},{line}" for i, line in enumerate(lines[1:])]
    (tmp_path / "a.csv").write_text("\n".join([f'"id, of row",{lines[0]}', *rows]) + "\n")
    keep = ["--keep", "id, of row", "--keep", "petal_width,petal_length"]
    result = command("predict", place / "iris.quadric", tmp_path / "a.csv", *keep)
    assert result.returncode == 0, result.stderr
    said = result.stdout.splitlines()
    header = '"id, of row",petal_width,petal_length,species,outside_range'
    assert said[:2] == [header, "0000,0.2,1.4,setosa,"]
    assert len(said) == 151
    assert "does not use" not in result.stderr
    arguments = ["predict", place / "iris.quadric", tmp_path / "a.csv"]
    assert_error(
        command(*arguments, "--keep", "species"), "the same name as a column of predictions"
    )
    assert_error(command(*arguments, "--keep", "key"), "there is no column 'key'")


def test_predict_scores_a_table_with_the_target(place, tmp_path):
    result = command("predict", place / "iris.quadric", place / "iris.csv")
    truth = pl.read_csv(place / "iris.csv")["species"].to_list()
    right = np.mean(np.array(result.stdout.split()[1:]) == truth)
    assert f"Scores on 150 rows with a value for 'species': accuracy {right:.3f}." in result.stderr
    lines = (place / "iris.csv").read_text().splitlines()
    lines[1:101] = [line.rpartition(",")[0] + "," for line in lines[1:101]]  # 50 targets are left
    (tmp_path / "half.csv").write_text("\n".join(lines) + "\n")
    arguments = [place / "iris.quadric", tmp_path / "half.csv", "-o", tmp_path / "o.csv", "--json"]
    found = json.loads(command("predict", *arguments).stdout)["scores"]
    said = (tmp_path / "o.csv").read_text().split()[101:]
    assert found == {"rows": 50, "accuracy": pytest.approx(said.count("virginica") / 50)}


@pytest.mark.slow
def test_predict_scores_a_regression(place, tmp_path):
    model = tmp_path / "m"
    arguments = ["train", place / "iris.csv", "-t", "petal_width", "-o", model, "--test-size", "0"]
    assert command(*arguments).returncode == 0
    arguments = ["predict", model, place / "iris.csv", "-o", tmp_path / "o.csv", "--json"]
    found = json.loads(command(*arguments).stdout)["scores"]
    y = pl.read_csv(place / "iris.csv")["petal_width"].to_numpy()
    error = pl.read_csv(tmp_path / "o.csv")["petal_width"].to_numpy() - y
    assert found["mean_absolute_error"] == pytest.approx(np.abs(error).mean())
    assert found["R²"] == pytest.approx(1 - (error**2).sum() / ((y - y.mean()) ** 2).sum())
    text = (place / "iris.csv").read_text().replace("0.2,", "narrow,")
    (tmp_path / "a.csv").write_text(text)
    result = command("predict", model, tmp_path / "a.csv", "-o", tmp_path / "o.csv")
    assert result.returncode == 0
    assert "The predictions are not scored: column 'petal_width' must contain" in result.stderr


@pytest.mark.slow
def test_a_thousand_classes(tmp_path):
    rng = np.random.default_rng(0)
    k = np.arange(3000) % 1000
    x, z = k % 32 + rng.normal(size=3000) / 20, k // 32 + rng.normal(size=3000) / 20
    pl.DataFrame({"x": x, "z": z, "class": k}).write_csv(tmp_path / "a.csv")
    options = ["--task", "classification", "--max-iter", "20", "--json"]
    result = command("train", "a.csv", "-t", "class", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["classes"] == list(range(1000))
    assert found["scores"]["this model"] > 10 * found["scores"]["most frequent class"]
    assert "confusion" not in found


HEAVY = ("sklearn", "numba", "scipy", "matplotlib")


@pytest.mark.parametrize(
    ("arguments", "heavy", "words"),
    [
        (["--help"], ("polars", "numpy", *HEAVY), ""),
        (["train", "none.csv", "-t", "y"], ("polars", "numpy", *HEAVY), "none.csv: No such file"),
        (["predict", "none.quadric", "iris.csv"], ("polars", "numpy", *HEAVY), "No such file"),
        (["explain", "iris.quadric", "none.csv"], ("polars", "numpy", *HEAVY), "No such file"),
        (["train", "iris.csv", "-t", "y"], ("polars", "numpy", *HEAVY), "there is no column 'y'"),
        (
            ["train", "iris.csv", "-t", "species", "--drop", "a,b"],
            ("polars", "numpy", *HEAVY),
            "there is no column 'a'",
        ),
        (["predict", "iris.csv", "iris.csv"], HEAVY, "iris.csv"),
    ],
)
def test_errors_are_reported_before_slow_imports(place, arguments, heavy, words):
    script = (
        f"import sys; sys.argv = ['quadric', *{arguments!r}]\n"
        "from quadric.__main__ import main\n"
        "try:\n    main()\n"
        f"finally:\n    print('loaded', [n for n in {heavy!r} if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=place, check=False
    )
    assert result.stdout.endswith("loaded []\n"), result.stdout
    assert words in result.stderr
