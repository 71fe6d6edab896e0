"""Imports of the package, contents of the wheel, and commands of CI."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import quadric
from tests.support.processes import output_of

ROOT = Path(__file__).parent.parent
HEAVY = ("sklearn", "numba", "torch", "matplotlib", "polars", "pandas", "scipy", "typer")


def heavy_modules_after(statement):
    script = f"import sys\n{statement}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    return output_of(script).split()


def test_importing_quadric_loads_no_heavy_package():
    assert heavy_modules_after("import quadric") == []
    assert heavy_modules_after("from quadric import datasets") == []


@pytest.mark.slow
def test_importing_the_command_line_loads_only_typer():
    assert heavy_modules_after("import quadric.apps.shell") == ["typer"]


@pytest.mark.slow
def test_heavy_packages_are_detected():
    assert heavy_modules_after("import quadric\nquadric.Network") == ["scipy"]
    assert "numba" in heavy_modules_after("import quadric.kernels._sgd")


OPTIONAL = ("jinja2", "matplotlib", "onnx", "pandas", "polars", "rich", "torch", "typer")
WITHOUT_EXTRAS = f"""
import sys
class Required:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *args):
        if name.split(".")[0] not in {OPTIONAL!r}:
            return self.finder.find_spec(name, *args)
sys.meta_path = [Required(finder) for finder in sys.meta_path]
"""


def run_without_extras(script, tmp_path):
    """Run a script in a process that can import only the required dependencies."""
    command = [sys.executable, "-c", WITHOUT_EXTRAS + script]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


@pytest.mark.slow
def test_fit_save_and_load_need_no_extra(tmp_path):
    script = """
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import quadric
from quadric.explain import explain
X = np.random.default_rng(0).normal(size=(60, 2))
model = make_pipeline(StandardScaler(), quadric.QuadraticClassifier((), verbose=True))
model.fit(X, (X**2).sum(1) < 1)
quadric.save(model, "model.quadric")
assert (quadric.load("model.quadric").predict(X) == model.predict(X)).all()
print(explain(model, X))
"""
    result = run_without_extras(script, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "ellipse" in result.stdout
    assert result.stderr.strip()  # verbose writes plain lines


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (
            "import quadric.plotting",
            'quadric.plotting needs matplotlib: pip install "quadric[plot]"',
        ),
        (
            "import quadric.apps.shell",
            'The quadric command needs typer and rich: pip install "quadric[cli]"',
        ),
        ("import quadric.onnx", 'quadric.onnx needs onnx: pip install "quadric[onnx]"'),
        ("import quadric.torch", 'quadric.torch needs torch: pip install "quadric[torch]"'),
    ],
)
def test_a_missing_extra_is_reported_with_the_install_command(tmp_path, statement, line):
    assert run_without_extras(statement, tmp_path).stderr.endswith(f"ImportError: {line}\n")


def test_the_command_without_its_extra_prints_the_install_command(tmp_path):
    result = run_without_extras("from quadric.__main__ import main\nmain()", tmp_path)
    line = 'error: The quadric command needs typer and rich: pip install "quadric[cli]"\n'
    assert (result.returncode, result.stderr) == (1, line)


def test_every_public_name_exists():
    for name in quadric.__all__:
        assert getattr(quadric, name) is not None
    assert set(quadric.__all__) <= set(dir(quadric))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = quadric.Nonsense


def test_importing_quadric_is_enough_for_every_module(tmp_path):
    script = """
import inspect
import quadric
for name in ("explain", "certify", "datasets", "config"):
    assert inspect.ismodule(getattr(quadric, name)), name
assert quadric.explain.explain.__name__ == "explain"
assert "certify" in dir(quadric)
assert not hasattr(quadric, "_nothing")
"""
    result = run_without_extras(script, tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_module_that_needs_an_extra_is_reported_with_the_install_command(tmp_path):
    result = run_without_extras("import quadric\nquadric.torch", tmp_path)
    message = 'AttributeError: quadric.torch needs torch: pip install "quadric[torch]"\n'
    assert result.stderr.endswith(message)
    lookups = "import inspect, quadric\nassert not hasattr(quadric, 'torch')\n"
    result = run_without_extras(lookups + "inspect.getmembers(quadric)", tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_the_wheel_contains_every_source_file(tmp_path):
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"quadric-{quadric.__version__}.dist-info/METADATA").decode()
    sources = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "quadric").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    packaged = {name for name in names if name.startswith("quadric/")}
    assert packaged == sources
    assert "quadric/py.typed" in packaged
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "License-Expression: BSD-3-Clause" in metadata
    assert "Requires-Python: >=3.11" in metadata
    for extra in ("cli", "plot", "torch", "onnx", "dask", "all", "docs", "dev"):
        assert f"Provides-Extra: {extra}" in metadata


def test_ci_runs_the_command_that_the_readme_gives_for_the_tests():
    script = (ROOT / ".ci" / "run").read_text()
    (assignment,) = re.findall(r"^command=.*$", script, re.MULTILINE)
    assert 'bash -c "$command"' in script
    found = subprocess.run(
        ["bash", "-c", f'{assignment}\necho "$command"'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    readme = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"## Tests\n.*?```sh\n(.*?)```", readme, re.DOTALL)
    assert found.stdout == shown
    assert shown.rstrip().endswith(".venv/bin/python -m pytest -n auto")


def test_every_dependency_has_a_pinned_version():
    pins = dict(
        line.lower().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert pins["torch"] == "2.13.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for lines in extras.values() for line in lines]
    names = {re.match(r"[a-z0-9-]+", requirement).group() for requirement in wanted}
    assert names - {"quadric"} <= set(pins)


def test_no_caches_are_tracked():
    result = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:  # not in an unpacked sdist
        tracked = result.stdout.split("\n")
        assert "pyproject.toml" in tracked
        assert not [
            name for name in tracked if "__pycache__" in name or name.endswith((".nbc", ".nbi"))
        ]


def test_faults_R4_the_lowest_versions_are_tested_with_every_package_of_the_library():
    script = (ROOT / ".ci" / "lowest").read_text("utf-8")
    tested = set(re.search('^folders="(.*)"$', script, re.MULTILINE)[1].split())
    packages = {path.parent.name for path in (ROOT / "src" / "quadric").rglob("__init__.py")}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    # small packages, those without dependencies of their own, and what is tested by hand
    untested = {"datasets", "paper", "utils", "playground", "plotting", "reference"}
    assert packages & folders - untested == tested


def test_faults_R4_the_lower_bounds_allow_no_version_that_fails():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = dict(line.split(">=") for line in extras["optional-dependencies"]["cli"])
    # 1.33 has no collect_batches, and those of 1.34 to 1.36 swallow errors of damaged files
    assert tuple(map(int, bounds["polars"].split("."))) >= (1, 37)
    # with 0.17, a missing argument is a traceback
    assert tuple(map(int, bounds["typer"].split("."))) >= (0, 19)
