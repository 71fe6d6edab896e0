"""`quadric reproduce`: reports, interruptions and failures."""

import json
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest

import quadric
from quadric import datasets
from quadric.apps.paper import EXPERIMENTS, Outcome
from quadric.apps.paper.sweep import RECIPES, Recipe
from quadric.datasets import _sources as sources
from quadric.datasets._sources import ImageSource, UnavailableError
from tests.support import processes
from tests.support.commands import assert_error, assert_one_screen, command, process, strict_json


@pytest.mark.slow
def test_reproduce_xor_writes_a_report(tmp_path):
    arguments = ["reproduce", "xor", "--seeds", "3", "--out", "pictures"]
    result = command(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_one_screen(result.stdout)
    assert "xor: runs that learn XOR a figure 6/6  holds" in result.stdout
    assert "One quadratic neuron learns XOR in 6 of 6 runs" in result.stdout
    assert "Report: pictures/index.html" in result.stdout
    assert "ellipse 3" in (tmp_path / "pictures" / "index.html").read_text()
    picture = tmp_path / "pictures" / "xor.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
    detailed = command(*arguments, "--details", cwd=tmp_path).stdout
    assert "ellipse 3" in detailed
    assert "hyperbola 3" in detailed
    assert "Other claims of the paper that do not hold" in detailed
    assert detailed.endswith("Report: pictures/index.html\n")


@pytest.mark.slow
def test_json_output_is_valid(tmp_path):
    result = command("reproduce", "xor", "--seeds", "2", "--json", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    (xor,) = json.loads(result.stdout)["experiments"]
    assert xor["tables"]["xor"][0]["ours"] == "ellipse 2"
    verdicts = {claim["id"]: claim["verdict"] for claim in xor["claims"]}
    assert verdicts["xor-linear"] == "holds"
    assert verdicts["xor-ellipse"] == "holds with a condition"
    assert xor["claims"][-1]["text"] == "A single linear neuron cannot learn XOR."
    assert xor["headline"] == {
        "what": "xor: runs that learn XOR",
        "paper": "a figure",
        "ours": "4/4",
        "verdict": "holds",
        "claim": "xor-quadratic",
    }


def test_unwritable_output_is_a_one_line_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = command("reproduce", "xor", "--out", str(tmp_path / "file"))
    assert result.returncode == 1
    assert result.stderr.startswith("error: cannot write to")
    assert "--out" in result.stderr
    assert "Traceback" not in result.stderr


def test_usage_mistakes_have_exit_code_2():
    assert command("reproduce", "nonsense").returncode == 2
    assert command("reproduce", "xor", "--seeds", "0").returncode == 2


def test_help_and_version_are_printed():
    assert "xor" in command("reproduce", "--help").stdout
    assert command("--version").stdout == f"quadric {quadric.__version__}\n"


@pytest.mark.slow
def test_mnist_that_cannot_be_downloaded_is_replaced_by_digits(tmp_path, monkeypatch):
    """The command reports this, runs the same grid on digits and labels the report."""

    def nothing(collection):
        raise UnavailableError("no network")

    monkeypatch.setitem(sources.SOURCES, "mnist", (ImageSource("a network", nothing),))
    monkeypatch.setenv("QUADRIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QUADRIC_DATA", raising=False)
    arguments = ["reproduce", "mnist", "--seeds", "1", "--out", str(tmp_path / "report")]
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    assert "MNIST is not available" in result.stderr
    assert "no network" in result.stderr
    assert_one_screen(result.stdout)
    assert "The grid of Table IV with digits" in result.stdout
    assert "Needs MNIST; verdicts recorded from the committed full run:" in result.stdout
    page = (tmp_path / "report" / "index.html").read_text()
    assert "This is not MNIST" in page
    assert "Images: <strong>digits</strong>" in page
    assert (tmp_path / "report" / "digits_table.csv").exists()


def test_a_bad_data_directory_is_an_error(tmp_path):
    """The user named the directory, so no other place is searched."""
    empty = tmp_path / "empty"
    empty.mkdir()
    result = command("reproduce", "mnist", "--data-dir", str(empty), "--out", str(tmp_path / "r"))
    assert result.returncode == 1
    assert str(empty) in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "r" / "index.html").exists()


def test_invalid_recipe_options_are_refused(tmp_path):
    result = command("reproduce", "xor", "--scaling", "huge", "--out", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("error: scaling must be one of 'centered', 'unit'")
    result = command("reproduce", "xor", "--recipe", "last-images", "--out", str(tmp_path))
    assert result.returncode == 1
    assert "--recipe must be one of 'one-shuffle', 'first-images'" in result.stderr
    assert command("reproduce", "xor", "--rate", "fast", "--out", str(tmp_path)).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Recipe()),
        (["--recipe", "first-images"], RECIPES["first-images"]),
        (["--order", "new", "--rate", "0.02"], Recipe(order="new", learning_rate=0.02)),
        (["--init", "glorot"], Recipe(init="glorot", init_scale=1.0)),
    ],
)
def test_a_recipe_is_chosen_by_name_and_changed_by_options(
    tmp_path, monkeypatch, arguments, expected
):
    seen = []
    xor = replace(EXPERIMENTS["xor"], run=lambda context: seen.append(context) or Outcome(*"xyz"))
    monkeypatch.setitem(EXPERIMENTS, "xor", xor)
    assert command("reproduce", "xor", "--out", str(tmp_path), *arguments).returncode == 0
    assert seen[0].recipe == expected


