"""The page's modules pass their own tests under Node.js, the type checker and the formatter."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import fixtures
from tests.support.browser import needs_node

pytestmark = [needs_node, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def run(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_unit_tests():
    files = sorted(map(str, (ROOT / "tests/playground/js").glob("*.test.js")))
    result = run("node", "--test", *files)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr


@pytest.fixture(scope="module")
def checkers(tmp_path_factory):
    """The folder with tsc and prettier: of `npm install` in this checkout, or installed now."""
    own = ROOT / "node_modules/.bin"
    if own.is_dir():
        return own
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(ROOT / "package.json", folder)
    options = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"]
    if run("npm", "install", *options, cwd=folder).returncode:
        pytest.skip("npm cannot install the type checker and the formatter")
    return folder / "node_modules/.bin"


@pytest.mark.parametrize("name", ["types", "format"])
def test_types_and_format_are_correct(checkers, name):
    tool, *arguments = json.loads((ROOT / "package.json").read_text())["scripts"][name].split()
    result = run(str(checkers / tool), *arguments)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_fixture_of_conics_is_what_the_geometry_generates():
    made = json.loads(json.dumps(fixtures.conics()))
    known = json.loads(fixtures.CONICS_FILE.read_text())["cases"]
    assert [case["kind"] for case in made] == [case["kind"] for case in known]
    for new, old in zip(made, known, strict=True):
        for field in ("points", "distances", "nearest", "center"):
            assert (new[field] is None) == (old[field] is None)
            if new[field] is not None:
                for one, other in zip(flat(new[field]), flat(old[field]), strict=True):
                    assert one == pytest.approx(other, rel=1e-9, abs=1e-9)


def flat(values):
    return [x for one in values for x in (flat(one) if isinstance(one, list) else [one])]
