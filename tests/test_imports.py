"""Imports between packages follow the architecture, in every module."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# Each package may import only those below it.
ORDER = (
    "apps.shell",
    "apps.playground",
    "apps.paper",
    "plotting",
    "onnx",
    "certify",
    "explain",
    "convert",
    "files",
    "torch",
    "models",
    "estimators",
    "network",
    "training",
    "core",
    "kernels",
    "geometry",
    "datasets",
    "checks",
    "utils",
    "config",
    "errors",
)
# The reference checks the others, so it shares no code with them.
ALONE = "reference"
# The packages that may import heavy or optional dependencies.
IMPORTERS = {
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "polars": {"apps.shell"},
    "torch": {"torch", "apps.paper"},
    "onnx": {"onnx"},
    "onnxruntime": set(),
    "skl2onnx": {"onnx"},
    "distributed": {"apps.paper"},
    "jinja2": {"apps.paper", "apps.shell"},
    "matplotlib": {"plotting", "apps.paper", "apps.shell"},
    "rich": {"apps.shell", "estimators"},
    "typer": {"apps.shell"},
}
PUBLIC = {
    "quadric.checks",
    "quadric.config",
    "quadric.errors",
    "quadric.torch.functional",
    "quadric.utils.notebook",
}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(source, *, lazy=True):
    """Return the modules that a module imports; with `lazy`, also those in its functions."""
    waiting, found = [ast.parse(source)], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(name if name in MODULES else node.module for name in names)
        elif not is_for_types(node) and (lazy or not isinstance(node, ast.FunctionDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def package_of(module):
    """Return the package of a module: `core` for `quadric.core._layers`."""
    first, *rest = module.split(".")[1:] or ["quadric"]
    return f"apps.{rest[0]}" if first == "apps" and rest else first


def mistake(importer, module):
    """Return the problem with an import, or None."""
    own, top = package_of(importer), module.split(".")[0]
    if top != "quadric":
        allowed = IMPORTERS.get(top, {own})
        return None if own in allowed else f"only {sorted(allowed)} may import {top}"
    other = package_of(module)
    if other in (own, "quadric") or (other == ALONE and own != ALONE):
        return None
    if own == ALONE:
        return f"{ALONE} shares no code with what it checks"
    return None if ORDER.index(own) < ORDER.index(other) else f"{own} is below {other}"


def mistakes(importer, source):
    found = {module: mistake(importer, module) for module in imports(source)}
    return {module: wrong for module, wrong in found.items() if wrong}


def test_imports_point_downwards():
    wrong = {}
    for name in set(MODULES) - {"quadric", "quadric.__main__"}:
        wrong[name] = mistakes(name, MODULES[name].read_text())
    assert not {name: listed for name, listed in wrong.items() if listed}


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("quadric.core._layers", "from quadric.training import _train"),
        ("quadric.core._layers", "def f():\n    from quadric.training._train import train"),
        ("quadric.reference._pieces", "from quadric.utils import text"),
        ("quadric.network._network", "import numba"),
        ("quadric.core._stack", "if a:\n    import polars as pl"),
    ],
)
def test_a_wrong_import_is_detected(importer, source):
    assert mistakes(importer, source)


def test_no_module_imports_itself_through_others():
    graph = {name: imports(path.read_text()) & set(MODULES) for name, path in MODULES.items()}
    graph["quadric"] = set()  # its names are imported when first used
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_modules_are_private_unless_listed():
    files = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    public = {name for name in files if not any(part[0] == "_" for part in name.split(".")[1:])}
    assert public == PUBLIC


def test_no_module_is_long():
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert not [name for name, n in lengths.items() if n > 600 and package_of(name) != "kernels"]


def test_every_package_has_a_docstring():
    for name, path in MODULES.items():
        if path.name == "__init__.py":
            assert len(ast.get_docstring(ast.parse(path.read_text()))) > 40, name
