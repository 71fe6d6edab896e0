"""The tests that the documentation names exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.adversary import KINDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAME = re.compile(r"`([\w/]+\.py::\w+)`")
FAILURE = re.compile(r"\b(raises|rejects|(is|are) (rejected|refused|reported)|causes an error)\b")


@cache
def names_by_file():
    """Return the names of the tests in each file, by the path below tests/."""
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
    """Return the names in a text that are not tests."""
    named = [name.split("::") for name in NAME.findall(text)]
    return [f"{file}::{name}" for file, name in named if name not in tests.get(file, ())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_named_tests_exist(page):
    assert not unknown(page.read_text(), names_by_file())


def test_a_name_without_a_test_is_detected():
    tests = {"test_a.py": {"test_b"}}
    text = "It holds (`test_a.py::test_b`, `test_a.py::test_c`, `test_d.py::test_b`)."
    assert unknown(text, tests) == ["test_a.py::test_c", "test_d.py::test_b"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_that_describe_failures_name_tests(page):
    text = page.read_text()
    assert NAME.search(text) or not FAILURE.search(text)


def test_failures_are_found_in_some_pages():
    found = [page.name for page in PAGES if FAILURE.search(page.read_text())]
    assert {"README.md", "estimators.md", "model_files.md"} <= set(found)


CERTIFICATES = ROOT / "docs" / "certificates.md"
COMMENT = re.compile(r"<!-- cases (.*?)-->", re.S)


def test_every_promise_about_certificates_names_its_cases():
    text = CERTIFICATES.read_text(encoding="utf-8")
    comments = COMMENT.findall(text)
    cases = [set(re.findall(r'"([^"]+)"', comment)) for comment in comments]
    assert all(named and named <= set(KINDS) for named in cases)
    assert set().union(*cases) == set(KINDS)
    # no test is named elsewhere, so each of them belongs to a case
    assert not NAME.search(COMMENT.sub("", text))
