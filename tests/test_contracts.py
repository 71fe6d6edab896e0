"""The contracts of the architecture, checked in every module: see docs/architecture.md.

Each contract is a function that returns its violations. It is tested twice: on the package, which
has none, and on a line of code that violates it.
"""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# Each package may import only those below it.
ORDER = (
    "apps.shell",
    "apps.playground",
    "apps.paper",
    "plotting",
    "onnx",
    "codegen",
    "certify",
    "explain",
    "convert",
    "files",
    "torch",
    "models",
    "estimators",
    "lasso",
    "network",
    "cluster",
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
    "dask": {"cluster", "apps.shell"},
    "distributed": {"cluster"},
    "jinja2": {"apps.paper", "apps.shell"},
    "matplotlib": {"plotting", "apps.paper", "apps.shell"},
    "rich": {"apps.shell", "estimators"},
    "typer": {"apps.shell"},
}
# The modules, besides packages, that others may import.
PUBLIC = {
    "quadric.checks",
    "quadric.config",
    "quadric.errors",
    "quadric.torch.functional",
    "quadric.utils.notebook",
}
# What only `models` reads, of an estimator or a pipeline that has been fitted.
FITTED = {"classes_", "feature_names_in_", "named_steps", "steps"}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
LIBRARY = [name for name in MODULES if not name.startswith("quadric.apps")]


@cache
def tree(module):
    return ast.parse(MODULES[module].read_text("utf-8"))


def package_of(module):
    """Return the package of a module: `core` for `quadric.core._layers`."""
    first, *rest = module.split(".")[1:] or ["quadric"]
    return f"apps.{rest[0]}" if first == "apps" and rest else first


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(source, *, types=True):
    """Return pairs of a module and the name imported from it; the name is None for a module."""
    waiting, pairs = [source], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            pairs.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                pairs.add((module, None) if module in MODULES else (node.module, alias.name))
        elif types or not is_for_types(node):
            waiting.extend(ast.iter_child_nodes(node))
    return pairs


@cache
def public_names(module):
    """Return the names in `__all__` of a module."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


# The contracts. Each takes the name of a module and its syntax tree, and returns the violations.


def upwards(importer, source):
    """Imports of a package above, and of a dependency that belongs to another package."""
    wrong, own = [], package_of(importer)
    for module, _ in imports(source, types=False):
        other, top = package_of(module), module.split(".")[0]
        if top != "quadric":
            if own not in IMPORTERS.get(top, {own}):
                wrong.append(f"{own} may not import {top}")
        elif own == ALONE and other != ALONE:
            wrong.append(f"{ALONE} shares no code with what it checks")
        elif own == other or {own, other} & {ALONE, "quadric"}:
            continue
        elif ORDER.index(own) > ORDER.index(other):
            wrong.append(f"{own} is below {other}")
    return wrong


def beside_the_door(importer, source):
    """Imports of a module or a name that is private to another package."""
    wrong = []
    for module, name in imports(source):
        if package_of(module) in (package_of(importer), "quadric") or module[:8] != "quadric.":
            continue
        door = f"quadric.{package_of(module)}"
        if (module != door and module not in PUBLIC) or (name or "").startswith("_"):
            wrong.append(f"{module}: {name}")
    return wrong


def not_public(importer, source):
    """Names that a program imports and that the library, or another program, does not list."""
    return [
        f"{module}: {name}"
        for module, name in imports(source)
        if module.split(".")[0] == "quadric" and package_of(module) != package_of(importer)
        if name is not None and name not in public_names(module)
    ]


@cache
def options():
    """Return the options of all commands, such as `--target`."""
    typer = pytest.importorskip("typer")
    from quadric.apps.shell import app

    waiting, names = [typer.main.get_command(app)], set()
    while waiting:
        command = waiting.pop()
        waiting.extend(getattr(command, "commands", {}).values())
        names.update(*((*p.opts, *p.secondary_opts) for p in command.params))
    return {name for name in names if name.startswith("--")}


def option_text(importer, source):
    """Options of the command line in the strings of the library."""
    strings = {n.value for n in ast.walk(source) if isinstance(n, ast.Constant)}
    words = {w for text in strings if isinstance(text, str) for w in re.findall(r"--[\w-]+", text)}
    return sorted(words & options())


def readers_of_fitted_models(importer, source):
    """Reads of a fitted scikit-learn object outside `models`, apart from an estimator's own."""
    wrong, own = [], {"self"}
    if package_of(importer) == "estimators":
        own.add("self._label_binarizer")  # which finds the classes
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute) and node.attr in FITTED:
            if isinstance(node.ctx, ast.Load) and ast.unparse(node.value) not in own:
                wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and name.value in FITTED:
                wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
    return wrong


CONTRACTS = {
    upwards: [name for name in MODULES if name not in ("quadric", "quadric.__main__")],
    beside_the_door: list(MODULES),
    not_public: [name for name in MODULES if name.startswith("quadric.apps.")],
    option_text: LIBRARY,
    readers_of_fitted_models: [m for m in MODULES if package_of(m) != "models"],
}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_every_module_keeps(contract):
    violations = {module: contract(module, tree(module)) for module in CONTRACTS[contract]}
    assert {module: wrong for module, wrong in violations.items() if wrong} == {}


