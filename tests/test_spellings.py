"""What the pages write between backquotes exists, and accepts the arguments shown."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import quadric

for extra in ("torch", "onnx", "matplotlib", "typer"):
    pytest.importorskip(extra)

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```.*?^```$", re.S | re.M)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
IMPORTED = re.compile(r"\bfrom (quadric[\w.]*) import (\([^)]*\)|[^`\n]+)")


@cache
def public_names():
    """Return the values of each public name, by the name; several modules may use one name."""
    found = {}
    for info in pkgutil.walk_packages(quadric.__path__, "quadric."):
        if "._" not in info.name and ".apps" not in info.name:
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", ()):
                found.setdefault(name, []).append(getattr(module, name))
    return found


def resolved(name):
    """Return what a dotted name stands for after `import quadric`."""
    value = quadric
    for part in name.split(".")[1:]:
        if part.startswith("_") and inspect.ismodule(value):
            importlib.import_module(f"{value.__name__}.{part}")  # for contributors
        value = getattr(value, part)
    return value


def calls(text):
    """Yield the name and the syntax tree of each call in a text."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def accepts(value, call):
    """Return whether the signature of a function or class accepts the arguments of a call."""
    if any(isinstance(one, ast.Starred) or ast.unparse(one) == "..." for one in call.args):
        return True
    try:
        signature = inspect.signature(value)
        signature.bind(*call.args, **{word.arg: word.value for word in call.keywords if word.arg})
    except TypeError:
        return False
    return True


def faults(text):
    """Return the spellings in a page that do not work as written."""
    prose = BLOCK.sub("", text)
    spellings = [" ".join(one.split()) for one in INLINE.findall(prose)]
    known = imported(text) | set(quadric.__all__)
    known |= {part for one in spellings if one in MODULES for part in resolved(one).__all__}
    return [one for one in spellings if fault(one, known)]


MODULES = frozenset(
    info.name
    for info in pkgutil.walk_packages(quadric.__path__, "quadric.")
    if "._" not in info.name and hasattr(importlib.import_module(info.name), "__all__")
)


def imported(text):
    """Return the names that a page imports from quadric."""
    lists = [re.sub(r"#.*|[()]", "", names) for _, names in IMPORTED.findall(text)]
    return {name.strip().split(" as ")[0] for names in lists for name in names.split(",")}


def fault(spelling, known):
    """Return whether a spelling is wrong: a name of quadric that does not exist or not here."""
    if re.fullmatch(r"quadric(\.\w+)+", spelling):
        return not exists(spelling)
    for name, call in calls(spelling):
        if re.fullmatch(r"quadric(\.\w+)+", name):
            if not exists(name) or not accepts(resolved(name), call):
                return True
        elif name in public_names():
            fits = any(accepts(value, call) for value in public_names()[name] if callable(value))
            if name not in known or not fits:
                return True
    return False


def exists(name):
    try:
        resolved(name)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_writes_works_as_written(page):
    assert not faults(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_imported_names_exist(page):
    for module, names in IMPORTED.findall(page.read_text(encoding="utf-8")):
        for name in imported(f"from {module} import {names}") - {""}:
            assert exists(f"{module}.{name}"), (module, name)


@pytest.mark.parametrize(
    "wrong",
    [
        "`quadric.explain(model, X)`",
        "`quadric.certify.radii`",
        "`quadric.load()`",
        "`boundary(model, 1, 2)`",
        "`QuadraticClassifier(hidden=3)`",
    ],
)
def test_a_spelling_that_does_not_work_is_detected(wrong):
    assert faults(wrong)


def test_spellings_that_work_pass():
    assert not faults("`quadric.explain`: `boundary(model, 1, 2)`, `len(X)`, `quadric.load(path)`")
    block = "```python\nfrom quadric.explain import dependence\n```"
    assert not faults(f"`quadric.explain.explain(model, X)`, `dependence(model, X, [0])`\n{block}")


SOURCE = re.compile(r"[\w.]+(?:/[\w.]+)+\.(?:py|js)")
OTHERS = {"image_classification/models/quadratic_layer.py"}  # a file of another library


def missing_files(text):
    """Return the source files that a text names by a part of their path and that do not exist."""
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in source_files()]
    named = {one for one in INLINE.findall(BLOCK.sub("", text)) if SOURCE.fullmatch(one)} - OTHERS
    return sorted(one for one in named if not any(path.endswith(f"/{one}") for path in files))


@cache
def source_files():
    folders = ("src", "benchmarks", "docs", "examples", "tests")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.*")]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_source_files_that_a_page_names_exist(page):
    assert not missing_files(page.read_text(encoding="utf-8"))


def test_a_source_file_that_does_not_exist_is_detected():
    text = "See `utils/_memory.py`, `core/_layers.py` and `playground/page/net.js`."
    assert missing_files(text) == ["utils/_memory.py"]
