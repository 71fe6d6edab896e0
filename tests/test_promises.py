"""A promise of the documentation and its test: a comment behind the sentence names the test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.adversary import KINDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROJECT = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
TABLES = sorted((ROOT / "results").glob("*.md"))
COMMENT = re.compile(r"<!-- (?:test:|cases\b)(.*?)-->", re.S)  # the second kind: certificates
NAME = re.compile(r"([\w/]+\.py)(?:::(\w+))?")
VISIBLE = re.compile(r"[\w/]*\btest_\w+\.py\b|::test_\w+")
CODE = re.compile(r"^```.*?^```$", re.S | re.M)
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


def named(text):
    """Return the files and the names in the comments of a text."""
    return [pair for comment in COMMENT.findall(text) for pair in NAME.findall(comment)]


def unknown(text, tests):
    """Return the names in the comments of a text that are not tests; '' is a whole file."""
    return [
        f"{file}::{name}"
        for file, name in named(text)
        if file not in tests or name not in {"", *tests[file]}
    ]


def visible(text):
    """Return the names of tests that a reader of a text sees."""
    return VISIBLE.findall(CODE.sub("", COMMENT.sub("", text)))


@pytest.mark.parametrize(
    "page", [*PAGES, *TABLES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_named_tests_exist(page):
    assert not unknown(page.read_text(), names_by_file())


def test_a_name_without_a_test_is_detected():
    tests = {"test_a.py": {"test_b"}}
    text = "It holds. <!-- test: test_a.py::test_b,\ntest_a.py::test_c, test_d.py --> And this."
    assert unknown(text, tests) == ["test_a.py::test_c", "test_d.py::"]
    assert not unknown("It holds. <!-- test: test_a.py -->", tests)


@pytest.mark.parametrize(
    "page", [*PAGES, *PROJECT, *TABLES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_no_reader_sees_the_name_of_a_test(page):
    assert not visible(page.read_text(encoding="utf-8"))


def test_a_visible_name_of_a_test_is_detected():
    code = "```sh\npytest tests/test_a.py\n```"
    hidden = f"It holds. <!-- test: test_a.py::test_b --> `train_test_split` splits.\n{code}\n"
    assert not visible(hidden)
    assert visible(f"{hidden} (`a/test_a.py::test_b`)") == ["a/test_a.py", "::test_b"]
    assert visible("It holds, as ::test_b shows") == ["::test_b"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_that_describe_failures_name_tests(page):
    text = page.read_text()
    assert named(text) or not FAILURE.search(text)


def test_failures_are_found_in_some_pages():
    found = [page.name for page in PAGES if FAILURE.search(page.read_text())]
    assert {"README.md", "estimators.md", "model_files.md"} <= set(found)


CERTIFICATES = ROOT / "docs" / "guide" / "certificates.md"
CASES = re.compile(r"<!-- cases (.*?)-->", re.S)


def test_every_promise_about_certificates_names_its_cases():
    text = CERTIFICATES.read_text(encoding="utf-8")
    comments = CASES.findall(text)
    cases = [set(re.findall(r'"([^"]+)"', comment)) for comment in comments]
    assert all(named and named <= set(KINDS) for named in cases)
    assert set().union(*cases) == set(KINDS)
    # no test is named elsewhere, so each of them belongs to a case
    assert not named(CASES.sub("", text))