@pytest.mark.parametrize(
    ("contract", "importer", "source"),
    [
        (upwards, "quadric.core._layers", "from quadric.training import train"),
        (upwards, "quadric.core._layers", "def f():\n    from quadric.training import train"),
        (upwards, "quadric.files._safetensors", "from quadric.apps import shell"),
        (upwards, "quadric.reference._pieces", "from quadric.utils import counted"),
        (upwards, "quadric.network._network", "import numba"),
        (upwards, "quadric.core._layers", "if a:\n    import polars as pl"),
        (beside_the_door, "quadric.network._network", "from quadric.core._layers import Layer"),
        (beside_the_door, "quadric.network._network", "import quadric.core._layers"),
        (beside_the_door, "quadric.network._network", "from quadric.core import _layers"),
        (beside_the_door, "quadric.network._network", "from quadric.core import _private"),
        (beside_the_door, "quadric.apps.shell", "from quadric.apps.paper._sweep import Store"),
        (not_public, "quadric.apps.shell", "from quadric.core import not_listed"),
        (not_public, "quadric.apps.shell", "from quadric.apps.paper import not_listed"),
        (option_text, "quadric.core._layers", "raise ValueError('use --hidden none')"),
        (readers_of_fitted_models, "quadric.certify._radius", "model.classes_"),
        (readers_of_fitted_models, "quadric.certify._radius", "getattr(model, 'steps', None)"),
    ],
)
def test_a_violation_is_detected(contract, importer, source):
    assert contract(importer, ast.parse(source))


def cycle(graph):
    """Return a cycle of modules, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_module_imports_itself_through_others():
    graph = {
        name: {module for module, _ in imports(tree(name), types=False)} & set(MODULES)
        for name in MODULES
    }
    graph["quadric"] = set()  # its names are imported when first used
    assert cycle(graph) is None
    assert cycle({"a": {"b"}, "b": {"a"}})


def test_modules_are_private_unless_listed():
    files = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    public = {name for name in files if not any(part[0] == "_" for part in name.split(".")[1:])}
    assert public == PUBLIC


def test_every_package_has_a_docstring():
    for name, path in MODULES.items():
        if path.name == "__init__.py":
            assert len(ast.get_docstring(tree(name))) > 40, name


# Sizes. A statement is a node of the syntax tree; docstrings do not count.


def statements(node):
    """Return the number of statements of a module or a function."""
    nodes = [n for n in ast.walk(node) if isinstance(n, ast.stmt)]
    return len(nodes) - sum(
        isinstance(n, ast.Expr)
        and isinstance(n.value, ast.Constant)
        and isinstance(n.value.value, str)
        for n in nodes
    )


def budgets():
    """Return the statements and modules that docs/architecture.md allows each package."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+)` \| ([\d ]+) \| (\d+) \| [^|]*\|$", text, re.MULTILINE)
    return {name: (int(allowed.replace(" ", "")), int(modules)) for name, allowed, modules in rows}


def test_no_package_exceeds_its_budget():
    sizes, modules = Counter(), Counter()
    for name in MODULES:
        sizes[package_of(name)] += statements(tree(name))
        modules[package_of(name)] += 1
    top = {"quadric", "__main__", "apps", "checks", "config", "errors"}  # not packages
    sizes["top"] = sum(sizes.pop(name) for name in top)
    modules["top"] = sum(modules.pop(name) for name in top)
    sizes["total"], modules["total"] = sizes.total(), modules.total()
    allowed = budgets()
    assert set(allowed) == {name.replace(".", "/") for name in sizes}
    for name in sizes:
        most, files = allowed[name.replace(".", "/")]
        assert (sizes[name] <= most, modules[name] <= files) == (True, True), (
            f"{name}: {sizes[name]} statements in {modules[name]} modules, allowed {most}, {files}"
        )


def test_the_table_of_walks_has_the_limits_of_the_call_graph():
    source = ast.parse((ROOT / "benchmarks" / "call_graph.py").read_text("utf-8"))
    (limits,) = (
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "LIMITS"
    )
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w. ]+)` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    walks = {
        "QuadraticClassifier.fit": "fit",
        "QuadraticClassifier.predict": "predict",
        "certify.radius": "radius",
        "quadric train data.csv": "train",
    }
    assert {name: int(limit) for name, _, limit in rows} == {
        name: limits[walk] for name, walk in walks.items()
    }
    assert all(0 < int(files) <= int(limit) for _, files, limit in rows)


def test_functions_are_short_and_files_hold_one_idea():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [n for name in MODULES for n in ast.walk(tree(name)) if isinstance(n, kinds)]
    sizes = sorted(map(statements, functions))
    assert sizes[int(0.95 * len(sizes))] <= 19
    assert sizes[-1] <= 61
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: n for name, n in lengths.items() if n > 600} == {}
