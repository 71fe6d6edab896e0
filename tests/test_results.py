"""Committed results name commits that exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "results").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
HASH = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,12}\b")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


def unknown(text):
    """Return the abbreviated hashes in a text that are not commits."""
    return [
        name
        for name in HASH.findall(text)
        if git("cat-file", "-e", f"{name}^{{commit}}").returncode
    ]


@pytest.fixture(autouse=True)
def _whole_history():
    if (
        not (ROOT / ".git").exists()
        or git("rev-parse", "--is-shallow-repository").stdout != "false\n"
    ):
        pytest.skip("needs the whole history of the repository")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_commits_exist(page):
    assert not unknown(page.read_text(encoding="utf-8"))


def test_an_unknown_commit_is_detected():
    assert unknown("measured at commit 0a0a0a0") == ["0a0a0a0"]
