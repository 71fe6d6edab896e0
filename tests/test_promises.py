"""What the documentation promises of faults, it promises by the name of a test."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAME = re.compile(r"`([\w/]+\.py::\w+)`")


def names_by_file():
    """The names of the tests in each file, by its path in `tests`."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = [
            node.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        found[path.relative_to(ROOT / "tests").as_posix()] = set(names)
    return found


def unknown(text, tests):
    """The promises of a text that name no test."""
    named = [name.split("::") for name in NAME.findall(text)]
    return [f"{file}::{name}" for file, name in named if name not in tests.get(file, ())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page):
    assert not unknown(page.read_text(), names_by_file())


def test_a_name_that_does_not_exist_would_be_noticed():
    tests = {"test_a.py": {"test_b"}}
    text = "It holds (`test_a.py::test_b`, `test_a.py::test_c`, `test_d.py::test_b`)."
    assert unknown(text, tests) == ["test_a.py::test_c", "test_d.py::test_b"]


def test_the_pages_that_speak_of_faults_name_tests():
    named = {page.name: len(NAME.findall(page.read_text())) for page in PAGES}
    for page in ("README.md", "command_line.md", "estimators.md", "model_files.md", "datasets.md",
                 "onnx.md", "torch.md", "geometry.md", "reproduce.md"):  # fmt: skip
        assert named[page] > 0, page
