"""The names that docs/stability.md promises exist and are public."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "stability.md"
ROW = re.compile(r"^\| `(quadric[.\w]*)` \| (.+) \|$", re.MULTILINE)


def promised(text):
    """Return pairs of a module and a promised name."""
    rows = ROW.findall(text)
    return [(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)]


def missing(pairs):
    """Return the pairs whose name is not in the module's `__all__`, or has no docstring."""
    found = []
    for module, name in pairs:
        package = importlib.import_module(module)
        if name not in package.__all__ or not getattr(package, name).__doc__:
            found.append((module, name))
    return found


def test_every_promised_name_exists():
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    pairs = promised(PAGE.read_text(encoding="utf-8"))
    assert ("quadric", "Network") in pairs
    assert ("quadric.torch", "replace_head") in pairs
    assert missing(pairs) == []


def test_a_promised_name_that_does_not_exist_is_detected():
    row = "| `quadric.geometry` | `Quadric`, `Circle` |"
    assert missing(promised(row)) == [("quadric.geometry", "Circle")]


def test_the_version_is_the_same_in_every_place():
    import quadric

    root = PAGE.parents[1]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {quadric.__version__}\n" in citation
    headings = re.findall(
        r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert quadric.__version__ in headings
