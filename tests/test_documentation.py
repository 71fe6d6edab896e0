"""Code blocks of README.md and docs/ run, and print what the pages show."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from quadric.apps.shell import app
from tests.support.commands import write_iris
from tests.support.page_blocks import (
    IN_ORDER,
    assert_session_prints_what_is_shown,
    blocks,
    run_python,
)
from tests.support.small_files import fill

ROOT = Path(__file__).parents[1]
PAGES = {
    page.relative_to(ROOT).with_suffix("").as_posix(): page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
SESSIONS = {name: page for name, page in PAGES.items() if IN_ORDER in page.read_text().split("\n")}
WITH_PYTHON = {
    name: page
    for name, page in PAGES.items()
    if name not in SESSIONS and "```python\n" in page.read_text()
}


def assert_blocks_print_what_is_shown(text):
    """Run each Python block of a page by itself."""
    for language, code, shown in blocks(text):
        if language == "python":
            assert run_python(code, {"__name__": "__main__"}) == shown, code


@pytest.fixture
def directory(tmp_path, small_files, monkeypatch):
    """A working directory with iris.csv and a cache with small files instead of MNIST's."""
    fill(tmp_path / "cache" / "mnist")
    write_iris(tmp_path / "iris.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def one_torch_thread():
    """Avoid torch's threads, which wait for each other if other tests use the same cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def text_of(page, request):
    """Return the text of a page; if it uses torch, set the number of threads."""
    text = page.read_text()
    if "\nimport shap\n" in text:
        pytest.importorskip("shap")
    if re.search(r"^(import|from) (quadric\.)?torch", text, re.MULTILINE):
        request.getfixturevalue("one_torch_thread")
    return text


@pytest.mark.slow
@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", sorted(WITH_PYTHON.keys() - {"docs/guide/torch"}))
def test_python_blocks_print_what_the_page_shows(name, request):
    assert_blocks_print_what_is_shown(text_of(WITH_PYTHON[name], request))


@pytest.mark.slow
@pytest.mark.unix
@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", SESSIONS)
def test_blocks_in_order_print_what_the_page_shows(name, request):
    assert_session_prints_what_is_shown(text_of(SESSIONS[name], request))


@pytest.mark.slow
@pytest.mark.usefixtures("directory", "one_torch_thread")
def test_the_model_saved_on_the_torch_page_serves_the_command_line():
    assert_blocks_print_what_is_shown(PAGES["docs/guide/torch"].read_text())
    result = CliRunner().invoke(app, ["predict", "iris.quadric", "iris.csv", "-o", "out.csv"])
    assert result.exit_code == 0, result.output
    iris = load_iris()
    predicted = pl.read_csv("out.csv")["species"].to_numpy()
    assert np.mean(predicted == iris.target_names[iris.target]) > 0.97


def test_pages_are_found_in_all_folders():
    assert "docs/tour" in SESSIONS
    assert {"README", "docs/index", "docs/guide/torch", "docs/_template"} <= WITH_PYTHON.keys()
    folders = {Path(name).parent.name for name in PAGES}
    assert folders >= {"docs", "guide", "how_to", "explanation", "coming_from", "tutorials"}


@pytest.mark.parametrize("wrong", ["print(2)", "pass", "print(1)\nraise ValueError"])
def test_a_block_that_prints_something_else_is_detected(wrong):
    page = "```python\n{}\n```\n\n```text\n1\n```\n"
    assert_blocks_print_what_is_shown(page.format("print(1)"))
    with pytest.raises((AssertionError, ValueError)):
        assert_blocks_print_what_is_shown(page.format(wrong))


@pytest.mark.unix
@pytest.mark.parametrize(
    "wrong",
    ["print(n + 1)", "print(n)\n```\n\n```sh\nfalse", "print(n)\n```\n\n```sh\necho 2"],
    ids=["output", "command", "output of a command"],
)
def test_a_session_that_prints_something_else_is_detected(wrong):
    page = "```python\nn = 1\n```\n\n```python\n{}\n```\n\n```text\n1\n```\n"
    assert_session_prints_what_is_shown(page.format("print(n)"))
    with pytest.raises((AssertionError, RuntimeError)):
        assert_session_prints_what_is_shown(page.format(wrong))


# ---- shell blocks -----------------------------------------------------------------------------


def quadric_commands(text):
    shell = "\n".join(code for language, code, _ in blocks(text) if language == "sh")
    return [line for line in shell.splitlines() if line.startswith("quadric ")]


def exit_code(words):
    """Parse a command without running it: 0, or 2 for an unknown command or option."""
    return CliRunner().invoke(app, [*words, "--help"]).exit_code


@pytest.mark.parametrize("name", PAGES)
def test_shell_blocks_use_existing_commands_and_options(name):
    for line in quadric_commands(PAGES[name].read_text()):
        words = shlex.split(line.split("|")[0], comments=True)
        assert exit_code(words[1:]) == 0, line


@pytest.mark.parametrize("line", ["trian iris.csv", "train iris.csv --targte species", "data lst"])
def test_an_unknown_command_or_option_is_detected(line):
    assert exit_code(line.split()) == 2
