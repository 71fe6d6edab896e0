"""Code blocks of README.md and docs/ run, and print what the pages show."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from quadric.cli import app
from tests.support.small_files import fill

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_PYTHON = {page.stem: page for page in PAGES if "```python\n" in page.read_text()}


def python_blocks(text):
    """Return the Python blocks, each with the text block that directly follows it, or ''."""
    blocks = BLOCK.findall(text)
    following = [*blocks[1:], ("", "")]
    return [
        (code, output if kind == "text" else "")
        for (language, code), (kind, output) in zip(blocks, following, strict=True)
        if language == "python"
    ]


def assert_blocks_print_what_is_shown(text):
    for code, shown in python_blocks(text):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "<documentation>", "exec"), {"__name__": "__main__"})
        assert printed.getvalue() == shown, code


@pytest.fixture
def directory(tmp_path, small_files, monkeypatch):
    """A working directory with iris.csv and a cache with small files instead of MNIST's."""
    fill(tmp_path / "cache" / "mnist")
    X, y = load_iris(return_X_y=True)
    names = ("sepal_length", "sepal_width", "petal_length", "petal_width")
    columns = dict(zip(names, X.T, strict=True))
    species = load_iris().target_names[y].tolist()
    pl.DataFrame(columns | {"species": species}).write_csv(tmp_path / "iris.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_PYTHON.keys() - {"torch"}))
def test_python_blocks_print_what_the_page_shows(name, directory):
    assert_blocks_print_what_is_shown(WITH_PYTHON[name].read_text())


@pytest.fixture
def one_torch_thread():
    """Avoid torch's threads, which wait for each other if other tests use the same cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_torch_thread")
def test_torch_page_prints_what_it_shows_and_saves_a_model_for_the_command_line(directory):
    assert_blocks_print_what_is_shown(WITH_PYTHON["torch"].read_text())
    result = CliRunner().invoke(app, ["predict", "iris.quadric", "iris.csv", "-o", "out.csv"])
    assert result.exit_code == 0, result.output
    iris = load_iris()
    predicted = pl.read_csv("out.csv")["species"].to_numpy()
    assert np.mean(predicted == iris.target_names[iris.target]) > 0.97


def test_pages_with_examples_are_found():
    pages = {"README", "command_line", "datasets", "model_files", "onnx", "torch"}
    assert WITH_PYTHON.keys() >= pages


@pytest.mark.parametrize("wrong", ["print(2)", "pass", "print(1)\nraise ValueError"])
def test_a_block_that_prints_something_else_is_detected(wrong):
    page = "```python\n{}\n```\n\n```text\n1\n```\n"
    assert_blocks_print_what_is_shown(page.format("print(1)"))
    with pytest.raises((AssertionError, ValueError)):
        assert_blocks_print_what_is_shown(page.format(wrong))


# ---- shell blocks -----------------------------------------------------------------------------


def quadric_commands(text):
    shell = "\n".join(block for language, block in BLOCK.findall(text) if language == "sh")
    return [line for line in shell.splitlines() if line.startswith("quadric ")]


def exit_code(words):
    """Parse a command without running it: 0, or 2 for an unknown command or option."""
    return CliRunner().invoke(app, [*words, "--help"]).exit_code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_blocks_use_existing_commands_and_options(page):
    for line in quadric_commands(page.read_text()):
        words = shlex.split(line.split("|")[0], comments=True)
        assert exit_code(words[1:]) == 0, line


@pytest.mark.parametrize("line", ["trian iris.csv", "train iris.csv --targte species", "data lst"])
def test_an_unknown_command_or_option_is_detected(line):
    assert exit_code(line.split()) == 2