def test_a_file_that_is_not_a_store_is_refused(tmp_path, monkeypatch):
    (tmp_path / "runs.sqlite").write_text("these are not runs, they are a text of mine")
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    result = command("reproduce", "mnist", "--seeds", "1", "--out", tmp_path)
    assert result.returncode == 1
    assert "runs.sqlite" in result.stderr
    assert (tmp_path / "runs.sqlite").read_text().endswith("a text of mine")


@pytest.mark.slow
def test_an_interrupted_reproduction_resumes(tmp_path):
    """Ctrl-C stops the command with a hint to resume; the second run repeats no finished run."""
    code = (
        "import sys, quadric.datasets as d; d.mnist = lambda data_dir: d.digits();"
        "from quadric.apps.shell import main; main()"
    )
    line = ["-c", code, "reproduce", "mnist", "--seeds", "2", "--out", "report"]
    first = processes.Started(line, cwd=tmp_path)
    store = tmp_path / "report" / "runs.sqlite"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (store.exists() and stored(store) > 5):
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, stderr = first.communicate(timeout=60)
    assert first.returncode == 130, stderr
    assert "the same command resumes" in stderr
    before = stored(store)
    assert 5 < before < 60
    second = processes.run(line, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert stored(store) == 60
    assert (tmp_path / "report" / "index.html").exists()


def stored(path):
    """Return the number of runs in a store."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error:
        return 0


@pytest.mark.slow
def test_failures_of_the_cluster_and_of_training_are_one_line_errors(tmp_path, monkeypatch):
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    for arguments, words in (
        (["--dask", "nonsense"], "is not the address of a Dask scheduler"),
        (["--rate", "1e30"], "smaller --rate"),
        (["--store", str(tmp_path / "no" / "where")], "where"),
    ):
        result = command("reproduce", "mnist", "--seeds", "1", "--out", tmp_path, *arguments)
        assert result.returncode == 1, result.stderr
        assert words in result.stderr
        assert "Traceback" not in result.stderr
    too_large = command("reproduce", "mnist", "--first-seed", "9" * 25, "--out", tmp_path)
    assert too_large.returncode == 2


@pytest.mark.slow
def test_results_finished_before_a_failure_are_reported(tmp_path, monkeypatch):
    def broken(context):
        raise RuntimeError("no more")

    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    for name, run in (("complexity", broken), ("clusters", lambda context: Outcome(*"cde"))):
        monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], run=run))
    result = command("reproduce", "--seeds", "1", "--out", tmp_path)
    assert result.returncode == 1
    assert "no more" in result.stderr
    page = (tmp_path / "index.html").read_text()
    assert "Incomplete:" in page
    assert "complexity, theorem, ablation not finished" in page
    assert "XOR with one neuron" in page


@pytest.mark.slow
def test_odd_directory_names_are_printed_unchanged(tmp_path):
    result = command(
        "reproduce", "xor", "--seeds", "1", "--out", "a[/b] [red]x[/red]", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "Report: a[/b] [red]x[/red]/index.html" in result.stdout


@pytest.mark.slow
def test_a_terminal_that_supports_only_ascii_causes_no_failure(tmp_path):
    result = process("reproduce", "xor", "--seeds", "1", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_one_row_of_the_table_is_run_and_printed(tmp_path, monkeypatch):
    """It has three models, and no report is written."""
    monkeypatch.setattr("quadric.datasets.mnist", lambda data_dir: datasets.digits())
    arguments = ["reproduce", "mnist", "--row", "600/5/10", "--seeds", "2", "--out", tmp_path]
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    assert_one_screen(result.stdout)
    assert "600 images, 5 epochs, 10 hidden neurons" in result.stdout
    assert "2 seeds" in result.stdout
    assert stored(tmp_path / "runs.sqlite") == 6
    assert not (tmp_path / "index.html").exists()
    (row,) = strict_json(command(*arguments, "--json").stdout)["experiments"]
    assert [cell["model"] for cell in row["tables"]["digits_row"]] == ["ANN", "QNN", "RPQNN"]
    too_large = command("reproduce", "mnist", "--row", "6000/5/10", "--out", tmp_path)
    assert too_large.returncode == 1
    assert "digits has 1297 training images, not 6000." in too_large.stderr


@pytest.mark.parametrize(
    ("experiment", "row", "words"),
    [
        ("mnist", "600/5", "--row must be images/epochs/hidden, such as 600/5/10. Got '600/5'."),
        ("mnist", "600/five/10", "--row must be images/epochs/hidden"),
        ("mnist", "600/5/10/1", "--row must be images/epochs/hidden"),
        ("mnist", "700/5/10", "has no row 700/5/10. It has images: 600, 1200, 6000, 60000;"),
        ("mnist", "600/5/11", "hidden neurons: 10, 15, 20, 25, 30."),
        ("xor", "600/5/10", "quadric reproduce mnist --row 600/5/10"),
        ("all", "600/5/10", "quadric reproduce mnist --row 600/5/10"),
    ],
)
def test_a_row_that_does_not_exist_is_an_error(tmp_path, experiment, row, words):
    assert_error(command("reproduce", experiment, "--row", row, "--out", tmp_path), words)
